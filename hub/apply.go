package hub

import (
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/failpoint"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/hub/network"
	"serve.zone/relay/hub/policy"
	"serve.zone/relay/typedsocket"
)

// push is a pushed network that waits to be judged.
type push struct {
	r       *typedsocket.Request
	custody uint64 // in which it came
	number  uint64 // of the push, counted as they come
}

// Apply serves applyClusterVpnNetwork on the socket to Cloudly (contract §10.4).
// Networks are judged in the order in which they came, elsewhere than on the reader
// of the socket: all nodes' answers come over it.
func (h *Hub) Apply(r *typedsocket.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.stands(r.Socket()):
		h.metrics.networks.Of(pushed, networkNotReady).Inc()
		refuse(r, notReady())
	case len(h.pushes) >= maxPushes:
		h.metrics.networks.Of(pushed, networkOverloaded).Inc()
		refuse(r, refusal(contract.RelayOverloaded, "earlier networks have not been judged"))
	default:
		h.came++
		h.pushes = append(h.pushes, push{r, h.custody, h.came})
		if !h.judging {
			h.judging = true
			h.workers.Go(h.judgePushes)
		}
	}
}

// stands reports whether requests of Cloudly on a socket are served. The caller
// holds mu.
func (h *Hub) stands(sock *typedsocket.Socket) bool {
	return h.attached && h.upstream == sock && !h.draining && !h.closed
}

// judgePushes judges what waits, and ends when nothing does.
func (h *Hub) judgePushes() {
	for {
		h.mu.Lock()
		if len(h.pushes) == 0 {
			h.pushes, h.judging = nil, false
			h.mu.Unlock()
			return
		}
		x := h.pushes[0]
		h.pushes[0], h.pushes = push{}, h.pushes[1:]
		h.mu.Unlock()
		h.judgePush(x)
	}
}

// judgePush judges one pushed network and answers.
func (h *Hub) judgePush(x push) {
	defer func() {
		if h.cfg.Log.Recovered(recover(), field.Duty(Name)) {
			x.r.Fail()
		}
	}()
	request, err := contract.ReadApplyVPNNetworkRequest(x.r.Body())
	if err != nil {
		h.refuseNetwork(pushed, networkInvalid, 0, field.Error(err))
		refuse(x.r, refusal(VPNNetworkInvalid, reasonsOf(err)))
		return
	}
	o := h.takeOver(&request.Network, pushed, x.custody, x.number)
	if o.effective != nil {
		timer := time.NewTimer(applyWait)
		defer timer.Stop()
		select {
		case <-o.effective:
		case <-timer.C:
		}
	}
	h.answer(x, o)
}

// answer tells Cloudly what became of its network. It does so under the lock, so
// that no answer leaves behind an end of custody.
func (h *Hub) answer(x push, o outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x.custody != h.custody || o.how == networkNotReady {
		refuse(x.r, notReady())
		return
	}
	if refused, ok := o.decision.Refusal(); ok {
		refuse(x.r, &refused)
		return
	}
	answer := contract.ApplyVPNNetworkAnswer{AppliedRevision: h.state.applied, State: h.state.name()}
	if o.how == networkFailed {
		answer.State = contract.VPNNetworkFailed
	}
	x.r.Answer(answer.AppendJSON(nil))
}

// outcome is what became of a network.
type outcome struct {
	how      networkEnd
	decision network.Decision
	// effective is closed when nothing leaves any more that the network forbids; nil
	// unless it took the place of another.
	effective <-chan struct{}
}

var decisionEnds = [network.Decisions]networkEnd{
	network.RevisionLower: networkStale, network.RevisionReused: networkStale,
	network.AuthorityForeign: networkForeign, network.PrefixMoved: networkForeign,
	network.Replay: networkReplayed, network.Accepted: networkAccepted, network.Emptied: networkEmptied,
}

// takeOver decides about a network that came in some custody, nil for that there is
// none, and puts it in force. number is that of the push, or of the last push that
// had come when the pull began: revisions say which of two networks is the newer, but
// only this that Cloudly had none before it pushed one.
func (h *Hub) takeOver(next *contract.VPNNetwork, from origin, custody, number uint64) outcome {
	defer h.flush()
	h.applying.Lock()
	defer h.applying.Unlock()
	if next == nil && h.overtaken(number) {
		h.metrics.networks.Of(from, networkStale).Inc()
		return outcome{how: networkStale, decision: network.Replay}
	}
	t := h.table.Load()
	decision := network.AdmitPulled(t.Network(), next)
	o := outcome{how: decisionEnds[decision], decision: decision}
	if !decision.Takes() {
		if from == pushed && decision == network.Replay {
			h.took(number)
		}
		if _, refused := decision.Refusal(); refused {
			h.refuseNetwork(from, o.how, next.Revision, field.Reason(decision.String()))
		} else {
			h.metrics.networks.Of(from, o.how).Inc()
		}
		return o
	}
	made := policy.Empty(t)
	if next != nil {
		var err error
		if made, err = h.compile(t, *next, h.reckoned(t.Network(), *next)); err != nil {
			h.failNetwork(from, next.Revision, err)
			return outcome{how: networkFailed, decision: decision}
		}
	}
	failpoint.Reach(failpoint.NetworkCompiled)

	h.mu.Lock()
	if custody != h.custody || h.draining || h.closed {
		h.mu.Unlock()
		h.metrics.networks.Of(from, networkNotReady).Inc()
		return outcome{how: networkNotReady, decision: decision}
	}
	if from == pushed {
		h.taken = number
	}
	why := endedWithdrawn
	if next == nil {
		why = endedEmptied
	}
	over := h.enforce(made, why)
	h.remember(t, made)
	h.state.applying, h.state.failed = true, false
	h.state.since, h.state.origin = h.cfg.Wall(), from
	h.tellNetwork(t, next, from, len(over))
	h.mu.Unlock()
	failpoint.Reach(failpoint.NetworkInForce)

	h.metrics.networks.Of(from, o.how).Inc()
	effective := h.barrier(made)
	settled := make(chan struct{})
	settle := func() { h.settle(made); close(settled) }
	select {
	case <-effective:
		settle()
	default:
		h.workers.Go(func() { <-effective; settle() })
	}
	o.effective = settled
	return o
}

// reckoned is the instant from which the deadlines of a network are reckoned.
func (h *Hub) reckoned(held *contract.VPNNetwork, next contract.VPNNetwork) network.Instant {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clock.At(held, next, now)
}

// took notes the push of a network that is in force already: Cloudly has it still.
func (h *Hub) took(number uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken = max(h.taken, number)
}

// overtaken reports whether a network was taken over, or was in force, that was pushed
// behind a number.
func (h *Hub) overtaken(number uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.taken > number
}

// tellNetwork publishes what changed. The caller holds mu.
func (h *Hub) tellNetwork(was *policy.Table, next *contract.VPNNetwork, from origin, over int) {
	switch {
	case next != nil:
		h.publish(NetworkApplied, field.Outcome(from.String()), field.Revision(next.Revision), field.Count(len(next.Nodes)))
	case was.Network() != nil:
		h.publish(NetworkEmptied, field.Revision(was.Revision()), field.Count(over))
	}
}

// refuseNetwork tells of a network that was not taken over.
func (h *Hub) refuseNetwork(from origin, how networkEnd, revision int64, why field.Field) {
	h.metrics.networks.Of(from, how).Inc()
	h.mu.Lock()
	h.publish(NetworkRefused, field.Outcome(from.String()), field.Revision(revision), why)
	h.mu.Unlock()
	h.flush()
}

// failNetwork tells of a network that could not be taken over.
func (h *Hub) failNetwork(from origin, revision int64, err error) {
	h.metrics.networks.Of(from, networkFailed).Inc()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.failed = true
	h.publish(NetworkFailed, field.Outcome(from.String()), field.Revision(revision), field.Error(err))
}
