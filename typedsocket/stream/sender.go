package stream

import (
	"context"
	"io"

	"serve.zone/relay/typedsocket/buffer"
)

// Write sends p, in chunks, as far as the receiver and the carrier have room.
// It waits for both, and for the peer to open the stream. It keeps nothing of
// p. After an error the stream has ended, unless the error is ErrBusy,
// ErrDirection or, after CloseSend, ErrEnded.
func (s *Stream) Write(p []byte) (n int, err error) {
	if err := s.take(Send); err != nil {
		return 0, err
	}
	defer s.give()
	for n < len(p) {
		room, err := s.room()
		if err != nil {
			return n, err
		}
		part := p[n:min(len(p), n+room)]
		if err := s.queueData(buffer.Of(part)); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// ReadFrom sends what r returns until io.EOF, each read as a chunk of its own,
// straight from the buffer that it was read into. It reads only when the
// receiver and the carrier have room. It does not call CloseSend. An error of
// r is returned as it is and leaves the stream open. An end of the stream does
// not interrupt a read of r in progress.
func (s *Stream) ReadFrom(r io.Reader) (total int64, err error) {
	if err := s.take(Send); err != nil {
		return 0, err
	}
	defer s.give()
	empty := 0
	for {
		room, err := s.room()
		if err != nil {
			return total, err
		}
		n, err := s.fill(r, room)
		total += int64(n)
		switch {
		case err == io.EOF:
			return total, nil
		case err != nil:
			return total, err
		case n > 0:
			empty = 0
			continue
		}
		if empty++; empty == emptyReads {
			return total, io.ErrNoProgress
		}
	}
}

// fill reads from r once and queues what came.
func (s *Stream) fill(r io.Reader, room int) (int, error) {
	b := buffer.Get(room)
	n, err := r.Read(b.Free()[:room])
	if n <= 0 || n > room {
		b.Release()
		if n != 0 {
			return 0, errInvalidRead
		}
		return 0, err
	}
	b.Grown(n)
	if err := s.queueData(b); err != nil {
		return 0, err
	}
	return n, err
}

// room waits until a chunk may be queued and returns its largest size.
func (s *Stream) room() (int, error) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	for {
		switch {
		case s.state == stateEnded:
			return 0, s.over()
		case s.state == stateOpen && s.permit > s.moved && s.hasPlace():
			return int(min(ChunkSize, s.permit-s.moved)), nil
		}
		s.wait(context.Background())
	}
}

// hasPlace reports whether the carrier may get one more chunk of this stream.
func (s *Stream) hasPlace() bool { return s.queued.Load() <= MaxQueued-chunkMemory }

// queueData hands a chunk to the carrier. The call in progress is its caller,
// so what room promised still holds unless the stream has ended.
func (s *Stream) queueData(b *buffer.Buffer) error {
	n := uint64(b.Len())
	s.hash.Write(b.Bytes())
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.state == stateEnded {
		b.Release()
		return s.over()
	}
	if s.integrity != nil && s.moved+n > uint64(s.integrity.ByteLength) {
		b.Release()
		return s.differs(kindAbort, ReasonIntegrityLength)
	}
	if err := s.bulk(kindData, b); err != nil {
		return err
	}
	s.moved += n
	s.m.stats.BytesOut += n
	return nil
}

// bulk puts the header in front of a payload and queues the frame.
func (s *Stream) bulk(kind Kind, b *buffer.Buffer) error {
	h := header(kind, s.number, s.moved)
	b.Wrap(h[:], nil)
	size := int64(b.Size())
	s.queued.Add(size)
	err := s.m.cfg.Carrier.Bulk(s.flow, b, func() {
		s.queued.Add(-size)
		s.progressed()
	})
	if err != nil {
		s.queued.Add(-size)
		return s.carrierFailed(err)
	}
	return nil
}

// differs ends a stream whose bytes are not those of its descriptor.
func (s *Stream) differs(kind Kind, reason string) error {
	err := &IntegrityError{Peer: s.m.cfg.Peer, Reason: reason}
	s.fail(OutcomeIntegrity, err, kind, reason)
	return err
}

// CloseSend ends the bytes and waits for the receiver's verdict. It returns
// the receipt of an acceptance, or why there is none: a RejectedError, an
// AbortedError, a ProtocolError that wraps a ReceiptError, an IntegrityError
// when the bytes written are not those of the descriptor, ErrIdle when the
// peer shows no sign of life for IdleLimit. When ctx ends first the stream is
// aborted with ReasonCancelled. Called again after an acceptance it returns
// the same receipt.
func (s *Stream) CloseSend(ctx context.Context) (Receipt, error) {
	if err := s.take(Send); err != nil {
		return Receipt{}, err
	}
	defer s.give()
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	for s.state != stateEnded {
		if s.state == stateOpen && !s.ended && s.hasPlace() {
			if err := s.sendEnd(); err != nil {
				return Receipt{}, err
			}
		}
		if err := s.wait(ctx); err != nil {
			s.abort(ReasonCancelled, err)
		}
	}
	return s.receipt, s.err
}

// sendEnd queues the end behind the data, if the data are what they must be.
func (s *Stream) sendEnd() error {
	sum := s.digest()
	if s.integrity != nil {
		switch {
		case sum.ByteLength != s.integrity.ByteLength:
			return s.differs(kindAbort, ReasonIntegrityLength)
		case sum.Digest != s.integrity.Digest:
			return s.differs(kindAbort, ReasonIntegrityDigest)
		}
	}
	// An acceptance is judged by these, and may come as soon as the end left.
	s.sum = &sum
	s.ended = true
	return s.bulk(kindEnd, buffer.Get(0))
}

// takeCredit notes what the receiver permits. A total equal to the one before
// is a sign of life.
func (s *Stream) takeCredit(total uint64) {
	s.permit = total
	s.progressed()
}

// takeAccept ends the stream with the receiver's receipt.
func (s *Stream) takeAccept(f frame) error {
	receipt, err := readReceipt(f.payload, *s.sum)
	if err != nil {
		return s.breach(f, RuleReceipt, err)
	}
	s.receipt = receipt
	s.finish(OutcomeAccepted, nil)
	return nil
}
