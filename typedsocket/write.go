package typedsocket

import (
	"errors"
	"net"
	"time"

	"serve.zone/relay/typedsocket/queue"
)

// longAgo as a deadline interrupts what is in progress.
var longAgo = time.Unix(1, 0)

// errCut is what a write meets when the socket was cut meanwhile, errDead when
// keepalive gives the peer up.
var (
	errCut  = errors.New("socket cut")
	errDead = errors.New("peer silent")
)

// write is the socket's only writer. It sends, in this order of preference: a
// pong, a ping that is due, own frames, flows. Small frames are gathered, so
// that what is queued leaves in one write. It ends with the socket.
func (s *Socket) write(k *keepalive) {
	w := frameWriter{s: s, keepalive: k}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		more, err := w.round()
		switch {
		case err == nil && !more && s.over():
			w.windUp()
			return
		case err != nil:
			// Either does nothing when the socket has ended already.
			if errors.Is(err, errDead) {
				s.fail(CloseSilent, false, "nothing heard for "+DeadAfter.String(), nil)
			}
			s.fail(closeAbnormal, true, transportWhy(err), err)
			w.windUp()
			return
		case more:
			continue
		}
		timer.Reset(w.wait)
		select {
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// over reports whether the socket has ended and has nothing left to flush.
func (s *Socket) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end != nil && (!s.flush || s.queue.Empty() || !time.Now().Before(s.flushEnd))
}

// windUp says goodbye when the connection still can carry it, and closes.
func (w *frameWriter) windUp() {
	s := w.s
	s.mu.Lock()
	end := s.end
	var left []queue.Item
	s.queue.Drain(func(item queue.Item) { left = append(left, item) })
	s.mu.Unlock()
	for _, item := range left {
		item.End(false)
	}

	said := !w.torn && end.Code != closeAbnormal && w.sayClose(end)
	s.hangUp(said)
	// A connection whose Close does not end its Read must not hold us.
	late := time.NewTimer(closeWait)
	defer late.Stop()
	select {
	case <-s.readDone:
		s.ws.CloseNow()
	case <-late.C:
	}
	<-s.told
	s.tellers.Wait()
	close(s.done)
}

// hangUp closes the connection. TLS says goodbye on its own, and gives a peer that
// takes nothing five seconds for it: where our own goodbye came to nothing that is
// left out, and otherwise it has closeWait.
func (s *Socket) hangUp(said bool) {
	if secured, ok := s.link.Conn.(interface{ NetConn() net.Conn }); ok {
		if said {
			late := time.AfterFunc(closeWait, func() { secured.NetConn().Close() })
			defer late.Stop()
		} else {
			secured.NetConn().Close()
		}
	}
	s.link.Conn.Close()
}

// sayClose sends the close frame and, when the end was our idea, waits for
// the peer's (RFC 6455 §7.1.1). It reports whether the peer took part.
func (w *frameWriter) sayClose(end *EndError) bool {
	s := w.s
	var payload []byte
	switch {
	case !end.Remote:
		payload = closePayload(end.Code, end.Why)
	case end.Code != closeNoStatus:
		payload = closePayload(end.Code, "")
	}
	deadline := time.Now().Add(closeWait)
	s.link.SetWriteDeadline(deadline)
	if _, err := s.link.Conn.Write(appendControl(nil, opClose, payload, w.mask())); err != nil || end.Remote {
		return err == nil
	}
	s.link.SetReadDeadline(deadline)
	late := time.NewTimer(closeWait)
	defer late.Stop()
	select {
	case <-s.readDone:
		return true
	case <-late.C:
		return false
	}
}

// transportWhy names an error of a write without quoting it.
func transportWhy(err error) string {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return "the peer took nothing of what was sent for too long"
	case errors.Is(err, net.ErrClosed):
		return "connection closed"
	}
	return "write failed"
}
