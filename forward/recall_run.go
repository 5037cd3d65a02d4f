package forward

import (
	"time"

	"serve.zone/relay/typedsocket"
)

// runRecall closes the sockets of unconfirmed bindings, one by one, until none
// is left, the session to Cloudly has ended, or stop is closed.
func (f *Forward) runRecall(upstream *typedsocket.Socket, stop <-chan struct{}) {
	begun := time.Now()
	timer := time.NewTimer(recallSettle)
	defer timer.Stop()
	var plan recall
	var last string // the node whose socket was closed last
	for {
		select {
		case <-stop:
			return
		case <-upstream.Ending():
			return
		case <-f.returned:
		case <-timer.C:
		}
		since := time.Since(begun)
		if since < recallSettle {
			timer.Reset(recallSettle - since)
			continue
		}
		left, back := f.recallState(last)
		if left == 0 {
			return
		}
		if plan.total == 0 {
			plan.total = left
		}
		wait := plan.next(back) - since
		if wait <= 0 {
			node, done := f.recallOne(upstream, stop, overdue(since))
			switch {
			case done:
				return
			case node == "":
				wait = recallRetry
			default:
				last, plan.closed, plan.last = node, plan.closed+1, since
				wait = plan.next(false) - since
			}
		}
		timer.Reset(max(wait, 0))
	}
}

// recallState returns how many bindings are unconfirmed, and whether a node has
// registered again.
func (f *Forward) recallState(node string) (left int, back bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.table.bindings[node]
	return f.table.unconfirmed(), b != nil && b.confirmed
}

// recallOne closes one socket and returns its node, "" when each that is left
// has a registration in flight. It reports done when nothing may be closed any
// more.
func (f *Forward) recallOne(upstream *typedsocket.Socket, stop <-chan struct{}, forced bool) (node string, done bool) {
	defer f.flush()
	// Whoever closes stop holds recallMu: after that nothing is closed here.
	f.recallMu.Lock()
	defer f.recallMu.Unlock()
	select {
	case <-stop:
		return "", true
	default:
	}
	if upstream.Err() != nil {
		return "", true
	}
	f.mu.Lock()
	b := f.table.recallable(forced)
	if b == nil {
		f.mu.Unlock()
		return "", false
	}
	f.leave(b.socket, departedRecalled)
	f.mu.Unlock()
	b.socket.sock.Close(typedsocket.CloseRegisterAgain, "the session to Cloudly is new: dial again and register")
	return b.node, false
}
