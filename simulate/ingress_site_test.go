package simulate

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket/carriertest"
)

// site is an ingress with a network of clients before it and networks of backends
// behind it.
type site struct {
	*Ingress
	t     *testing.T
	ca    *TLSAuthority
	clock *clock
	says  answers
	relay *client // hints of the relay
	edge  *carriertest.Network

	mu       sync.Mutex
	backends map[string]*carriertest.Network // by address, of those that take connections
	dialled  []string
}

func newSite(t *testing.T, revision int64, routes ...IngressRoute) *site {
	t.Helper()
	s := &site{t: t, ca: authority(t), clock: &clock{}, says: answers{}, edge: carriertest.NewNetwork(), backends: map[string]*carriertest.Network{}}
	if revision > 0 {
		s.says[pullTable] = tableAnswer(tableOf(t, revision, s.certified(routes...)...))
	}
	var h *hop
	s.Ingress, h, s.relay = ingressAlone(t, s.says, func(cfg *IngressConfig) { cfg.DialBackend, cfg.Wall = s.dial, s.clock.now })
	_ = h
	if err := s.Serve(s.edge); err != nil {
		t.Fatal(err)
	}
	return s
}

// certified gives a certificate to the routes that have none.
func (s *site) certified(routes ...IngressRoute) []IngressRoute {
	for n, r := range routes {
		if r.Certificate == (RouteCertificate{}) {
			routes[n].Certificate = s.ca.route(s.t, r.Hostname).Certificate
		}
	}
	return routes
}

// publish makes these routes the table that the ingress serves.
func (s *site) publish(revision int64, routes ...IngressRoute) {
	s.t.Helper()
	s.says[pullTable] = tableAnswer(tableOf(s.t, revision, s.certified(routes...)...))
	s.relay.hint(revision)
	if err := s.WaitRevision(soon(s.t), revision); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) dial(ctx context.Context, network, address string) (net.Conn, error) {
	s.mu.Lock()
	s.dialled = append(s.dialled, address)
	n := s.backends[address]
	s.mu.Unlock()
	if n == nil {
		return nil, fmt.Errorf("nobody listens at the destination")
	}
	return connect(ctx, n)
}

// connect connects by a pipe that holds what was written, as a socket does.
func connect(ctx context.Context, n *carriertest.Network) (net.Conn, error) {
	client, server := carriertest.Pipe(64 << 10)
	return n.Connect(ctx, client, server)
}

// raw is a backend that does with each connection what the test says.
func (s *site) raw(at string, serve func(net.Conn)) {
	n := carriertest.NewNetwork()
	s.mu.Lock()
	s.backends[at] = n
	s.mu.Unlock()
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := n.Accept()
			if err != nil {
				return
			}
			work.Go(func() { defer conn.Close(); serve(conn) })
		}
	})
	s.t.Cleanup(func() {
		n.Close()
		s.Close() // whose connections the backend has
		work.Wait()
	})
}

// backend is a backend that serves HTTP.
func (s *site) backend(at string, serve http.HandlerFunc) {
	n := carriertest.NewNetwork()
	s.mu.Lock()
	s.backends[at] = n
	s.mu.Unlock()
	server := &http.Server{Handler: serve}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(n) }()
	s.t.Cleanup(func() { server.Close(); <-done })
}

func destination(at string) contract.Destination {
	a := netip.MustParseAddrPort(at)
	return contract.Destination{Address: a.Addr().String(), Port: int64(a.Port())}
}

const backendA, backendB = "10.0.0.1:8080", "10.0.0.2:8080"

// to is a route of a hostname to these addresses, still without a certificate.
func to(hostname string, addresses ...string) IngressRoute {
	r := IngressRoute{Hostname: hostname}
	for _, a := range addresses {
		r.Destinations = append(r.Destinations, destination(a))
	}
	return r
}

// tlsTo returns a client's connection after the handshake for a name.
func (s *site) tlsTo(name string, change func(*tls.Config)) (*tls.Conn, error) {
	s.t.Helper()
	conn, err := connect(soon(s.t), s.edge)
	if err != nil {
		s.t.Fatal(err)
	}
	cfg := &tls.Config{RootCAs: s.ca.Pool(), ServerName: name}
	if change != nil {
		change(cfg)
	}
	secured := tls.Client(conn, cfg)
	s.t.Cleanup(func() { conn.Close() })
	return secured, secured.HandshakeContext(soon(s.t))
}

// says sends these bytes on a fresh connection for a name and returns all that
// comes back until the connection ends.
func (s *site) exchange(name, text string) string {
	s.t.Helper()
	conn, err := s.tlsTo(name, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		s.t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		s.t.Fatalf("%v after %q", err, answer)
	}
	conn.Close()
	synctest.Wait()
	return string(answer)
}

// get sends one request of a client that wants no other one answered.
func get(host, path string, headers ...string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n" + strings.Join(append(headers, "Connection: close"), "\r\n") + "\r\n\r\n"
}

// bodyOf returns the status and the body of an answer.
func bodyOf(answer string) (status, body string) {
	head, body, _ := strings.Cut(answer, "\r\n\r\n")
	line, _, _ := strings.Cut(head, "\r\n")
	_, status, _ = strings.Cut(line, " ")
	return status[:3], body
}

// wait lets what was done be counted, in real time as in fake.
func (s *site) counted(hostname string, want Traffic) {
	s.t.Helper()
	synctest.Wait()
	if got := s.Counted(hostname); got != want {
		s.t.Errorf("counted for %s: %+v, want %+v", hostname, got, want)
	}
}

// client is an HTTP client of the site that names hosts as URLs do.
func (s *site) client() *http.Client {
	transport := &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return connect(ctx, s.edge) },
		TLSClientConfig: &tls.Config{RootCAs: s.ca.Pool()}, Protocols: new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(true)
	s.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}
