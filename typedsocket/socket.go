package typedsocket

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"serve.zone/relay/typedsocket/queue"
	"serve.zone/relay/typedsocket/stream"
)

// Config says how one socket behaves. It is the same for both ends.
type Config struct {
	// Peer names the other side in errors: a role such as "cloudly" or
	// "node", never anything the peer said.
	Peer string
	// Limits are the bounds of this socket; zero fields take defaults.
	Limits Limits
	// Handler serves the requests that the peer starts. Nil answers every one
	// with "no available method", as a TypedRequest router without handlers.
	Handler Handler
	// Streams allows binary messages: frames of package stream. Without it a
	// binary message ends the socket with 1003.
	Streams bool
	// KeepMalformed drops and counts text that is no acceptable JSON, where
	// the default ends the socket with 1007. It is for a socket whose loss
	// costs others than the peer. Text that only breaks a rule for names and
	// strings inside a body costs that message alone, either way: its request is
	// refused request-malformed, the call that it answers fails.
	KeepMalformed bool
	// OverloadName is the refusal name of a request beyond Limits.Serving.
	// Default "overloaded".
	OverloadName string
	// Panicked, when set, is told of a panic, with the stack. One in
	// ServeRequest fails its request, one in a callback of a Forward fails
	// that; the socket goes on. One of the carrier's own ends it with 1011. The
	// value may quote anything; it must not be printed (contract §18).
	Panicked func(value any, stack []byte)
	// Ended, when set, is called once when the socket begins to end, on a
	// goroutine of the socket. It must not block.
	Ended func(*EndError)
	// Recorder, when set, sees every message whole: for tests and rehearsals,
	// never for a log (contract §18).
	Recorder Recorder
}

// Handler serves the requests a peer starts.
type Handler interface {
	// ServeRequest is called by the socket's only reader, one request at a
	// time in the order of arrival, and must not block. It owns the request
	// and ends it exactly once, now or later, with one of Request's methods
	// from Answer to Drop, or with Forward. A request that was being read when
	// the socket was cut may still be served; its answer goes nowhere.
	ServeRequest(*Request)
}

// HandlerFunc is a function as Handler.
type HandlerFunc func(*Request)

// ServeRequest calls f.
func (f HandlerFunc) ServeRequest(r *Request) { f(r) }

// Recorder sees messages as they cross the socket. Its methods are called by
// the socket's reader and writer, must not block and must not keep p.
type Recorder interface {
	Received(binary bool, p []byte)
	Sent(binary bool, p []byte)
}

// Socket is one WebSocket connection on which both sides start requests. All
// methods are safe for concurrent use.
type Socket struct {
	cfg     Config
	limits  Limits
	frames  atomic.Int64 // Limits.Frame, as it stands now
	closes  atomic.Int64 // Limits.Close, as it stands now
	unread  atomic.Int64 // Limits.Unread, as it stands now
	client  bool
	ws      *websocket.Conn // reads only, see link
	link    *link
	streams *stream.Mux // nil unless Config.Streams
	born    time.Time
	heard   atomic.Int64 // when the last byte arrived, as time since born
	modern  atomic.Bool  // the peer has sent a requestInstanceId: it is no 3.x peer
	counts  counters
	tellers sync.WaitGroup // goroutines of DropFlows; Done waits for them

	readFrame int // Limits.Frame when the message at hand began; the reader's alone
	readLast  int // length of the message before; the reader's alone

	wake     chan struct{} // for the writer: there is something to do
	ending   chan struct{} // closed when the socket begins to end
	told     chan struct{} // closed when everybody who waited knows of the end
	readDone chan struct{} // closed when the reader has returned
	done     chan struct{} // closed when reader and writer have returned

	mu       sync.Mutex // guards what follows; never held while another socket's is
	queue    *queue.Queue
	pending  map[string]waiting          // by correlation id
	forwards map[*forwardWaiter]struct{} // requests of the peer that wait for an answer of another
	serving  int                         // the peer's requests that wait for our answer
	held     int                         // memory of those that are neither answered nor forwarded, in bytes
	refusing string                      // the name by which new requests are refused; "" while they are served
	idle     chan struct{}               // closed when serving is 0; nil when nobody waits
	pong     []byte                      // payload of the last unanswered ping; nil when none
	pongBuf  [maxControl]byte
	writing  bool          // the writer has frames in hand
	rested   chan struct{} // closed when it next has none; nil when nobody waits
	drops    uint64        // calls of DropFlows
	carrying bool          // the write in progress, or the last, has bytes of flows
	passed   chan struct{} // closed when that is over or revoked; nil when nobody waits
	eased    chan struct{} // closed when the peer may be read again; nil when the reader does not wait
	end      *EndError     // nil while the socket stands
	flush    bool          // send what is queued before the close frame
	flushEnd time.Time
}

// start begins reading and writing. The socket owns both goroutines; they end
// when it does.
func start(ws *websocket.Conn, l *link, client bool, cfg Config) *Socket {
	if cfg.OverloadName == "" {
		cfg.OverloadName = "overloaded"
	}
	s := &Socket{
		cfg:      cfg,
		limits:   cfg.Limits.withDefaults(),
		client:   client,
		ws:       ws,
		link:     l,
		born:     time.Now(),
		wake:     make(chan struct{}, 1),
		ending:   make(chan struct{}),
		told:     make(chan struct{}),
		readDone: make(chan struct{}),
		done:     make(chan struct{}),
		pending:  make(map[string]waiting),
		forwards: make(map[*forwardWaiter]struct{}),
	}
	s.SetFrameLimit(s.limits.Frame, s.limits.Close)
	s.unread.Store(int64(s.limits.Unread))
	s.queue = queue.New(queue.Limits{Own: s.limits.Own, Flow: s.limits.Flow, Flows: s.limits.Flows})
	if cfg.Streams {
		s.streams = stream.NewMux(stream.Config{Carrier: (*carrier)(s), Client: client, Peer: cfg.Peer})
	}
	// The reader below counts message sizes itself, so that a request above
	// the limit can be refused by name instead of costing the socket.
	ws.SetReadLimit(-1)
	l.takeover(func(int) { s.heard.Store(int64(time.Since(s.born))) })
	// A random phase keeps the pings of many sockets opened together apart.
	phase := time.Duration(rand.Int64N(int64(PingEvery)))
	go s.read()
	go s.write(&keepalive{nextPing: phase})
	return s
}

// Peer returns Config.Peer.
func (s *Socket) Peer() string { return s.cfg.Peer }

// Done is closed when the socket has ended and its goroutines are gone. Only a
// connection whose Close does not end its Read leaves the reader behind.
func (s *Socket) Done() <-chan struct{} { return s.done }

// Ending is closed as soon as the socket begins to end: nothing can be sent
// any more, and Err tells why.
func (s *Socket) Ending() <-chan struct{} { return s.ending }

// Err returns why the socket ended, nil while it stands.
func (s *Socket) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		return nil
	}
	return s.end
}

// Streams returns the socket's streams, nil when Config.Streams is off.
func (s *Socket) Streams() *stream.Mux { return s.streams }

// SetFrameLimit changes Limits.Frame and Limits.Close, in bytes, from the next
// message on: a socket may send more once it is known who speaks (contract
// §19). A message that is being read keeps the limits it began with.
func (s *Socket) SetFrameLimit(frame, closeAt int) {
	s.frames.Store(int64(frame))
	s.closes.Store(int64(max(frame, closeAt)))
}

// SetUnreadLimit changes Limits.Unread, in bytes; 0 has the peer read whatever
// it leaves unread.
func (s *Socket) SetUnreadLimit(limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread.Store(int64(limit))
	s.easeLocked()
}

// Close ends the socket: calls that wait fail, what is queued is still sent for
// at most 2 s, then the close frame. A request of the peer that is not answered
// yet never will be; see Drain. It does not wait; Done does. After the first
// end of a socket, whatever caused it, Close does nothing.
func (s *Socket) Close(code CloseCode, reason string) {
	s.finish(&EndError{Peer: s.cfg.Peer, Code: code, Why: reason}, true)
}

// Cut ends the socket and drops what is queued. When it returns, no byte of
// anything that was queued is given to the connection any more, not even the
// rest of a frame half sent; what the kernel has already, it may still deliver.
// It stops this socket's own bytes alone: an answer that the reader has in hand
// may still reach a Judge, whose owner must look at its own state.
func (s *Socket) Cut(code CloseCode, reason string) {
	s.finish(&EndError{Peer: s.cfg.Peer, Code: code, Why: reason}, false)
	// The writer takes nothing up any more; it may have to lay something down.
	s.mu.Lock()
	rested := waitFor(&s.rested, s.writing)
	s.mu.Unlock()
	if rested != nil {
		<-rested
	}
}

// fail ends the socket at once because of something that happened on it.
func (s *Socket) fail(code CloseCode, remote bool, why string, cause error) {
	s.finish(&EndError{Peer: s.cfg.Peer, Code: code, Remote: remote, Why: why, Cause: cause}, false)
}

// finish begins the end. Only the first call decides code and reason; a later
// one that does not flush still stops a flush in progress.
func (s *Socket) finish(end *EndError, flush bool) {
	s.mu.Lock()
	first := s.end == nil
	if !first && (flush || !s.flush) {
		s.mu.Unlock()
		return
	}
	if first {
		s.end = end
		s.flushEnd = time.Now().Add(flushWait)
	}
	s.flush = flush
	waits, forwards := s.pending, s.forwards
	s.pending, s.forwards = nil, nil
	deadline := s.flushEnd.Add(closeWait) // as the writer gives its last piece
	if !flush {
		deadline = longAgo
	}
	// A write in progress was given more time; now it has less. The writer
	// sets its deadlines under the same lock, so the last word is this.
	s.link.SetWriteDeadline(deadline)
	s.mu.Unlock()

	if first {
		close(s.ending)
		// Not on the caller's goroutine, who may hold a lock that a callback
		// takes. The writer waits for it before Done.
		go s.tell(end, waits, forwards)
	}
	s.wakeWriter()
}

// tell lets everybody who waits for something on this socket know of its end.
func (s *Socket) tell(end *EndError, waits map[string]waiting, forwards map[*forwardWaiter]struct{}) {
	defer close(s.told)
	for _, w := range waits {
		w.stop()
		w.failed(end)
	}
	for w := range forwards {
		w.abandon(end)
	}
	if s.streams != nil {
		s.streams.Close(end)
	}
	if s.cfg.Ended != nil {
		s.guard(func() { s.cfg.Ended(end) })
	}
}

func (s *Socket) wakeWriter() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// push queues a frame, or says why not. It takes ownership of the buffer only
// when it succeeds. The flow "" is the class of own frames.
func (s *Socket) push(flow string, item queue.Item) error {
	s.mu.Lock()
	err := s.pushLocked(flow, item)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	s.wakeWriter()
	return nil
}

func (s *Socket) pushLocked(flow string, item queue.Item) error {
	if s.end != nil {
		return s.end
	}
	var err error
	if flow == "" {
		err = s.queue.PushOwn(item)
	} else {
		err = s.queue.Push(flow, item)
	}
	if err != nil {
		s.counts.queueFull.Add(1)
	}
	return err
}
