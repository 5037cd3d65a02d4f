package stream

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math"
	"sync"
	"time"

	"serve.zone/relay/typedsocket/buffer"
)

// Config says how the streams of one socket behave. Zero limits take the
// defaults of the constants they are named after.
type Config struct {
	Carrier Carrier
	// Client tells the two ends apart: the WebSocket client allots odd stream
	// numbers, the server even ones.
	Client bool
	// Peer names the other side in errors: a role such as "cloudly", never
	// anything the peer said.
	Peer string

	MaxStreams int
	Window     int // bytes
	OpenLimit  time.Duration
	IdleLimit  time.Duration
}

func (c Config) withDefaults() Config {
	if c.MaxStreams <= 0 {
		c.MaxStreams = MaxStreams
	}
	if c.Window <= 0 {
		c.Window = Window
	}
	if c.OpenLimit <= 0 {
		c.OpenLimit = OpenLimit
	}
	if c.IdleLimit <= 0 {
		c.IdleLimit = IdleLimit
	}
	return c
}

// Mux holds the streams of one socket. All methods are safe for concurrent
// use; none blocks.
type Mux struct {
	cfg   Config
	newID func() string // replaced by tests that compare bytes

	mu       sync.Mutex // guards what follows and every stream's fields
	closed   error      // why the socket is gone, nil while it stands
	offered  map[string]*Stream
	open     map[uint32]*Stream
	draining []*Stream // ended, with frames still queued in the carrier
	next     uint32    // the next number of our own
	highest  uint32    // the highest number the peer has used
	opens    bool      // the peer has opened a stream
	deaf     bool      // the peer has let one lapse
	strays   int       // answers given to frames of no stream
	stats    Stats
}

// NewMux returns the streams of a socket.
func NewMux(cfg Config) *Mux {
	m := &Mux{
		cfg:     cfg.withDefaults(),
		newID:   randomID,
		offered: make(map[string]*Stream),
		open:    make(map[uint32]*Stream),
		next:    2,
	}
	if cfg.Client {
		m.next = 1
	}
	return m
}

// randomID returns 96 random bits (design O1): an open-ack that names the
// stream proves that its sender has read the descriptor.
func randomID() string {
	var b [12]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Options describe a stream to offer.
type Options struct {
	Direction   Direction // as this side sees it
	ContentType string    // "" for none
	// Integrity, when it is known before, is held against the bytes on both
	// sides.
	Integrity *Integrity
}

// Offer creates a stream. Its descriptor goes into a message of the caller's,
// who then calls Published, or Discard when the message was not sent. Errors:
// ErrTooManyStreams; ErrNotOpened at once when the peer has let a stream lapse
// before and never opened one (design O2); a DescriptorError for options that
// no descriptor can hold; what Close was given.
func (m *Mux) Offer(o Options) (*Stream, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.admit(); err != nil {
		return nil, err
	}
	if m.deaf && !m.opens {
		return nil, m.wrap(ErrNotOpened)
	}
	s := m.newStream(m.newID(), o.Direction, o.ContentType, o.Integrity)
	d := s.describe()
	if err := d.validate(); err != nil {
		return nil, err
	}
	s.descriptor = appendDescriptor(nil, d)
	if len(s.descriptor) > MaxDescriptor {
		return nil, &DescriptorError{Member: "contentType", Rule: "is too long"}
	}
	m.offered[s.id] = s
	return s, nil
}

// Open opens the stream of a descriptor that the peer sent: the JSON object as
// it stands in the message. Errors: a DescriptorError; UnknownTransportError,
// which the caller answers by name; ErrTooManyStreams; ErrAlreadyOpen, since a
// descriptor that occurs twice in one message is one stream, which the caller
// opens once; ErrNumbersUsedUp; what Close was given.
func (m *Mux) Open(descriptor []byte) (*Stream, error) {
	d, err := ReadDescriptor(descriptor)
	if err != nil {
		return nil, err
	}
	if !isOurTransport(d.Transport) {
		return nil, &UnknownTransportError{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.admit(); err != nil {
		return nil, err
	}
	for _, s := range m.open {
		if !s.creator && s.id == d.StreamID {
			return nil, m.wrap(ErrAlreadyOpen)
		}
	}
	if m.next > math.MaxUint32-2 {
		return nil, m.wrap(ErrNumbersUsedUp)
	}
	s := m.newStream(d.StreamID, d.CreatorDirection.Opposite(), d.ContentType, d.Integrity)
	s.creator = false
	number := m.next
	m.next += 2
	s.begin(number)
	if s.direction == Receive {
		s.permit = uint64(m.cfg.Window)
	}
	if err := m.control(kindOpenAck, number, s.permit, s.id); err != nil {
		return nil, s.carrierFailed(err)
	}
	return s, nil
}

// admit reports whether there is room for one more stream.
func (m *Mux) admit() error {
	if m.closed != nil {
		return m.closed
	}
	if m.live() >= m.cfg.MaxStreams {
		return fmt.Errorf("%w (limit %d)", m.wrap(ErrTooManyStreams), m.cfg.MaxStreams)
	}
	return nil
}

// live counts the streams that hold a place: a stream that has ended does so
// until its last queued frame has left, so that streams made and given up in
// quick succession cannot pile up in the carrier.
func (m *Mux) live() int {
	kept := m.draining[:0]
	for _, s := range m.draining {
		if s.queued.Load() > 0 {
			kept = append(kept, s)
		}
	}
	clear(m.draining[len(kept):])
	m.draining = kept
	return len(m.offered) + len(m.open) + len(m.draining)
}

// AbortAll aborts every stream with one reason, as a drain does.
func (m *Mux) AbortAll(reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.each(func(s *Stream) { s.abort(reason, nil) })
}

// Close ends every stream because the socket is gone: whoever waits returns
// with an error that wraps err (ErrClosed when nil), what was received and not
// read is released, and no frame is sent any more.
func (m *Mux) Close(err error) {
	if err == nil {
		err = ErrClosed
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed != nil {
		return
	}
	m.closed = m.wrap(err)
	m.each(func(s *Stream) { s.finish(OutcomeSocket, m.closed) })
	m.draining = nil
}

// each calls f with every stream that lives. f may end it.
func (m *Mux) each(f func(*Stream)) {
	for _, s := range m.offered {
		f(s)
	}
	for _, s := range m.open {
		f(s)
	}
}

// control queues a frame that goes ahead of bulk.
func (m *Mux) control(kind Kind, number uint32, value uint64, payload string) error {
	h := header(kind, number, value)
	b := buffer.Get(HeaderSize + len(payload))
	b.Append(h[:])
	b.Append([]byte(payload))
	return m.cfg.Carrier.Control(b)
}

// wrap names the peer in an error.
func (m *Mux) wrap(err error) error {
	return fmt.Errorf("streams with %s: %w", m.cfg.Peer, err)
}
