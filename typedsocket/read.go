package typedsocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"time"

	"github.com/coder/websocket"

	"serve.zone/relay/typedsocket/buffer"
	"serve.zone/relay/typedsocket/envelope"
	"serve.zone/relay/typedsocket/stream"
)

// read is the socket's only reader. It never waits for a queue: what a message
// leads to is either queued at once or refused.
func (s *Socket) read() {
	defer close(s.readDone)
	defer s.link.wipe(true)
	spare := new(Request)
	for {
		s.holdBack()
		// A background context: one that could end would close the connection
		// from inside the library (design §6).
		kind, r, err := s.ws.Reader(context.Background())
		if err != nil {
			s.readFailed(err)
			return
		}
		b, err := s.message(r)
		if err != nil {
			s.readFailed(err)
			return
		}
		if s.Err() != nil {
			discard(b) // the closing handshake: data that still arrives is nobody's
			s.link.wipe(false)
			continue
		}
		b.Stamp(time.Now())
		s.counts.framesIn.Add(1)
		s.counts.bytesIn.Add(uint64(b.Len()))
		if s.cfg.Recorder != nil {
			s.cfg.Recorder.Received(kind == websocket.MessageBinary, b.Bytes())
		}
		spare = s.handle(kind, b, spare)
		s.link.wipe(false)
	}
}

// holdBack waits while the peer leaves more of our own frames unread than
// Limits.Unread allows. It ends when the peer takes them, when the limit changes,
// or with the socket, for which keepalive and the deadlines of writes see.
func (s *Socket) holdBack() {
	if s.unread.Load() == 0 {
		return
	}
	s.mu.Lock()
	var eased chan struct{}
	if s.end == nil {
		eased = waitFor(&s.eased, s.unreadLocked())
	}
	s.mu.Unlock()
	if eased == nil {
		return
	}
	s.counts.pauses.Add(1)
	select {
	case <-eased:
	case <-s.ending:
	}
}

// unreadLocked reports whether the peer leaves too much unread. The caller holds
// mu.
func (s *Socket) unreadLocked() bool {
	own, _ := s.queue.Bytes()
	limit := int(s.unread.Load())
	return limit != 0 && own > limit
}

// easeLocked lets the reader go on that waits in holdBack, when it may. The caller
// holds mu.
func (s *Socket) easeLocked() {
	if !s.unreadLocked() {
		tell(&s.eased)
	}
}

// discard gives back a message that nobody has looked at, or nobody owns. It may
// be a registration (contract §18).
func discard(b *buffer.Buffer) {
	b.Erase()
	b.Release()
}

// handle hands a message on. A panic of our own on the way ends this socket
// and not the process: other nodes have sockets too.
func (s *Socket) handle(kind websocket.MessageType, b *buffer.Buffer, spare *Request) (next *Request) {
	defer func() {
		if v := recover(); v != nil {
			s.panicked(v)
			s.fail(CloseInternal, false, "internal error", nil)
			next = new(Request)
		}
	}()
	if kind == websocket.MessageBinary {
		s.binary(b)
		return spare
	}
	return s.text(b, spare)
}

// serve calls the handler. A panic there fails the one request (B184).
func (s *Socket) serve(r *Request) {
	if !s.guard(func() { s.cfg.Handler.ServeRequest(r) }) && r.end(requestOpen) {
		r.buf.Erase() // who knew what it is did not come to say so
		r.answer(buffer.Of(null), envelope.AppendError(nil, failureText, emptyData), nil, "")
	}
}

// guard runs a callback of the socket's owner and reports whether it returned
// rather than panicked.
func (s *Socket) guard(callback func()) (returned bool) {
	defer func() {
		if v := recover(); v != nil {
			s.panicked(v)
		}
	}()
	callback()
	return true
}

func (s *Socket) panicked(value any) {
	s.counts.panics.Add(1)
	if s.cfg.Panicked != nil {
		s.cfg.Panicked(value, debug.Stack())
	}
}

// tooBig is a message above Limits.Close.
type tooBig struct{ limit int }

func (e tooBig) Error() string { return fmt.Sprintf("message larger than %d bytes", e.limit) }

// message reads one message whole. Its memory begins with the size of the one
// before, since messages come in runs of a kind, and grows with what really
// arrives: announcing a large message gains a peer nothing.
func (s *Socket) message(r io.Reader) (*buffer.Buffer, error) {
	b := buffer.Get(min(max(firstRead, s.readLast), readAhead))
	limit := int(s.closes.Load())
	s.readFrame = int(s.frames.Load())
	for {
		b.Grow()
		n, err := r.Read(b.Free())
		b.Grown(n)
		if b.Len() > limit {
			discard(b)
			return nil, tooBig{limit}
		}
		if err == io.EOF && !s.link.ended.Load() {
			s.readLast = b.Len()
			return b, nil
		}
		// The library reports a connection that ends inside a message like
		// the end of the message.
		if err != nil {
			discard(b)
			return nil, err
		}
	}
}

// readFailed ends the socket for what the reader met. The library's own texts
// may quote the peer, so they are not passed on.
func (s *Socket) readFailed(err error) {
	var big tooBig
	var closed websocket.CloseError
	switch {
	case errors.As(err, &big):
		s.fail(CloseTooBig, false, big.Error(), nil)
		s.linger()
	case errors.As(err, &closed):
		code := CloseCode(closed.Code)
		s.fail(code, true, "close frame: "+code.Meaning(), nil)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		s.fail(closeAbnormal, true, "connection ended without a close frame", nil)
	default:
		var network net.Error
		if errors.As(err, &network) {
			s.fail(closeAbnormal, true, "read failed", network)
			return
		}
		s.fail(CloseProtocol, false, "the peer broke the WebSocket protocol", nil)
		s.linger()
	}
}

// linger throws away what still arrives, until the peer closes or the writer
// gives up waiting for that. A connection closed with bytes unread is reset,
// and a peer in the middle of its message would not see why.
func (s *Socket) linger() { io.Copy(io.Discard, s.link.Conn) }

// ping remembers a ping, for the writer to answer. Of several unanswered pings
// the last alone is answered (RFC 6455 §5.5.3), so a flood holds no memory.
func (s *Socket) ping(_ context.Context, payload []byte) bool {
	s.mu.Lock()
	s.pong = append(s.pongBuf[:0], payload...)
	s.mu.Unlock()
	s.wakeWriter()
	return false
}

// binary handles a binary message: a stream frame, or nothing we know.
func (s *Socket) binary(b *buffer.Buffer) {
	if s.streams == nil {
		discard(b)
		s.fail(CloseUnsupported, false, "binary messages are not spoken here", nil)
		return
	}
	if err := s.streams.Receive(b); err != nil {
		var broken *stream.FrameError
		if errors.As(err, &broken) {
			s.counts.binaryDropped.Add(1)
		}
	}
}

// text handles a text message: a request, an answer, or nothing we know. It
// scans into spare and returns the Request to scan the next message into: the
// same one, unless it became a request and has an owner now.
func (s *Socket) text(b *buffer.Buffer, spare *Request) *Request {
	f := &spare.frame
	if err := envelope.Scan(b.Bytes(), f); err != nil {
		s.counts.malformed.Add(1)
		if s.salvaged(b, err, spare) {
			return new(Request)
		}
		f.Reset()
		discard(b)
		if !s.cfg.KeepMalformed {
			s.fail(CloseInvalidData, false, malformedWhy(err), nil)
		}
		return spare
	}
	if len(f.Instance) > 0 {
		s.noteModern()
	}
	switch f.Kind() {
	case envelope.KindRequest:
		next := new(Request)
		f.Lend(&next.frame)
		s.requested(b, spare)
		return next
	case envelope.KindResponse:
		s.answered(b, f)
	default:
		// TypedSocket servers may broadcast objects that are no envelope
		// (typedsocket.md §1.5).
		s.counts.ignored.Add(1)
		discard(b)
	}
	f.Reset()
	return spare
}

// salvaged tells the peer which of its messages broke a rule inside a body, or
// whoever waits that the answer did. It reports false when the message has no
// readable envelope. Text cut in the middle of a character is an honest mistake
// of peers in JavaScript, and closing the socket for it would have a node send it
// again over the next one.
func (s *Socket) salvaged(b *buffer.Buffer, err error, r *Request) bool {
	fault, ok := errors.AsType[*envelope.ScanError](err)
	f := &r.frame
	if !ok || !fault.InBody || !envelope.Salvage(b.Bytes(), f) {
		return false
	}
	if len(f.Instance) > 0 {
		s.noteModern()
	}
	switch f.Kind() {
	case envelope.KindRequest:
		s.refuseMalformed(b, r, fault)
	case envelope.KindResponse:
		s.failMalformed(b, f, fault)
	default:
		return false
	}
	return true
}

// malformedWhy names the rule that a text message broke.
func malformedWhy(err error) string {
	var scan *envelope.ScanError
	if errors.As(err, &scan) {
		return fmt.Sprintf("text message refused: %s at byte %d", scan.Rule, scan.Offset)
	}
	return "text message refused"
}

// noteModern remembers that the peer speaks TypedRequest 8: from now on an
// answer without requestInstanceId is not an answer (typedsocket.md §4.10).
func (s *Socket) noteModern() { s.modern.Store(true) }
