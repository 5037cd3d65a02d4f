package forward

import (
	"errors"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
	"serve.zone/relay/typedsocket/queue"
)

// carried is one request that was forwarded and waits for its answer. Its
// methods are called by the carrier: judge on the reader of the socket the
// answer came on, failed and ended there or where that socket ends.
type carried struct {
	f     *Forward
	p     *peer // the node's, source or destination
	from  *typedsocket.Socket
	to    *typedsocket.Socket
	route route
	node  string
	cost  cost
	body  int // bytes of the request
	begun time.Time
	queue *strangersQueue // the request waits among those of strangers; nil otherwise
	epoch uint64
	// registration is set for registrations alone.
	registration *registration

	// Written by judge, failed and ended alone: one goroutine.
	accepted bool // the answer bears neither an error nor a retry
	response int  // bytes of the answer that goes back
	judged   bool // the answer may go back
	released bool // what it held was given back; counted in peer.answering
	passing  bool // counted in Forward.passing
}

// flowOfCloudly is the flow of a node's socket on which all that comes from
// Cloudly waits. A node that does not read loses answers by its bound, and the
// refusals of the relay go before it.
const flowOfCloudly = "cloudly"

// flowOfStrangers is the flow of the socket to Cloudly in which the registrations
// of all sockets wait that hold no binding. Those may name any node, so a node's
// own flow is none of theirs, and all of them together have the share of one. No
// node id has a space.
const flowOfStrangers = "unbound sockets"

// forward is how the request travels on. Both ways it is in the node's flow on
// the socket to Cloudly, so that a node's messages never overtake each other; but
// for what goes among the registrations of strangers.
func (c *carried) forward() typedsocket.Forward {
	f := typedsocket.Forward{
		Method: c.route.method, Timeout: contract.ForwardTimeout,
		Judge: c.judge, Failed: c.failed, Ended: c.ended,
		Left: c.f.metrics.requestInside, AnswerLeft: c.f.metrics.answerInside,
	}
	if c.cost.direction == up {
		f.Flow, f.AnswerFlow = c.node, flowOfCloudly
		if c.queue != nil {
			f.Flow, f.Left = flowOfStrangers, c.left
		}
	} else {
		f.Flow, f.AnswerFlow = flowOfCloudly, c.node
	}
	return f
}

// left is told when a request has left that waited among those of strangers.
func (c *carried) left(inside time.Duration) {
	c.queue.waiting.Add(-1)
	c.f.metrics.requestInside(inside)
}

// errStreams is an answer with a stream, which does not pass (contract §14).
var errStreams = errors.New("the answer holds a stream")

// judge decides whether an answer goes back.
func (c *carried) judge(a *typedsocket.ForwardedAnswer) error {
	if c.route.secretAnswer {
		a.Erase()
	}
	c.accepted, c.response = a.Accepted, len(a.Response)
	if a.Facts.Streams > 0 {
		return errStreams
	}
	if c.registration != nil && a.Accepted {
		if err := c.judgeRegistration(a.Response); err != nil {
			return err
		}
	}
	err := c.pass(a.Accepted)
	// Behind the verdict: the answer itself is forwarded all the same (O10).
	if c.cost.direction == up && !a.Accepted && contract.IsForwardedCustodyRefusal(a.ErrorData) {
		c.heardStale(a.ErrorData)
	}
	return err
}

// pass decides about an answer by the state of the room.
func (c *carried) pass(accepted bool) error {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	switch {
	case c.registration != nil && accepted: // judged, and taken over
	case c.epoch != c.f.table.epoch:
		return refusal(contract.RelayNotReady, "the session to Cloudly that it belongs to is over")
	case c.cost.direction == down:
		c.f.passing++
		c.passing = true
	}
	c.judged = true
	c.release()
	return nil
}

// heardStale tells that Cloudly does not know the relay's credential any more.
func (c *carried) heardStale(data []byte) {
	f := c.f
	f.mu.Lock()
	f.publish(StaleCredentialHeard, field.Node(c.node), field.Method(c.route.method))
	if f.cfg.OnStaleCredential != nil {
		f.later(func() { f.cfg.OnStaleCredential(c.to, data) })
	}
	f.mu.Unlock()
	f.flush()
}

// unnamedFailure is the text of a failure whose cause is nobody's business
// (typedsocket.md §1.2).
const unnamedFailure = "Internal server error"

// failed composes what goes back in place of an answer.
func (c *carried) failed(err error) (text string, data []byte) {
	c.f.mu.Lock()
	c.release()
	c.f.mu.Unlock()
	if r := refusalOf(c.cost.direction, err); r != nil {
		return r.Text(), r.AppendData(nil)
	}
	return unnamedFailure, []byte("{}")
}

// refusalOf names the reason why a request was not sent on, or why no answer
// came. It returns nil for a failure without a name: a timeout (contract O38),
// and whatever is wrong with an answer.
func refusalOf(d direction, err error) *contract.Refusal {
	var named *contract.Refusal
	var end *typedsocket.EndError
	var full *queue.FullError
	switch {
	case errors.As(err, &named):
		return named
	case errors.As(err, &full), errors.Is(err, typedsocket.ErrPendingFull):
		return refusal(contract.RelayOverloaded, "too much waits to be sent")
	case !errors.Is(err, typedsocket.ErrClosed):
		return nil
	case d == up:
		return refusal(contract.RelayNotReady, "the session to Cloudly ended")
	case errors.As(err, &end) && !end.Remote && end.Code == typedsocket.CloseSuperseded:
		return refusal(contract.RelayNodeSessionNotCurrent, "the node came over a newer socket")
	}
	return refusal(contract.RelayNodeNotCarried, "the node's socket ended")
}

// release gives back what the request held, before what it is answered with
// leaves: who keeps to the bounds must not be refused because the next request
// comes right behind an answer. The caller holds mu.
func (c *carried) release() {
	if c.released {
		return
	}
	c.released = true
	c.p.answering++
	c.f.total.release(&c.p.load, c.cost)
	c.f.gaugeLocked()
	if c.registration != nil {
		c.f.table.settle(c.registration.ticket)
	}
}

// ended counts how the request ended. err is nil when an answer went back.
func (c *carried) ended(err error) {
	f, d := c.f, c.cost.direction
	f.metrics.waited.Of(d).Add(time.Since(c.begun))
	f.metrics.ended.Of(d, outcomeOf(err, c.accepted, c.judged, c.from.Err() != nil)).Inc()
	f.mu.Lock()
	c.release()
	c.p.answering--
	if err == nil {
		f.metrics.bytes.Of(1 - d).Add(uint64(c.response))
		c.p.bytes[1-d] += uint64(c.response)
	}
	if c.passing {
		f.passing--
		if f.passing == 0 {
			f.passed.Broadcast()
		}
	}
	drained := f.draining && c.p.idle()
	f.mu.Unlock()
	if drained {
		signal(f.settled)
	}
	if c.registration != nil && c.registration.mismatch {
		// Only now: the node shall still read that it failed.
		c.p.sock.Close(typedsocket.CloseInternal, "the answer to the registration holds no session of this node")
	}
}

// outcomeOf tells how a request ended. gone says that who asked is gone.
func outcomeOf(err error, accepted, judged, gone bool) outcome {
	var timeout *typedsocket.TimeoutError
	switch {
	case err == nil && accepted:
		return outcomeAnswered
	case err == nil:
		return outcomeDeclined
	case errors.As(err, &timeout):
		return outcomeTimedOut
	case gone:
		return outcomeAbandoned
	case judged:
		return outcomeUndelivered
	case errors.Is(err, typedsocket.ErrClosed):
		return outcomeLost
	}
	return outcomeWithheld
}

// gaugeLocked shows what is in flight. The caller holds mu.
func (f *Forward) gaugeLocked() {
	for d := range directions {
		f.metrics.inFlight.Of(d).Set(int64(f.total.count[d]))
	}
	f.metrics.heldBytes.Set(int64(f.total.bytes))
}
