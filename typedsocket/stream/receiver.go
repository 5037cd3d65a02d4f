package stream

import (
	"context"
	"io"

	"serve.zone/relay/typedsocket/buffer"
)

// Read reads received bytes and waits for some. It returns io.EOF once the
// sender ended and length and digest were right; bytes that differ from the
// descriptor end the stream with an IntegrityError instead. Bytes read before
// that are unproven: what must not act on unproven bytes keeps back the last
// of them until io.EOF.
func (s *Stream) Read(p []byte) (int, error) {
	if err := s.take(Receive); err != nil {
		return 0, err
	}
	defer s.give()
	if len(p) == 0 {
		return 0, nil
	}
	chunk, err := s.nextChunk()
	if err != nil {
		return 0, err
	}
	n := copy(p, chunk)
	s.hash.Write(chunk[:n])
	return n, s.consumed(n)
}

// WriteTo writes received bytes to w, each buffer as it came, until the end as
// Read reports it. An error of w is returned as it is and leaves the stream
// open, with the bytes that w did not take still to be read. An end of the
// stream does not interrupt a write to w in progress.
func (s *Stream) WriteTo(w io.Writer) (total int64, err error) {
	if err := s.take(Receive); err != nil {
		return 0, err
	}
	defer s.give()
	for {
		chunk, err := s.nextChunk()
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
		n, err := w.Write(chunk)
		if err == nil && n != len(chunk) {
			err = io.ErrShortWrite
		}
		n = min(max(n, 0), len(chunk))
		s.hash.Write(chunk[:n])
		total += int64(n)
		if failed := s.consumed(n); err == nil {
			err = failed
		}
		if err != nil {
			return total, err
		}
	}
}

// nextChunk waits for bytes and returns those of one buffer, which the call in
// progress may read without the lock until it calls consumed; or io.EOF; or
// why there are no more.
func (s *Stream) nextChunk() ([]byte, error) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	for {
		if s.state == stateEnded {
			if s.err == nil {
				return nil, io.EOF
			}
			return nil, s.err
		}
		if chunk := s.in.next(); chunk != nil {
			return chunk, nil
		}
		if s.ended {
			return nil, s.drained()
		}
		s.wait(context.Background())
	}
}

// drained proves the bytes at their end.
func (s *Stream) drained() error {
	if s.sum == nil {
		sum := s.digest()
		// The length was judged when the end came.
		if s.integrity != nil && sum.Digest != s.integrity.Digest {
			return s.differs(kindReject, ReasonIntegrityDigest)
		}
		s.sum = &sum
	}
	return io.EOF
}

// consumed notes that n bytes of the chunk in hand were read, and lets the
// sender send more once half the window was.
func (s *Stream) consumed(n int) error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.stats.Held -= s.in.read(n)
	s.read += uint64(n)
	window := uint64(s.m.cfg.Window)
	if s.state != stateOpen || s.permit-s.read > window/2 {
		return nil
	}
	return s.grant(min(s.read+window, MaxTotal))
}

// grant permits the sender a total. A credit that cannot leave would stop the
// stream for ever, so it ends it.
func (s *Stream) grant(total uint64) error {
	s.permit = total
	if err := s.m.control(kindCredit, s.number, total, ""); err != nil {
		return s.carrierFailed(err)
	}
	return nil
}

// takeData keeps the bytes of a data frame. It reports whether it kept the
// buffer.
func (s *Stream) takeData(f frame, b *buffer.Buffer) bool {
	n := uint64(len(f.payload))
	if s.integrity != nil && s.moved+n > uint64(s.integrity.ByteLength) {
		s.differs(kindReject, ReasonIntegrityLength)
		return false
	}
	b.Keep(HeaderSize, len(f.payload))
	s.m.stats.Held += s.in.put(b)
	s.m.stats.BytesIn += n
	s.moved += n
	s.progressed()
	return true
}

// takeEnd notes that all bytes have arrived.
func (s *Stream) takeEnd() {
	if s.integrity != nil && s.moved != uint64(s.integrity.ByteLength) {
		s.differs(kindReject, ReasonIntegrityLength)
		return
	}
	s.ended = true
	s.progressed()
}

// Accept tells the sender that all bytes are stored, and ends the stream. It
// is allowed once Read or WriteTo has reported the end, and returns the
// receipt it gave, also when called again.
func (s *Stream) Accept() (Receipt, error) {
	if s.direction != Receive {
		return Receipt{}, s.m.wrap(ErrDirection)
	}
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.state == stateEnded {
		return s.receipt, s.err
	}
	if s.sum == nil {
		return Receipt{}, s.m.wrap(ErrNotDrained)
	}
	raw := appendReceipt(nil, s.id, *s.sum)
	if err := s.m.control(kindAccept, s.number, s.moved, string(raw)); err != nil {
		return Receipt{}, s.carrierFailed(err)
	}
	s.receipt = Receipt{Raw: raw, Integrity: *s.sum}
	s.finish(OutcomeAccepted, nil)
	return s.receipt, nil
}

// Reject refuses the bytes, at any time before Accept, and ends the stream
// with a RejectedError on both sides. The reason follows the rule of Abort.
func (s *Stream) Reject(reason string) error {
	if s.direction != Receive {
		return s.m.wrap(ErrDirection)
	}
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.state == stateEnded {
		return s.over()
	}
	reason = boundReason(reason)
	s.fail(OutcomeRejected, &RejectedError{Peer: s.m.cfg.Peer, Reason: reason}, kindReject, reason)
	return nil
}

// KeepAlive tells the sender that this side is still at work on what it has,
// so that storing the bytes may take longer than the sender's idle limit. A
// caller that has work of its own to bound calls it about every 20 s.
func (s *Stream) KeepAlive() error {
	if s.direction != Receive {
		return s.m.wrap(ErrDirection)
	}
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	switch s.state {
	case stateEnded:
		return s.over()
	case stateOffered:
		return nil
	}
	return s.grant(s.permit)
}
