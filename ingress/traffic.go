package ingress

import (
	"context"
	"errors"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// Statistics serves getClusterTrafficStatistics on the socket to Cloudly. The
// ingresses are asked in the order of their nodes, one of them a page (contract
// §11.4, O17). A page that breaks a rule, and an ingress that does not answer, fail
// the call by name: what Cloudly reads must not have holes that it is not told of.
func (i *Ingress) Statistics(r *typedsocket.Request) {
	q, refused := judgeQuestion(r.Body())
	how := trafficInvalid
	if refused == nil {
		refused, how = i.ask(r, q)
	}
	if refused != nil {
		i.metrics.traffic.Of(how).Inc()
		refuse(r, refused)
	}
}

// ask has the ingress asked whose turn it is, or returns why not.
func (i *Ingress) ask(r *typedsocket.Request, q question) (*contract.Refusal, trafficEnd) {
	i.mu.Lock()
	defer i.mu.Unlock()
	nodes := i.roles.nodes()
	turn, any := at(nodes, q.cursor)
	switch {
	case !i.stands(r.Socket()):
		return notReady(), trafficNotReady
	case len(nodes) == 0:
		return refusal(contract.ClusterIngressNotRegistered, "no ingress of this cluster is registered"), trafficNone
	case !any: // those behind the cursor have left
		i.metrics.traffic.Of(trafficAnswered).Inc()
		r.Answer(contract.TrafficPage{}.AppendJSON(nil))
		return nil, 0
	case i.asking >= maxTraffic:
		return refusal(contract.RelayOverloaded, "earlier questions were not answered"), trafficOverloaded
	}
	x := &asking{i: i, crew: i.crew, r: r, p: i.roles.holders[turn.NodeID], node: turn.NodeID, request: q.asked(turn)}
	i.asking++
	i.run(r, x.run)
	return nil, 0
}

// asking is one question that waits for an ingress.
type asking struct {
	i       *Ingress
	crew    *crew
	r       *typedsocket.Request
	p       *peer
	node    string
	request contract.TrafficRequest
	settled bool // guarded by Ingress.mu
}

// run asks and answers.
func (x *asking) run() {
	defer x.settle()
	page, refused, how := x.page()
	if theirs, ok := refused.(foreign); ok {
		defer typedsocket.EraseRefusal(theirs.RemoteError)
	}
	i := x.i
	x.settle() // before the answer leaves, as registration.settle says
	var answer []byte
	if refused == nil {
		i.mu.Lock()
		page.NextCursor = behind(i.roles.nodes(), x.node, page.NextCursor)
		i.mu.Unlock()
		answer = page.AppendJSON(nil)
	}
	i.mu.Lock()
	defer i.flush()
	defer i.mu.Unlock()
	switch {
	case i.crew != x.crew || i.suspended():
		refused, how = notReady(), trafficNotReady
	case how == trafficPageInvalid:
		i.publish(TrafficPageRefused, field.Node(x.node))
	}
	i.metrics.traffic.Of(how).Inc()
	if refused != nil {
		refuse(x.r, refused)
		return
	}
	x.r.AnswerIn(flowOf(x.node), answer)
}

// settle ends the question.
func (x *asking) settle() {
	x.i.mu.Lock()
	defer x.i.mu.Unlock()
	if !x.settled {
		x.settled = true
		x.i.asking--
	}
}

// page asks the ingress for its page.
func (x *asking) page() (contract.TrafficPage, refusing, trafficEnd) {
	ctx, cancel := context.WithTimeout(x.p.ctx, trafficWait)
	defer cancel()
	answer, err := x.p.sock.Call(ctx, contract.MethodGetTrafficStatistics, x.request.AppendJSON(nil),
		typedsocket.CallOptions{Timeout: trafficWait})
	if err != nil {
		refused, how := x.failed(err)
		return contract.TrafficPage{}, refused, how
	}
	defer answer.Release()
	page, err := judgePage(answer.Response(), x.request, x.node)
	if err != nil {
		return page, refusal(TrafficPageInvalid, "node "+x.node+": "+reasonsOf(err)), trafficPageInvalid
	}
	return page, nil, trafficAnswered
}

// failed names why an ingress gave no page.
func (x *asking) failed(err error) (refusing, trafficEnd) {
	var declined *typedsocket.RemoteError
	switch {
	case errors.As(err, &declined):
		return foreign{declined}, trafficDeclined
	case errors.Is(err, typedsocket.ErrClosed), errors.Is(err, context.Canceled):
		return refusal(contract.ClusterIngressNotRegistered, "the ingress of node "+x.node+" has left"), trafficLeft
	}
	return refusal(IngressUnanswered, "the ingress of node "+x.node+" gave no valid answer within "+trafficWait.String()), trafficUnanswered
}

// foreign is an error of an ingress, which goes on to Cloudly as it came.
type foreign struct{ *typedsocket.RemoteError }

// Error returns the text as it came. It is for the wire alone.
func (f foreign) Error() string { return f.Text }

// AppendData appends the data as it came.
func (f foreign) AppendData(dst []byte) []byte {
	if f.Data == nil {
		return append(dst, "{}"...)
	}
	return append(dst, f.Data...)
}
