package operator

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket/carriertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Addresses of the tests: where the endpoint is bound, and where peers dial from.
var (
	testAddress = netip.MustParseAddrPort("127.0.0.1:9465")
	local       = netip.MustParseAddrPort("127.0.0.1:40001")
	remote      = netip.MustParseAddrPort("10.9.8.7:40001")
)

// memory is a network inside the process, on which fake time advances, with the
// addresses that the endpoint looks at.
type memory struct {
	*carriertest.Network
	errs chan error // what Accept returns instead of a connection
}

func newMemory() *memory {
	return &memory{Network: carriertest.NewNetwork(), errs: make(chan error)}
}

func (*memory) Addr() net.Addr { return net.TCPAddrFromAddrPort(testAddress) }

func (m *memory) Accept() (net.Conn, error) {
	conn := make(chan net.Conn)
	done := make(chan error, 1)
	go func() {
		c, err := m.Network.Accept()
		if err != nil {
			done <- err
			return
		}
		conn <- c
	}()
	select {
	case c := <-conn:
		return c, nil
	case err := <-done:
		return nil, err
	case err := <-m.errs:
		m.Close()
		return nil, err
	}
}

// from gives a connection the address of a peer.
type from struct {
	net.Conn
	peer netip.AddrPort
}

func (f from) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(f.peer) }

func (m *memory) dial(ctx context.Context, peer netip.AddrPort) (net.Conn, error) {
	client, server := net.Pipe()
	return m.Connect(ctx, client, from{server, peer})
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

// stub is a duty that answers as a test says.
type stub struct {
	name   string
	checks func() []duty.Check
	status func() any
}

// StubStatus is the section of a stub that says nothing else.
type StubStatus struct {
	Fine bool `json:"fine"`
}

func (s *stub) Name() string { return s.name }

func (s *stub) Checks(time.Time) []duty.Check {
	if s.checks == nil {
		return nil
	}
	return s.checks()
}

func (s *stub) Status() any {
	if s.status == nil {
		return StubStatus{Fine: true}
	}
	return s.status()
}

func (*stub) DropCustody(string)          {}
func (*stub) Drain(context.Context) error { return nil }

// says is a stub with fixed checks.
func says(name string, checks ...duty.Check) *stub {
	return &stub{name: name, checks: func() []duty.Check { return checks }}
}

// rig is an endpoint that serves on a network in memory.
type rig struct {
	*Operator
	t      testing.TB
	memory *memory
	events *duty.Events
	log    *lockedBuffer
	served error
	ended  chan struct{}
}

// newRig binds and serves, in fake time. Everything ends with the test.
func newRig(t testing.TB, change ...func(*Config)) *rig {
	t.Helper()
	r := newUnbound(t, change...)
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

func newUnbound(t testing.TB, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, memory: newMemory(), log: &lockedBuffer{}, ended: make(chan struct{})}
	catalogue, err := duty.NewCatalogue(EventKinds)
	if err != nil {
		t.Fatal(err)
	}
	log := duty.NewLogger(duty.LogConfig{Out: r.log, Level: -4})
	cfg := Config{
		Listen:  func(context.Context, string, string) (net.Listener, error) { return r.memory, nil },
		Address: testAddress,
		Events:  duty.NewEvents(duty.EventsConfig{Catalogue: catalogue, Log: log}),
		Log:     log,
	}
	for _, f := range change {
		f(&cfg)
	}
	r.events = cfg.Events
	r.Operator = New(cfg)
	return r
}

// duties is a change of the configuration.
func duties(list ...duty.Duty) func(*Config) { return func(c *Config) { c.Duties = list } }

// read is an answer that was read whole.
type read struct {
	status int
	header http.Header
	body   string
}

// get asks from this machine, on a connection of its own. headers are lines.
func (r *rig) get(path string, headers ...string) read {
	r.t.Helper()
	return r.do(local, "GET "+path, headers...)
}

// do sends a request line and headers, and reads the answer.
func (r *rig) do(peer netip.AddrPort, line string, headers ...string) read {
	r.t.Helper()
	synctest.Wait() // so that no earlier connection is still about to end
	c := r.dial(peer)
	defer c.Close()
	return c.do(line, headers...)
}

// raw is a connection on which a test speaks bytes.
type raw struct {
	net.Conn
	t      testing.TB
	reader *bufio.Reader
}

func (r *rig) dial(peer netip.AddrPort) *raw {
	r.t.Helper()
	conn, err := r.memory.dial(context.Background(), peer)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	return &raw{Conn: conn, t: r.t, reader: bufio.NewReader(conn)}
}

// request returns the text of a request. A Host header is added if there is none.
func request(line string, headers ...string) string {
	text := line + " HTTP/1.1\r\n"
	if !strings.HasPrefix(strings.ToLower(strings.Join(headers, "\n")), "host:") {
		text += "Host: 127.0.0.1:9465\r\n"
	}
	for _, h := range headers {
		text += h + "\r\n"
	}
	return text + "\r\n"
}

func (c *raw) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatalf("send %.60q: %v", text, err)
	}
}

func (c *raw) do(line string, headers ...string) read {
	c.t.Helper()
	c.send(request(line, headers...))
	return c.receive(line)
}

func (c *raw) receive(line string) read {
	c.t.Helper()
	method, _, _ := strings.Cut(line, " ")
	response, err := http.ReadResponse(c.reader, &http.Request{Method: method})
	if err != nil {
		c.t.Fatalf("no answer to %.60q: %v", line, err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatalf("answer to %.60q: %v", line, err)
	}
	return read{status: response.StatusCode, header: response.Header, body: string(body)}
}

// closed reports whether the far end has closed, and waits for it.
func (c *raw) closed() bool {
	n, err := io.Copy(io.Discard, c.reader)
	return n == 0 && err == nil
}

// count returns how many requests for a route had an outcome.
func (r *rig) count(to route, became outcome) uint64 {
	synctest.Wait() // an answer can be read before it is counted
	return r.metrics.requests.Of(to, became).Value()
}
