package listener

import (
	"context"
	"fmt"
	"slices"
	"time"

	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// Drain takes no new connection, socket or request, closes every socket with
// 1012 once nothing of it is in flight, spread over at most 2 s while they rest,
// and waits for plain requests (design §8). When ctx ends first, what is left is
// ended at once and the error says how much it was.
func (l *Listener) Drain(ctx context.Context) error {
	l.enter(draining)
	l.shut()
	closed, cut := l.closeInTurn(ctx)
	rested := l.work.Rest(ctx)
	last, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	if l.http.Shutdown(last) != nil {
		l.http.Close()
	}
	if !rested {
		l.publish(EventDrained, field.Count(closed), field.Outcome("cut-short"))
		return fmt.Errorf("drain the node listener: %d sockets were busy, or plain requests: %w", cut, ctx.Err())
	}
	l.publish(EventDrained, field.Count(closed), field.Outcome("finished"))
	return nil
}

// closeInTurn closes sockets one by one, as soon as each rests. It returns how
// many it closed so, and how many it closed busy when ctx ended.
func (l *Listener) closeInTurn(ctx context.Context) (closed, cut int) {
	waiting := l.sockets()
	step := min(closeStep, closeSpread/time.Duration(max(1, len(waiting))))
	timer := time.NewTimer(step)
	defer timer.Stop()
	for {
		waiting = slices.DeleteFunc(waiting, func(c *Conn) bool { return c.sock.Err() != nil })
		if at := slices.IndexFunc(waiting, (*Conn).rests); at >= 0 {
			waiting[at].restart()
			waiting = slices.Delete(waiting, at, at+1)
			closed++
		}
		if len(waiting) == 0 {
			return closed, 0
		}
		timer.Reset(step)
		select {
		case <-timer.C:
		case <-ctx.Done():
			for _, c := range waiting {
				c.restart()
			}
			return closed, len(waiting)
		}
	}
}

// rests reports whether nothing of the socket is in flight.
func (c *Conn) rests() bool {
	s := c.sock.Stats()
	return s.Serving == 0 && s.Pending == 0 && s.QueuedOwn == 0 && s.QueuedFlow == 0
}

func (c *Conn) restart() {
	c.sock.Close(typedsocket.CloseRestart, typedsocket.CloseRestart.Meaning())
}

// DropCustody ends every socket with 4002, those that have not registered yet
// too: an answer that belongs to the old custody may be on its way to them. When
// it returns, no byte that was queued for one of them leaves any more (contract
// §6.2). The listener stays bound, and new sockets are welcome.
func (l *Listener) DropCustody(why string) {
	conns := l.sockets()
	for _, c := range conns {
		c.sock.Cut(typedsocket.CloseCustodyEnded, typedsocket.CloseCustodyEnded.Meaning())
	}
	l.log.Info("listener-custody-dropped", field.Reason(why), field.Count(len(conns)))
}
