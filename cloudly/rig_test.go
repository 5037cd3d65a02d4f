package cloudly

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket"
	"serve.zone/relay/typedsocket/carriertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testOrigin = "https://relay.cluster-a.example:8443"
	testJWT    = "marked-jwt.0123456789.abcdef"
)

// bearerOf is a well-formed bearer that holds a marker.
func bearerOf(mark string) string {
	return "clusterRelayToken_cred-1_" + strings.Repeat("0", 64-len(mark)) + mark
}

var ownOffer = contract.Offer{InterfacesVersion: "32.44.0", MinimumPeerVersion: "32.0.0"}

// bubble runs a test in fake time and checks that every buffer came back.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	carriertest.Bubble(t, f)
}

// frame is a request that Cloudly has received.
type frame struct {
	socket int // from 1
	method string
	body   string
	at     time.Duration // since the start of the test
}

// fakeCloudly is a scripted peer on in-memory pipes.
type fakeCloudly struct {
	t     testing.TB
	start time.Time
	conns chan net.Conn
	done  chan struct{}

	mu      sync.Mutex
	down    bool // nobody listens
	latency time.Duration
	dials   []time.Duration
	sockets []*typedsocket.Socket
	open    int // sockets that stand now
	maxOpen int
	// Connections whose near end is not closed yet.
	connected, maxConns int
	frames              []frame
	scripts             map[string]func(n int, r *typedsocket.Request) bool // n counts requests of the method, from 1
	counts              map[string]int
	origin              string
	offer               contract.Offer
	onConn              func(net.Conn) // instead of serving
	wrap                func(net.Conn) net.Conn
}

func newFakeCloudly(t testing.TB) *fakeCloudly {
	c := &fakeCloudly{
		t: t, start: time.Now(), conns: make(chan net.Conn), done: make(chan struct{}),
		scripts: map[string]func(int, *typedsocket.Request) bool{}, counts: map[string]int{}, origin: testOrigin,
		offer: contract.Offer{InterfacesVersion: "32.50.0", MinimumPeerVersion: "32.1.0"},
	}
	server := &http.Server{Handler: http.HandlerFunc(c.upgrade)}
	served := make(chan struct{})
	go func() { defer close(served); server.Serve(c) }()
	t.Cleanup(func() {
		close(c.done)
		server.Close()
		<-served
		c.mu.Lock()
		sockets := slices.Clone(c.sockets)
		c.mu.Unlock()
		for _, s := range sockets {
			s.Cut(typedsocket.CloseGoingAway, "test over")
			<-s.Done()
		}
	})
	return c
}

func (c *fakeCloudly) Accept() (net.Conn, error) {
	for {
		select {
		case conn := <-c.conns:
			c.mu.Lock()
			instead := c.onConn
			c.mu.Unlock()
			if instead == nil {
				return conn, nil
			}
			go instead(conn)
		case <-c.done:
			return nil, net.ErrClosed
		}
	}
}
func (c *fakeCloudly) Close() error   { return nil }
func (c *fakeCloudly) Addr() net.Addr { return &net.IPAddr{} }

// dial is Config.Dial.
func (c *fakeCloudly) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	c.mu.Lock()
	c.dials = append(c.dials, time.Since(c.start))
	down, latency, wrap := c.down, c.latency, c.wrap
	c.mu.Unlock()
	if down {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	client, server := net.Pipe()
	c.mu.Lock()
	c.connected++
	c.maxConns = max(c.maxConns, c.connected)
	c.mu.Unlock()
	client = &counted{Conn: client, closed: func() { c.mu.Lock(); c.connected--; c.mu.Unlock() }}
	if wrap != nil {
		server = wrap(server)
	}
	if latency > 0 {
		client, server = newSlowLeg(client, latency), newSlowLeg(server, latency)
	}
	select {
	case c.conns <- server:
		return client, nil
	case <-c.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *fakeCloudly) upgrade(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	n := len(c.sockets) + 1
	c.mu.Unlock()
	s, err := typedsocket.Accept(w, r, typedsocket.Config{
		Peer: "relay", Streams: true, Limits: socketLimits,
		Handler: typedsocket.HandlerFunc(func(r *typedsocket.Request) { c.serve(n, r) }),
	})
	if err != nil {
		return
	}
	c.mu.Lock()
	c.sockets = append(c.sockets, s)
	c.open++
	c.maxOpen = max(c.maxOpen, c.open)
	c.mu.Unlock()
	go func() {
		<-s.Ending()
		c.mu.Lock()
		c.open--
		c.mu.Unlock()
	}()
}

func (c *fakeCloudly) serve(socket int, r *typedsocket.Request) {
	c.mu.Lock()
	c.frames = append(c.frames, frame{socket, r.Method(), string(r.Body()), time.Since(c.start)})
	c.counts[r.Method()]++
	n, script := c.counts[r.Method()], c.scripts[r.Method()]
	c.mu.Unlock()
	if script == nil || !script(n, r) {
		c.standard(r)
	}
}

// standard answers as a Cloudly that is content.
func (c *fakeCloudly) standard(r *typedsocket.Request) {
	switch r.Method() {
	case contract.DefaultMethodExchangeIdentity:
		request, err := contract.ReadIdentityExchangeRequest(r.Body())
		if err != nil {
			c.t.Errorf("exchange: %v", err)
		}
		expires := time.Now().Add(time.Hour).UnixMilli()
		jwt := testJWT + "." + string(request.Token[len(request.Token)-4:])
		r.Answer(fmt.Appendf(nil, `{"identity":{"name":"cluster-a","jwt":%q,"expiresAt":%d}}`, jwt, expires))
	case contract.MethodRegisterCloudlyClientSession:
		request, err := contract.ReadClientSessionRequest(r.Body())
		if err != nil || request.Protocol != ownOffer {
			c.t.Errorf("client session: %v %v", err, request.Protocol)
		}
		r.Answer(contract.ClientSessionAnswer{Protocol: c.offer}.AppendJSON(nil))
	case contract.MethodRegisterClusterRelay:
		request, err := contract.ReadRelayRegistrationRequest(r.Body())
		if err != nil {
			c.t.Errorf("registration: %v", err)
		}
		r.Answer(c.acceptance(request.RegistrationSequence).AppendJSON(nil))
	case contract.DefaultMethodGetConfiguration:
		if _, err := contract.ReadClusterConfigurationRequest(r.Body()); err != nil {
			c.t.Errorf("configuration: %v", err)
		}
		r.Answer([]byte(c.document()))
	default:
		r.RefuseMethod()
	}
}

func (c *fakeCloudly) acceptance(sequence int64) contract.RelayRegistrationAnswer {
	reference := func(id string) contract.Reference {
		return contract.Reference{ID: id, Generation: sequence + 1, Digest: "sha256:" + strings.Repeat("a", 64)}
	}
	return contract.RelayRegistrationAnswer{Origin: testOrigin, Protocol: c.offer,
		Credential: reference("cred-1"), AcceptedRegistration: reference("reg-1")}
}

func (c *fakeCloudly) document() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.origin == "" {
		return `{"configData":{"id":"cluster-a","data":{"name":"a","relay":null}}}`
	}
	return documentOf(c.origin)
}

func documentOf(origin string) string {
	return `{"configData":{"id":"cluster-a","data":{"name":"a","relay":{"origin":"` + origin + `"},"nodes":[]}},"services":[]}`
}

// on scripts a method. The script reports whether it has ended the request.
func (c *fakeCloudly) on(method string, script func(n int, r *typedsocket.Request) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scripts[method] = script
}

// refuse has a method refused by text and data.
func (c *fakeCloudly) refuse(method, text, data string) {
	c.on(method, func(_ int, r *typedsocket.Request) bool { r.Refuse(text, []byte(data)); return true })
}

func (c *fakeCloudly) set(f func()) { c.mu.Lock(); defer c.mu.Unlock(); f() }

// dialled returns when each dial began.
func (c *fakeCloudly) dialled() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.dials)
}

// opened returns how many sockets there were, and how many at once at most.
func (c *fakeCloudly) opened() (all, atOnce int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sockets), c.maxOpen
}

// socket returns the latest socket.
func (c *fakeCloudly) socket() *typedsocket.Socket {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sockets) == 0 {
		c.t.Fatal("no socket was opened")
	}
	return c.sockets[len(c.sockets)-1]
}

// kill breaks the latest socket.
func (c *fakeCloudly) kill() { c.socket().Cut(typedsocket.CloseGoingAway, "killed") }

// of returns the frames of a method.
func (c *fakeCloudly) of(method string) []frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.frames), func(f frame) bool { return f.method != method })
}

// order returns the methods of all frames with their sockets.
func (c *fakeCloudly) order() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, f := range c.frames {
		all = append(all, fmt.Sprintf("%d %s", f.socket, f.method))
	}
	return all
}

// sequences returns the numbers of all registrations.
func (c *fakeCloudly) sequences() []int64 {
	var all []int64
	for _, f := range c.of(contract.MethodRegisterClusterRelay) {
		request, err := contract.ReadRelayRegistrationRequest([]byte(f.body))
		if err != nil {
			c.t.Fatal(err)
		}
		all = append(all, request.RegistrationSequence)
	}
	return all
}

// push pushes a configuration on the latest socket and returns what it was
// answered with.
func (c *fakeCloudly) push(body string) error {
	a, err := c.socket().Call(context.Background(), contract.DefaultMethodPushConfiguration, []byte(body), typedsocket.CallOptions{})
	if err != nil {
		return err
	}
	defer a.Release()
	if string(a.Response()) != "{}" {
		return fmt.Errorf("answered %s", a.Response())
	}
	return nil
}

// fakeCredential is a credential in memory.
type fakeCredential struct {
	mu     sync.Mutex
	bearer string
	err    error
	reads  int
	hang   chan struct{} // reads wait for it when it is set
}

func (f *fakeCredential) Read() (contract.Secret, error) {
	f.mu.Lock()
	f.reads++
	bearer, err, hang := f.bearer, f.err, f.hang
	f.mu.Unlock()
	if hang != nil {
		<-hang
	}
	if err != nil {
		return nil, err
	}
	return contract.Secret(bearer), nil
}

func (f *fakeCredential) set(bearer string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bearer, f.err = bearer, err
}

// world is a session with its Cloudly and what the session said.
type world struct {
	*fakeCloudly
	session    *Session
	credential *fakeCredential
	events     *duty.Events
	log        *lockedWriter
	runErr     error

	note  sync.Mutex
	told  []string // hooks, in order
	facts contract.RelayFacts
	live  *typedsocket.Socket // of the last OnRegistered
}

// newWorld runs a session against a scripted Cloudly. Everything ends with the
// test.
func newWorld(t testing.TB, change ...func(*Config, *world)) *world {
	w := &world{fakeCloudly: newFakeCloudly(t), credential: &fakeCredential{bearer: bearerOf("0001")}, log: new(lockedWriter)}
	w.facts = contract.RelayFacts{Version: "4.0.0", NodeID: "node-a", ListenAddress: "10.0.4.7", ListenPort: 8443}
	catalogue, err := duty.NewCatalogue(EventKinds)
	if err != nil {
		t.Fatal(err)
	}
	log := duty.NewLogger(duty.LogConfig{Out: w.log})
	w.events = duty.NewEvents(duty.EventsConfig{Catalogue: catalogue, Log: log})
	c := Config{
		URL: "http://127.0.0.1:3000", Dial: w.dial, Credential: w.credential, Offer: ownOffer,
		Facts: w.state,
		Hooks: w.hooks(), Log: log, Events: w.events,
	}
	for _, f := range change {
		f(&c, w)
	}
	w.session = New(c)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// Scripts that the test sets before it waits for anything are in time.
		time.Sleep(time.Nanosecond)
		w.runErr = w.session.Run(context.Background())
	}()
	t.Cleanup(func() {
		if err := w.session.Drain(context.Background()); err != nil {
			t.Errorf("drain: %v", err)
		}
		<-ended
		if w.runErr != nil {
			t.Errorf("run: %v", w.runErr)
		}
	})
	return w
}

// state is Config.Facts.
func (w *world) state() contract.RelayFacts {
	w.note.Lock()
	defer w.note.Unlock()
	return w.facts
}

func (w *world) hooks() Hooks {
	return Hooks{
		OnRegistered: func(sock *typedsocket.Socket, a Accepted) {
			w.note.Lock()
			w.live = sock
			w.note.Unlock()
			w.say("registered %d first=%v", a.Sequence, a.First)
		},
		OnLost: func(why error) {
			var lost *LostError
			if !errors.As(why, &lost) {
				w.t.Errorf("lost with %v", why)
				return
			}
			w.say("lost %s", lost.Reason)
		},
		OnCustodyEnded:  func(name contract.RefusalName) { w.say("custody %s", name) },
		OnConfiguration: func(c contract.ClusterConfiguration) { w.say("configuration %s %s", c.Relay, c.Block.Origin) },
	}
}

func (w *world) say(format string, args ...any) {
	w.note.Lock()
	defer w.note.Unlock()
	w.told = append(w.told, fmt.Sprintf(format, args...))
}

// settle lets everything happen that needs no time.
func (w *world) settle() {
	time.Sleep(time.Nanosecond)
	synctest.Wait()
}

// heard returns what the hooks have said since the last call.
func (w *world) heard() []string {
	w.settle()
	w.note.Lock()
	defer w.note.Unlock()
	told := w.told
	w.told = nil
	return told
}

// status returns the session's status.
func (w *world) status() Status { return w.session.Status().(Status) }

// check returns a check as "state reason".
func (w *world) check(name string) string {
	for _, c := range w.session.Checks(time.Now()) {
		if c.Name == name {
			return strings.TrimSpace(c.State.String() + " " + c.Reason)
		}
	}
	return "no such check"
}

// published returns the types of all events with the reason or refusal each has.
func (w *world) published() []string {
	var all []string
	for _, e := range w.events.Since(0).Events {
		text := string(e.Type)
		for _, f := range e.Fields {
			if key := f.Key().String(); key == "reason" || key == "refusal" {
				text += " " + f.String()
			}
		}
		all = append(all, text)
	}
	return all
}

func (w *world) wantHeard(want ...string) {
	w.t.Helper()
	got := slices.CompactFunc(w.heard(), func(a, b string) bool {
		return a == b && strings.HasPrefix(a, "custody ") // which may be told twice, see Hooks
	})
	if !slices.Equal(got, want) {
		w.t.Fatalf("hooks said\n\t%q, want\n\t%q", got, want)
	}
}

func (w *world) wantState(want string) {
	w.t.Helper()
	w.settle()
	if got := w.status().State; got != want {
		w.t.Fatalf("state %s, want %s", got, want)
	}
}

// lockedWriter is a log that several goroutines write.
type lockedWriter struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *lockedWriter) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}
