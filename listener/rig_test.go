package listener

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket"
	"serve.zone/relay/typedsocket/carriertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a network inside the process, so that fake time advances.
type memory struct {
	address netip.AddrPort
	conns   chan net.Conn
	done    chan struct{}
	once    sync.Once
	errs    chan error // what Accept returns next, instead of a connection
	dialled atomic.Int64
}

func newMemory(address netip.AddrPort) *memory {
	return &memory{address: address, conns: make(chan net.Conn), done: make(chan struct{}), errs: make(chan error, 16)}
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case err := <-m.errs:
		return nil, err
	case c := <-m.conns:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error   { m.once.Do(func() { close(m.done) }); return nil }
func (m *memory) Addr() net.Addr { return net.TCPAddrFromAddrPort(m.address) }

// from gives a connection the address of a peer.
type from struct {
	net.Conn
	peer netip.AddrPort
}

func (f from) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(f.peer) }

func (m *memory) dial(ctx context.Context) (net.Conn, error) {
	client, server := newWire()
	peer := netip.AddrPortFrom(netip.MustParseAddr("10.9.8.7"), uint16(1000+m.dialled.Add(1)%60000))
	select {
	case m.conns <- from{server, peer}:
		return client, nil
	case <-m.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// certified makes a certificate for a name that is valid in fake time and now.
func certified(name string) *tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

var theCertificate = sync.OnceValue(func() *tls.Certificate { return certified("relay.test") })

// clientTLS trusts anybody: these tests are about the server.
func clientTLS() *tls.Config {
	return &tls.Config{ServerName: "relay.test", InsecureSkipVerify: true, CurvePreferences: []tls.CurveID{tls.X25519}}
}

// rig is a listener that serves on a network in memory.
type rig struct {
	*Listener
	t      testing.TB
	memory *memory
	events *duty.Events
	log    *lockedBuffer
	conns  chan *Conn // of sockets whose request came to the handler "hello"
	served error
	ended  chan struct{}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var testAddress = netip.MustParseAddrPort("10.0.4.7:8443")

// newRig binds and serves, in fake time. Everything ends with the test, without
// an error.
func newRig(t testing.TB, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, memory: newMemory(testAddress), log: &lockedBuffer{}, conns: make(chan *Conn, 2048), ended: make(chan struct{})}
	catalogue, err := duty.NewCatalogue(EventKinds)
	if err != nil {
		t.Fatal(err)
	}
	log := duty.NewLogger(duty.LogConfig{Out: r.log})
	r.events = duty.NewEvents(duty.EventsConfig{Catalogue: catalogue, Log: log})
	cfg := Config{
		Listen:         func(context.Context, string, string) (net.Listener, error) { return r.memory, nil },
		Address:        testAddress,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return theCertificate(), nil },
		Routes:         r.routes(),
		Log:            log, Events: r.events,
	}
	for _, f := range change {
		f(&cfg)
	}
	r.Listener = New(cfg)
	if err := r.Bind(t.Context()); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(r.ended); r.served = r.Serve() }()
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		<-r.ended
		if r.served != nil {
			t.Errorf("serve: %v", r.served)
		}
		time.Sleep(time.Second) // net/http has no end that can be waited for
	})
	return r
}

// routes is the table of the tests: for every role a method of its own that
// answers with its body, one that hands out the Conn, and a registration.
func (r *rig) routes() []Route {
	echo := func(_ *Conn, q *typedsocket.Request) { q.Answer(q.Body()) }
	var routes []Route
	for _, role := range []string{Unbound, Node, Ingress} {
		routes = append(routes,
			Route{Role: role, Method: "hello", Serve: func(c *Conn, q *typedsocket.Request) { r.conns <- c; echo(c, q) }},
			Route{Role: role, Method: "echo", Serve: echo})
	}
	return append(routes,
		Route{Role: Unbound, Method: "registerPalletRuntimeSession", Serve: echo},
		Route{Role: Node, Method: "registerPalletRuntimeSession", Serve: echo},
		Route{Role: Node, Method: "reportRuntimeAssignmentLogs", Serve: echo},
		Route{Role: Node, Method: "configuredMethod", Serve: echo},
		Route{Role: Unbound, Method: "registerClusterIngress", Serve: echo},
		Route{Role: Ingress, Method: "getClusterIngressRouteTable", Serve: echo},
		Route{Role: Node, Method: "panics", Serve: func(*Conn, *typedsocket.Request) { panic("a body with secrets") }},
	)
}

// connect dials as a node does and returns its socket and ours.
func (r *rig) connect() (*typedsocket.Socket, *Conn) {
	r.t.Helper()
	client, err := r.dial("/")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { client.Close(typedsocket.CloseNormal, "test over"); <-client.Done() })
	if got := call(r.t, client, "hello", `{}`); got != `{}` {
		r.t.Fatalf("hello answered %s", got)
	}
	return client, <-r.conns
}

func (r *rig) dial(path string) (*typedsocket.Socket, error) {
	return typedsocket.Connect(context.Background(), typedsocket.Dial{
		URL: "wss://relay.test" + path, TLS: clientTLS(),
		Net:    r.net,
		Config: typedsocket.Config{Peer: "relay", Handler: typedsocket.HandlerFunc(func(q *typedsocket.Request) { q.Answer(q.Body()) })},
	})
}

// net is the network of a dial.
func (r *rig) net(ctx context.Context, _, _ string) (net.Conn, error) { return r.memory.dial(ctx) }

// node connects and binds the socket as that of a node.
func (r *rig) node(id string) (*typedsocket.Socket, *Conn) {
	r.t.Helper()
	client, c := r.connect()
	if err := c.BindNode(id); err != nil {
		r.t.Fatal(err)
	}
	return client, c
}

// raw opens a TLS connection on which a test speaks bytes.
func (r *rig) raw() *rawConn {
	r.t.Helper()
	conn, err := r.memory.dial(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	c := tls.Client(conn, clientTLS())
	if err := c.Handshake(); err != nil {
		r.t.Fatal(err)
	}
	// Not through TLS: its goodbye would wait for a server that does not read.
	r.t.Cleanup(func() { conn.Close() })
	return &rawConn{t: r.t, Conn: c, reader: bufio.NewReader(c)}
}

type rawConn struct {
	net.Conn
	t      testing.TB
	reader *bufio.Reader
	sent   string // last, for messages
}

func (c *rawConn) send(text string) {
	c.t.Helper()
	c.sent = text
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// response reads an HTTP response whole. request tells HEAD from GET.
func (c *rawConn) response(request *http.Request) (*http.Response, string) {
	c.t.Helper()
	response, err := http.ReadResponse(c.reader, request)
	if err != nil {
		c.t.Fatalf("no response to %.40q: %v", c.sent, err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return response, string(body)
}

// handshake is a correct upgrade of a path, with further header lines.
func handshake(path string, lines ...string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: relay.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
		strings.Join(append(lines, ""), "\r\n") + "\r\n"
}

// upgraded upgrades a raw connection.
func (r *rig) upgraded() *rawConn {
	r.t.Helper()
	c := r.raw()
	c.send(handshake("/"))
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		r.t.Fatalf("no upgrade: %v %v", response, err)
	}
	return c
}

// frame is a whole frame of a client: first byte, a stated length, and bytes
// masked with zeros.
func frame(first byte, length uint64, payload string) string {
	head := []byte{first, 0x80 | 127}
	for shift := 56; shift >= 0; shift -= 8 {
		head = append(head, byte(length>>shift))
	}
	return string(append(head, 0, 0, 0, 0)) + payload
}

// next reads a frame: its first byte and its payload.
func (c *rawConn) next() (first byte, payload []byte) {
	c.t.Helper()
	var head [4]byte
	if _, err := io.ReadFull(c.reader, head[:2]); err != nil {
		c.t.Fatalf("no frame: %v", err)
	}
	size := int(head[1])
	if size == 126 {
		io.ReadFull(c.reader, head[2:])
		size = int(head[2])<<8 | int(head[3])
	}
	payload = make([]byte, size)
	if _, err := io.ReadFull(c.reader, payload); err != nil {
		c.t.Fatalf("no frame: %v", err)
	}
	return head[0], payload
}

// message reads up to the next text message.
func (c *rawConn) message() string {
	c.t.Helper()
	for {
		if first, payload := c.next(); first == 0x81 {
			return string(payload)
		}
	}
}

// closeFrame reads up to the close frame and returns its code and reason.
func (c *rawConn) closeFrame() (code typedsocket.CloseCode, reason string) {
	c.t.Helper()
	for {
		if first, payload := c.next(); first == 0x88 {
			return typedsocket.CloseCode(int(payload[0])<<8 | int(payload[1])), string(payload[2:])
		}
	}
}

// call calls and returns the response's text.
func call(t testing.TB, s *typedsocket.Socket, method, body string) string {
	t.Helper()
	a, err := s.Call(context.Background(), method, []byte(body), typedsocket.CallOptions{})
	if err != nil {
		t.Fatalf("call of %s: %v", method, err)
	}
	defer a.Release()
	return string(a.Response())
}

// refused calls and returns the text and data of the refusal.
func refused(t testing.TB, s *typedsocket.Socket, method, body string) (text, data string) {
	t.Helper()
	a, err := s.Call(context.Background(), method, []byte(body), typedsocket.CallOptions{})
	var remote *typedsocket.RemoteError
	if !errors.As(err, &remote) {
		if a != nil {
			a.Release()
		}
		t.Fatalf("call of %s: %v, want a refusal", method, err)
	}
	return remote.Text, string(remote.Data)
}

// wantEnd waits for a socket's end and checks its code and side.
func wantEnd(t testing.TB, s *typedsocket.Socket, code typedsocket.CloseCode, remote bool) *typedsocket.EndError {
	t.Helper()
	<-s.Done()
	var end *typedsocket.EndError
	if !errors.As(s.Err(), &end) || end.Code != code || end.Remote != remote {
		t.Fatalf("socket ended with %v, want code %d, remote %v", s.Err(), code, remote)
	}
	return end
}

// bubble runs a test in fake time and checks that every buffer came back.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	carriertest.Bubble(t, f)
}

// metric returns the count of one series; -1 if there is none.
func metric(m *duty.Metrics, name string, labels ...string) float64 {
	for _, family := range m.Snapshot() {
		for _, sample := range family.Samples {
			var values []string
			for _, l := range sample.Labels {
				values = append(values, l.Value)
			}
			if family.Name == name && slices.Equal(values, labels) {
				return sample.Value
			}
		}
	}
	return -1
}

func (r *rig) wantMetric(want float64, name string, labels ...string) {
	r.t.Helper()
	if got := metric(r.Metrics(), name, labels...); got != want {
		r.t.Errorf("%s%v is %v, want %v", name, labels, got, want)
	}
}

// published returns the types of all events, in order.
func (r *rig) published() []duty.EventType {
	var types []duty.EventType
	for _, e := range r.events.Since(0).Events {
		types = append(types, e.Type)
	}
	return types
}

// envelope is a request as a peer writes it.
func envelope(method, body, id string) string {
	return `{"method":"` + method + `","request":` + body + `,"requestInstanceId":"i` + id + `","correlation":{"id":"` + id + `","phase":"request"}}`
}

func key() string { return base64.StdEncoding.EncodeToString(make([]byte, 16)) }
