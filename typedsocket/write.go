package typedsocket

import (
	"errors"
	"net"
	"time"

	"serve.zone/relay/typedsocket/buffer"
	"serve.zone/relay/typedsocket/queue"
)

// longAgo as a deadline interrupts what is in progress.
var longAgo = time.Unix(1, 0)

// errCut is what a write meets when the socket was cut meanwhile.
var errCut = errors.New("socket cut")

// write is the socket's only writer. It sends, in this order of preference: a
// pong, a ping that is due, own frames, flows. Small frames are gathered, so
// that what is queued leaves in one write. It ends with the socket.
func (s *Socket) write(k keepalive) {
	w := frameWriter{s: s}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		v := k.step(time.Since(s.born), time.Duration(s.heard.Load()))
		if v.dead {
			s.fail(CloseSilent, true, "nothing heard for "+DeadAfter.String(), nil)
		}
		more, err := w.round(v.ping)
		switch {
		case err == nil && !more && s.over():
			s.windUp(true)
			return
		case err != nil:
			// Does nothing when the socket has ended already.
			s.fail(closeAbnormal, true, transportWhy("write", err), err)
			s.windUp(!w.torn)
			return
		case more:
			continue
		}
		timer.Reset(v.wait)
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
func (s *Socket) windUp(sound bool) {
	s.mu.Lock()
	end := s.end
	var left []queue.Item
	s.queue.Drain(func(item queue.Item) { left = append(left, item) })
	s.mu.Unlock()
	for _, item := range left {
		drop(item)
	}
	close(s.quiet)

	if sound && end.Code != closeAbnormal {
		s.sayClose(end)
	}
	s.link.Conn.Close()
	// A connection whose Close does not end its Read must not hold us.
	late := time.NewTimer(closeWait)
	defer late.Stop()
	select {
	case <-s.readDone:
		s.ws.CloseNow()
	case <-late.C:
	}
	close(s.done)
}

// sayClose sends the close frame and, when the end was our idea, waits for
// the peer's (RFC 6455 §7.1.1).
func (s *Socket) sayClose(end *EndError) {
	var payload []byte
	switch {
	case !end.Remote:
		payload = closePayload(end.Code, end.Why)
	case end.Code != closeNoStatus:
		payload = closePayload(end.Code, "")
	}
	var mask *[4]byte
	if s.client {
		var source maskSource
		key := source.next()
		mask = &key
	}
	deadline := time.Now().Add(closeWait)
	s.link.SetWriteDeadline(deadline)
	if _, err := s.link.Conn.Write(appendControl(nil, opClose, payload, mask)); err != nil || end.Remote {
		return
	}
	s.link.SetReadDeadline(deadline)
	late := time.NewTimer(closeWait)
	defer late.Stop()
	select {
	case <-s.readDone:
	case <-late.C:
	}
}

// frameWriter turns queued frames into writes.
type frameWriter struct {
	s     *Socket
	masks maskSource
	items []queue.Item   // the batch being written
	buf   *buffer.Buffer // gathers small frames; nil while none are
	torn  bool           // a frame is half written
}

// round sends one batch. It reports whether more may wait.
func (w *frameWriter) round(ping bool) (more bool, err error) {
	control, err := w.collect(ping)
	if err != nil || len(control) == 0 && len(w.items) == 0 {
		return false, err
	}
	if len(control) == 0 && len(w.items) == 1 {
		err = w.direct(&w.items[0])
	} else {
		err = w.gather(control)
	}
	for i := range w.items {
		w.ended(&w.items[i], err == nil)
	}
	clear(w.items)
	w.items = w.items[:0]
	return true, err
}

// collect makes the control frames that go before everything else, and takes
// from the queue as much as one write gathers, or one large frame.
func (w *frameWriter) collect(ping bool) (control []byte, err error) {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil && !s.flush {
		return nil, errCut
	}
	if s.pong != nil {
		control = appendControl(control, opPong, s.pong, w.mask())
		s.pong = nil
	}
	if ping {
		control = appendControl(control, opPing, nil, w.mask())
		s.counts.pings.Add(1)
	}
	for size := 0; size < writeStep; {
		item, ok := s.queue.Pop()
		if !ok {
			break
		}
		w.items = append(w.items, item)
		size += item.Buf.Len() + maxHeader
	}
	return control, nil
}

// gather writes control frames and the batch, small frames in one write.
func (w *frameWriter) gather(control []byte) error {
	w.buf = buffer.Get(writeStep)
	defer func() { w.buf.Release(); w.buf = nil }()
	w.buf.Append(control)
	for i := range w.items {
		item := &w.items[i]
		need := item.Buf.Len() + maxHeader
		if need >= gatherBelow || w.buf.Len()+need > writeStep {
			if err := w.flush(); err != nil {
				return err
			}
		}
		if need >= gatherBelow {
			if err := w.direct(item); err != nil {
				return err
			}
			continue
		}
		w.append(item)
	}
	return w.flush()
}

// append puts a small frame behind those already gathered.
func (w *frameWriter) append(item *queue.Item) {
	var room [maxHeader]byte
	header, mask := w.header(room[:0], item)
	if item.Buf.Secret() {
		w.buf.Erase()
	}
	w.buf.Append(header)
	at := w.buf.Len()
	w.buf.Append(item.Buf.Bytes())
	if mask != nil {
		applyMask(w.buf.Bytes()[at:], *mask)
	}
}

// direct writes a frame from where it lies.
func (w *frameWriter) direct(item *queue.Item) error {
	var room [maxHeader]byte
	header, mask := w.header(room[:0], item)
	if mask != nil {
		applyMask(item.Buf.Bytes(), *mask)
	}
	return w.steps(item.Buf.Framed(header))
}

// header makes a frame's header, and counts and records the frame.
func (w *frameWriter) header(dst []byte, item *queue.Item) ([]byte, *[4]byte) {
	opcode := byte(opText)
	if item.Binary {
		opcode = opBinary
	}
	n := item.Buf.Len()
	w.s.counts.framesOut.Add(1)
	w.s.counts.bytesOut.Add(uint64(n))
	if w.s.cfg.Recorder != nil {
		w.s.cfg.Recorder.Sent(item.Binary, item.Buf.Bytes())
	}
	mask := w.mask()
	return appendHeader(dst, opcode, n, mask), mask
}

// mask returns a fresh key on a client, nil on a server (RFC 6455 §5.1).
func (w *frameWriter) mask() *[4]byte {
	if !w.s.client {
		return nil
	}
	key := w.masks.next()
	return &key
}

// flush writes what was gathered.
func (w *frameWriter) flush() error {
	if w.buf.Len() == 0 {
		return nil
	}
	err := w.steps(w.buf.Bytes())
	w.buf.Reset()
	return err
}

// steps writes p in pieces, each with a deadline of its own: a slow peer
// lives as long as it takes one piece within writeStall.
func (w *frameWriter) steps(p []byte) error {
	for len(p) > 0 {
		n := len(p)
		if n > writeStep+writeSlack {
			n = writeStep
		}
		if err := w.arm(); err != nil {
			return err
		}
		if _, err := w.s.link.Conn.Write(p[:n]); err != nil {
			w.torn = true
			return err
		}
		p = p[n:]
		w.torn = len(p) > 0
	}
	return nil
}

// arm sets the deadline of the next write, unless the socket was cut.
func (w *frameWriter) arm() error {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	deadline := time.Now().Add(writeStall)
	if w.s.end != nil {
		if !w.s.flush {
			return errCut
		}
		if w.s.flushEnd.Before(deadline) {
			deadline = w.s.flushEnd
		}
	}
	return w.s.link.SetWriteDeadline(deadline)
}

// ended gives a frame's memory back and tells its owner.
func (w *frameWriter) ended(item *queue.Item, left bool) {
	item.Buf.Release()
	if item.Sent != nil {
		item.Sent(left)
	}
}

// transportWhy names a transport error without quoting it.
func transportWhy(what string, err error) string {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return what + " stalled for " + writeStall.String()
	case errors.Is(err, net.ErrClosed):
		return "connection closed"
	}
	return what + " failed"
}
