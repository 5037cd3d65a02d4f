package simulate

import (
	"sync"
	"time"

	"serve.zone/relay/typedsocket/envelope"
)

// Frame is one message that crossed a socket of a simulated peer.
type Frame struct {
	Socket int       // number of the socket at this peer, from 1
	Sent   bool      // by this peer
	Binary bool      // a frame of a stream, not an envelope
	At     time.Time // by the peer's Wall
	Text   []byte    // the whole message; not to be changed
}

// Message is a frame that is an envelope.
type Message struct {
	Frame
	Method   string
	Request  bool   // else an answer
	ID       string // correlation id
	Instance string
	Body     []byte // the bytes of request or response, as they crossed
	// Refused says that an answer carries an error; ErrorText and ErrorData are
	// its members.
	Refused   bool
	ErrorText string
	ErrorData []byte
}

// Message reads the envelope of the frame, and false when it has none.
func (f Frame) Message() (Message, bool) {
	var e envelope.Frame
	if f.Binary || envelope.Scan(f.Text, &e) != nil {
		return Message{}, false
	}
	m := Message{Frame: f, Method: string(e.Method), ID: string(e.ID), Instance: string(e.Instance)}
	switch e.Kind() {
	case envelope.KindRequest:
		m.Request, m.Body = true, e.Request
	case envelope.KindResponse:
		m.Body = e.Response
		text, data, state := envelope.ReadError(e.Error)
		m.Refused, m.ErrorText, m.ErrorData = state != envelope.ErrorNone, text, data
	default:
		return Message{}, false
	}
	return m, true
}

// FrameLog is the record of what crossed a peer's sockets, oldest first. It
// holds a bounded number of bytes; the oldest frames are dropped and counted.
// It holds secrets.
type FrameLog struct {
	mu      sync.Mutex
	limit   int // negative: nothing is kept
	frames  []kept
	size    int
	dropped uint64
}

// kept is a frame with what it is looked up by, method "" for none.
type kept struct {
	Frame
	method  string
	request bool
}

func (l *FrameLog) add(k kept) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frames = append(l.frames, k)
	l.size += len(k.Text) + frameOverhead
	for l.size > l.limit && len(l.frames) > 0 {
		l.size -= len(l.frames[0].Text) + frameOverhead
		l.frames[0] = kept{}
		l.frames = l.frames[1:]
		l.dropped++
	}
}

// All returns every frame that is kept.
func (l *FrameLog) All() []Frame {
	l.mu.Lock()
	defer l.mu.Unlock()
	frames := make([]Frame, len(l.frames))
	for i, k := range l.frames {
		frames[i] = k.Frame
	}
	return frames
}

// Dropped returns how many frames were dropped for the limit.
func (l *FrameLog) Dropped() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// Forget empties the record.
func (l *FrameLog) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frames, l.size = nil, 0
}

// Messages returns the envelopes that are kept.
func (l *FrameLog) Messages() []Message {
	return l.pick(func(k kept) bool { return k.method != "" })
}

// Received returns the requests of a method that this peer received.
func (l *FrameLog) Received(method string) []Message {
	return l.pick(func(k kept) bool { return k.request && !k.Sent && k.method == method })
}

// Sent returns the requests of a method that this peer sent.
func (l *FrameLog) Sent(method string) []Message {
	return l.pick(func(k kept) bool { return k.request && k.Sent && k.method == method })
}

// Answer returns the answer to a request, whichever side sent it, and false
// when there is none.
func (l *FrameLog) Answer(request Message) (Message, bool) {
	answers := l.pick(func(k kept) bool {
		return !k.request && k.Socket == request.Socket && k.Sent != request.Sent && k.method == request.Method
	})
	for _, m := range answers {
		if m.ID == request.ID && m.Instance == request.Instance {
			return m, true
		}
	}
	return Message{}, false
}

func (l *FrameLog) pick(want func(kept) bool) []Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []Message
	for _, k := range l.frames {
		if want(k) {
			m, _ := k.Message()
			found = append(found, m)
		}
	}
	return found
}

// count returns how many requests of a method this peer received.
func (l *FrameLog) count(method string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, k := range l.frames {
		if k.request && !k.Sent && k.method == method {
			n++
		}
	}
	return n
}
