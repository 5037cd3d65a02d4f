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

	if !w.torn && end.Code != closeAbnormal {
		w.sayClose(end)
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
	<-s.told
	close(s.done)
}

// sayClose sends the close frame and, when the end was our idea, waits for
// the peer's (RFC 6455 §7.1.1).
func (w *frameWriter) sayClose(end *EndError) {
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
	s         *Socket
	keepalive *keepalive
	wait      time.Duration // until keepalive wants to be asked again
	masks     maskSource
	items     []queue.Item   // the batch being written
	buf       *buffer.Buffer // gathers small frames; nil while none are
	torn      bool           // a frame is half written
}

// round sends one batch. It reports whether more may wait.
func (w *frameWriter) round() (more bool, err error) {
	control, err := w.control()
	if err != nil {
		return false, err
	}
	if err := w.collect(len(control) > 0); err != nil || len(control) == 0 && len(w.items) == 0 {
		return false, err
	}
	if len(control) == 0 && len(w.items) == 1 {
		err = w.direct(&w.items[0])
	} else {
		err = w.gather(control)
	}
	w.rest()
	for i := range w.items {
		w.items[i].End(err == nil)
	}
	clear(w.items)
	w.items = w.items[:0]
	return true, err
}

// collect takes from the queue as much as one write gathers, or one large
// frame. control tells that there is something to write besides.
func (w *frameWriter) collect(control bool) error {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil && !s.flush {
		return errCut
	}
	for size := 0; size < writeStep; {
		item, ok := s.queue.Pop()
		if !ok {
			break
		}
		w.items = append(w.items, item)
		size += item.Buf.Len() + maxHeader
	}
	s.writing = control || len(w.items) > 0
	return nil
}

// rest tells who waits in Cut that nothing is in hand.
func (w *frameWriter) rest() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.writing = false
	if w.s.rested != nil {
		close(w.s.rested)
		w.s.rested = nil
	}
}

// control makes the pong and the ping that are due, which go before everything
// else. It fails when the peer is dead; the socket is ended by write, when no
// frame is in hand any more.
func (w *frameWriter) control() (frames []byte, err error) {
	s := w.s
	v := w.keepalive.step(time.Since(s.born), time.Duration(s.heard.Load()))
	w.wait = v.wait
	if v.dead {
		return nil, errDead
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pong != nil {
		frames = appendControl(frames, opPong, s.pong, w.mask())
		s.pong = nil
	}
	if v.ping {
		frames = appendControl(frames, opPing, nil, w.mask())
		s.counts.pings.Add(1)
	}
	return frames, nil
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
	opcode := w.count(item)
	if item.Buf.Secret() {
		w.buf.Erase()
	}
	var room [maxHeader]byte
	mask := w.mask()
	w.buf.Append(appendHeader(room[:0], finBit|opcode, item.Buf.Len(), mask))
	at := w.buf.Len()
	w.buf.Append(item.Buf.Bytes())
	if mask != nil {
		applyMask(w.buf.Bytes()[at:], *mask)
	}
}

// direct writes a frame from where it lies. A large one leaves in fragments
// (RFC 6455 §5.4), so that pongs and pings can go between them: at the speed of
// a slow peer one large frame takes minutes.
func (w *frameWriter) direct(item *queue.Item) error {
	opcode, b := w.count(item), item.Buf
	for {
		n, fin := b.Len(), byte(finBit)
		if n > writeStep+writeSlack {
			n, fin = writeStep, 0
		}
		var room [maxHeader]byte
		mask := w.mask()
		if mask != nil {
			applyMask(b.Bytes()[:n], *mask)
		}
		// The header goes where the fragment before it lay, which has left.
		header := appendHeader(room[:0], fin|opcode, n, mask)
		if err := w.piece(b.Framed(header)[:len(header)+n]); err != nil {
			return err
		}
		if fin != 0 {
			return nil
		}
		control, err := w.control()
		if err == nil && len(control) > 0 {
			err = w.piece(control)
		}
		if err != nil {
			return err
		}
		b.Keep(n, b.Len()-n)
		opcode = opContinuation
	}
}

// count counts and records a frame and returns its opcode.
func (w *frameWriter) count(item *queue.Item) byte {
	w.s.counts.framesOut.Add(1)
	w.s.counts.bytesOut.Add(uint64(item.Buf.Len()))
	if w.s.cfg.Recorder != nil {
		w.s.cfg.Recorder.Sent(item.Binary, item.Buf.Bytes())
	}
	if item.Binary {
		return opBinary
	}
	return opText
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
	err := w.piece(w.buf.Bytes())
	w.buf.Reset()
	return err
}

// piece writes whole frames or fragments: about writeStep bytes at most, under
// one deadline.
func (w *frameWriter) piece(p []byte) error {
	if err := w.arm(); err != nil {
		return err
	}
	_, err := w.s.link.Conn.Write(p)
	w.torn = err != nil
	return err
}

// arm sets the deadline of the next write, unless the socket was cut.
func (w *frameWriter) arm() error {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	silence := time.Since(s.born) - time.Duration(s.heard.Load())
	deadline := time.Now().Add(max(DeadAfter-silence, writeGrace))
	if s.end != nil {
		if !s.flush || !time.Now().Before(s.flushEnd) {
			return errCut
		}
		// A piece that has begun gets a little more, so that a peer that
		// reads slowly is told why at the edge of a frame.
		if late := s.flushEnd.Add(closeWait); late.Before(deadline) {
			deadline = late
		}
	}
	return s.link.SetWriteDeadline(deadline)
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
