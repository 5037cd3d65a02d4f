package ingress

import (
	"serve.zone/relay/contract"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// push is a pushed table that waits to be judged.
type push struct {
	r    *typedsocket.Request
	crew *crew // of the custody in which it came
}

// PushTable serves pushClusterRouteTable on the socket to Cloudly: it is answered
// with the revision that is held after the decision (contract §11.1). Pushes are
// judged in the order in which they came, elsewhere than on the reader of the
// socket: all nodes' answers come over it.
func (i *Ingress) PushTable(r *typedsocket.Request) {
	r.Erase()
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case !i.stands(r.Socket()):
		i.metrics.tables.Of(pushed, tableNotReady).Inc()
		refuse(r, notReady())
	case len(i.pushes) >= maxPushes:
		i.metrics.tables.Of(pushed, tableOverloaded).Inc()
		refuse(r, refusal(contract.RelayOverloaded, "earlier tables have not been judged"))
	default:
		i.pushes = append(i.pushes, push{r, i.crew})
		if !i.judging {
			i.judging = true
			i.workers.Go(i.judgePushes)
		}
	}
}

// stands reports whether requests of Cloudly on a socket are served. The caller
// holds mu.
func (i *Ingress) stands(sock *typedsocket.Socket) bool {
	return i.roles.attached && i.upstream == sock && !i.draining
}

// judgePushes judges what waits, and ends when nothing does.
func (i *Ingress) judgePushes() {
	for {
		i.mu.Lock()
		if len(i.pushes) == 0 {
			i.pushes, i.judging = nil, false
			i.mu.Unlock()
			return
		}
		x := i.pushes[0]
		i.pushes[0], i.pushes = push{}, i.pushes[1:]
		i.mu.Unlock()
		i.judgePush(x)
	}
}

// judgePush judges one pushed table and answers.
func (i *Ingress) judgePush(x push) {
	defer i.recovered(x.r)
	next, err := judgeTable(x.r.Body())
	if err != nil {
		i.metrics.tables.Of(pushed, tableInvalid).Inc()
		i.refuseTable(pushed, err)
		refuse(x.r, refusal(RouteTableInvalid, reasonsOf(err)))
		return
	}
	next.since = i.cfg.Wall()
	i.decide(x.crew, next, func(now int64, current bool) {
		if !current {
			refuse(x.r, notReady())
			return
		}
		// Under the lock, so that it does not leave behind an end of custody.
		x.r.Answer(contract.PushRouteTableAnswer{AppliedRevision: now}.AppendJSON(nil))
	})
}

// judgeTable reads a pushed table into the memory it is held in.
func judgeTable(body []byte) (*held, error) {
	request, err := contract.ReadPushRouteTableRequest(body)
	if err != nil {
		return nil, err
	}
	return hold(request.Table, pushed), nil
}

// refuseTable tells of a table that broke a rule.
func (i *Ingress) refuseTable(o origin, err error) {
	i.mu.Lock()
	i.publish(RouteTableRefused, field.Outcome(o.String()), field.Error(err))
	i.mu.Unlock()
	i.flush()
}
