package typedsocket

import (
	"slices"
	"time"
	"unicode/utf8"

	"serve.zone/relay/typedsocket/buffer"
	"serve.zone/relay/typedsocket/queue"
	"serve.zone/relay/typedsocket/stream"
)

// frameWriter turns queued frames into writes.
type frameWriter struct {
	s         *Socket
	keepalive *keepalive
	wait      time.Duration // until keepalive wants to be asked again
	masks     maskSource
	items     []framed // the batch being written
	drops     uint64   // Socket.drops when the batch was taken
	torn      bool     // a frame is half written

	// What waits to be written in one go, nil when nothing does: control frames,
	// then those of the batch from index gathered on that were not dropped.
	buf      *buffer.Buffer
	control  []byte
	gathered int
}

// framed is a frame of a batch.
type framed struct {
	queue.Item
	dropped bool // by DropFlows, before it left whole
}

// end ends a frame that is out of the queue.
func (f *framed) end(left bool) {
	f.End(left && !f.dropped)
	if o, ok := f.Owner.(dropped); ok && f.dropped {
		o.dropped()
	}
}

// round sends one batch. It reports whether more may wait.
func (w *frameWriter) round() (more bool, err error) {
	control, err := w.controls()
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
		w.items[i].end(err == nil)
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
		w.items = append(w.items, framed{Item: item})
		size += item.Buf.Len() + maxHeader
	}
	w.drops = s.drops
	s.writing = control || len(w.items) > 0
	s.easeLocked()
	return nil
}

// rest tells who waits in Cut or DropFlows that nothing is in hand.
func (w *frameWriter) rest() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.writing = false
	tell(&w.s.rested)
	w.s.carryingLocked(false)
}

// controls makes the pong and the ping that are due, which go before everything
// else. It fails when the peer is dead; the socket is ended by write, when no
// frame is in hand any more.
func (w *frameWriter) controls() (frames []byte, err error) {
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
	w.control, w.gathered = control, 0
	for i := range w.items {
		item := &w.items[i]
		need := item.Buf.Len() + maxHeader
		if need >= gatherBelow || w.buf.Len()+need > writeStep {
			if err := w.flush(i); err != nil {
				return err
			}
		}
		if need >= gatherBelow {
			if err := w.direct(item); err != nil {
				return err
			}
			w.gathered = i + 1
			continue
		}
		w.append(item)
	}
	return w.flush(len(w.items))
}

// append puts a small frame behind those already gathered.
func (w *frameWriter) append(item *framed) {
	if item.Buf.Secret() {
		w.buf.Erase()
	}
	var room [maxHeader]byte
	mask := w.mask()
	w.buf.Append(appendHeader(room[:0], finBit|opcodeOf(item), item.Buf.Len(), mask))
	at := w.buf.Len()
	w.buf.Append(item.Buf.Bytes())
	if mask != nil {
		applyMask(w.buf.Bytes()[at:], *mask)
	}
}

// flush writes what was gathered: the frames of the batch before index end.
func (w *frameWriter) flush(end int) error {
	items := w.items[w.gathered:end]
	w.gathered = end
	if w.buf.Len() == 0 {
		return nil
	}
	flow := slices.ContainsFunc(items, func(f framed) bool { return f.OfFlow() })
	revoked, err := w.arm(flow)
	if err != nil {
		return err
	}
	if flow && revoked {
		w.regather(items)
	}
	for i := range items {
		if !items[i].dropped {
			w.count(&items[i])
		}
	}
	if w.buf.Len() > 0 {
		err = w.write(w.buf.Bytes())
	}
	w.buf.Reset()
	w.control = nil
	return err
}

// regather gathers anew without the frames of flows.
func (w *frameWriter) regather(items []framed) {
	w.buf.Reset()
	w.buf.Append(w.control)
	for i := range items {
		if items[i].dropped = items[i].OfFlow(); items[i].dropped {
			w.s.counts.dropped.Add(1)
			continue
		}
		w.append(&items[i])
	}
}

// A stream's frame leaves in one piece: what a fragmented message needs to be
// broken off, text that is no JSON when it is cut short, a stream's has not.
const _ = uint(writeStep + writeSlack - stream.HeaderSize - stream.ChunkSize)

// direct writes a frame from where it lies. A large one leaves in fragments
// (RFC 6455 §5.4), so that pongs and pings can go between them: at the speed of
// a slow peer one large frame takes minutes.
func (w *frameWriter) direct(item *framed) error {
	opcode, b := opcodeOf(item), item.Buf
	for {
		revoked, err := w.arm(item.OfFlow())
		if err != nil {
			return err
		}
		if revoked && item.OfFlow() {
			item.dropped = true
			w.s.counts.dropped.Add(1)
			if opcode == opContinuation {
				return w.breakOff(b)
			}
			return nil
		}
		if opcode != opContinuation {
			w.count(item)
		}
		n, fin := b.Len(), byte(finBit)
		if n > writeStep+writeSlack {
			n, fin = writeStep, 0
		}
		if err := w.fragment(b, fin|opcode, n); err != nil || fin != 0 {
			return err
		}
		control, err := w.controls()
		if err == nil && len(control) > 0 {
			if _, err = w.arm(false); err == nil {
				err = w.write(control)
			}
		}
		if err != nil {
			return err
		}
		b.Keep(n, b.Len()-n)
		opcode = opContinuation
	}
}

// breakOff ends a message after some of its fragments. What has left is no JSON
// without the rest, so the peer has no message (DropFlows). Of b, the rest, it
// sends what completes a character that was begun: text that is no UTF-8 would
// cost the socket (RFC 6455 §8.1).
func (w *frameWriter) breakOff(b *buffer.Buffer) error {
	n := 0
	for n < min(b.Len(), utf8.UTFMax-1) && !utf8.RuneStart(b.Bytes()[n]) {
		n++
	}
	return w.fragment(b, finBit|opContinuation, n)
}

// fragment writes the first n bytes of b as a frame. The header goes in front of
// them, where the fragment before lay, which has left.
func (w *frameWriter) fragment(b *buffer.Buffer, first byte, n int) error {
	var room [maxHeader]byte
	mask := w.mask()
	if mask != nil {
		applyMask(b.Bytes()[:n], *mask)
	}
	header := appendHeader(room[:0], first, n, mask)
	return w.write(b.Framed(header)[:len(header)+n])
}

// count counts and records a frame that begins to be written.
func (w *frameWriter) count(item *framed) {
	w.s.counts.framesOut.Add(1)
	w.s.counts.bytesOut.Add(uint64(item.Buf.Len()))
	if w.s.cfg.Recorder != nil {
		w.s.cfg.Recorder.Sent(item.Binary, item.Buf.Bytes())
	}
}

func opcodeOf(item *framed) byte {
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

// write writes whole frames or fragments: about writeStep bytes at most, under
// the deadline that arm has set.
func (w *frameWriter) write(p []byte) error {
	_, err := w.s.link.Conn.Write(p)
	w.torn = err != nil
	return err
}

// arm sets the deadline of the next write, unless the socket was cut. flow tells
// that frames of flows are in it. It reports whether these were dropped since
// the batch was taken: then the write is to be made without them.
func (w *frameWriter) arm(flow bool) (revoked bool, err error) {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	silence := time.Since(s.born) - time.Duration(s.heard.Load())
	deadline := time.Now().Add(max(DeadAfter-silence, writeGrace))
	if s.end != nil {
		if !s.flush || !time.Now().Before(s.flushEnd) {
			return false, errCut
		}
		// A piece that has begun gets a little more, so that a peer that
		// reads slowly is told why at the edge of a frame.
		if late := s.flushEnd.Add(closeWait); late.Before(deadline) {
			deadline = late
		}
	}
	revoked = w.drops != s.drops
	s.carryingLocked(flow && !revoked)
	return revoked, s.link.SetWriteDeadline(deadline)
}
