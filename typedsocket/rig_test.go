package typedsocket

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"serve.zone/relay/typedsocket/buffer"
	"serve.zone/relay/typedsocket/carriertest"
	"serve.zone/relay/typedsocket/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memoryNetwork is the shared network, whose connections can be changed.
type memoryNetwork struct{ *carriertest.Network }

// dial returns a function for Dial.Net that connects to the network, with both
// ends changed by wrap when it is set.
func (n memoryNetwork) dial(wrap func(client, server net.Conn) (net.Conn, net.Conn)) func(context.Context, string, string) (net.Conn, error) {
	if wrap == nil {
		return n.Dial
	}
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		client, server := wrap(net.Pipe())
		return n.Connect(ctx, client, server)
	}
}

// rig is a server whose accepted sockets can be had one by one.
type rig struct {
	t        testing.TB
	listener memoryNetwork
	http     *http.Server
	accepted chan *Socket
}

// newRig serves sockets with the configuration. Everything ends with the test.
func newRig(t testing.TB, cfg Config) *rig {
	r := &rig{t: t, listener: memoryNetwork{carriertest.NewNetwork()}, accepted: make(chan *Socket, 16)}
	r.http = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s, err := Accept(w, req, cfg)
		if err == nil {
			r.accepted <- s
		}
	})}
	served := make(chan struct{})
	go func() { defer close(served); r.http.Serve(r.listener) }()
	t.Cleanup(func() { r.http.Close(); <-served })
	return r
}

// connect dials the rig and returns both ends.
func (r *rig) connect(cfg Config, wrap func(c, s net.Conn) (net.Conn, net.Conn)) (client, server *Socket) {
	r.t.Helper()
	client, err := Connect(context.Background(), Dial{URL: "ws://relay/", Net: r.listener.dial(wrap), Config: cfg})
	if err != nil {
		r.t.Fatal(err)
	}
	server = <-r.accepted
	r.t.Cleanup(func() {
		client.Close(CloseNormal, "test over")
		<-client.Done()
		<-server.Done()
	})
	return client, server
}

// raw dials the rig with the bare WebSocket library: a peer that can misbehave.
func (r *rig) raw() (*websocket.Conn, *Socket) {
	r.t.Helper()
	transport := &http.Transport{DialContext: r.listener.dial(nil)}
	c, _, err := websocket.Dial(context.Background(), "ws://relay/", &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		r.t.Fatal(err)
	}
	c.SetReadLimit(-1)
	r.t.Cleanup(func() { c.CloseNow(); transport.CloseIdleConnections() })
	return c, <-r.accepted
}

// pair is a client and a server socket with these configurations.
func pair(t testing.TB, client, server Config) (c, s *Socket) {
	return newRig(t, server).connect(client, nil)
}

// bubble runs a test in fake time and checks that every buffer came back.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	carriertest.Bubble(t, f)
}

// handlers serves methods by name.
type handlers map[string]func(*Request)

func (h handlers) ServeRequest(r *Request) {
	if serve, ok := h[r.Method()]; ok {
		serve(r)
		return
	}
	r.RefuseMethod()
}

// echo answers a request with its own body.
func echo(r *Request) { r.Answer(r.Body()) }

// call calls and returns the response's text, or fails the test.
func call(t testing.TB, s *Socket, method, body string) string {
	t.Helper()
	a, err := s.Call(context.Background(), method, []byte(body), CallOptions{})
	if err != nil {
		t.Fatalf("call of %s: %v", method, err)
	}
	defer a.Release()
	return string(a.Response())
}

// wantEnd waits for the socket's end and checks code and side.
func wantEnd(t testing.TB, s *Socket, code CloseCode, remote bool) *EndError {
	t.Helper()
	<-s.Done()
	var end *EndError
	if !errors.As(s.Err(), &end) {
		t.Fatalf("socket ended with %v", s.Err())
	}
	if end.Code != code || end.Remote != remote {
		t.Fatalf("socket ended with code %d, remote %v (%v); want %d, %v", end.Code, end.Remote, end, code, remote)
	}
	return end
}

// slowConn reads no faster than rate bytes a second.
type slowConn struct {
	net.Conn
	rate int
}

func (c *slowConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p[:min(len(p), 16<<10)])
	time.Sleep(time.Duration(n) * time.Second / time.Duration(c.rate))
	return n, err
}

// gate lets reads through while it is open.
type gate struct {
	net.Conn
	mu     sync.Mutex
	opened chan struct{}
}

func newGate(c net.Conn) *gate {
	g := &gate{Conn: c, opened: make(chan struct{})}
	close(g.opened)
	return g
}

func (g *gate) shut() { g.mu.Lock(); g.opened = make(chan struct{}); g.mu.Unlock() }
func (g *gate) open() { g.mu.Lock(); close(g.opened); g.mu.Unlock() }

func (g *gate) Read(p []byte) (int, error) {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	<-opened
	return g.Conn.Read(p)
}

// httpOver is an HTTP client over a dial function.
func httpOver(dial func(context.Context, string, string) (net.Conn, error)) (*http.Client, func()) {
	transport := &http.Transport{DialContext: dial}
	return &http.Client{Transport: transport}, transport.CloseIdleConnections
}

func itemOf(b *buffer.Buffer) queue.Item { return queue.Item{Buf: b} }
