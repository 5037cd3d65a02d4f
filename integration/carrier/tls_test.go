package carrier

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"serve.zone/relay/typedsocket"
)

// upgrade serves sockets under a test certificate.
func upgrade(t *testing.T, cfg typedsocket.Config) (*httptest.Server, <-chan *typedsocket.Socket) {
	t.Helper()
	sockets := make(chan *typedsocket.Socket, 4)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s, err := typedsocket.Accept(w, r, cfg); err == nil {
			sockets <- s
		}
	}))
	t.Cleanup(server.Close)
	return server, sockets
}

func roots(server *httptest.Server) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return &tls.Config{RootCAs: pool, ServerName: "example.com"}
}

// R29, R93: over TLS and real sockets on both sides, bodies from a few bytes to the
// largest report pass unchanged.
func TestR29_BytesPassOverTLSOnBothSides(t *testing.T) {
	cloud, cloudSockets := upgrade(t, typedsocket.Config{Peer: "relay", Handler: newMethods()})
	up, err := typedsocket.Connect(t.Context(), typedsocket.Dial{URL: cloud.URL + "/socket", TLS: roots(cloud), Config: typedsocket.Config{Peer: "cloudly"}})
	if err != nil {
		t.Fatal(err)
	}
	relay, relaySockets := upgrade(t, typedsocket.Config{Peer: "node", Handler: typedsocket.HandlerFunc(func(r *typedsocket.Request) {
		if err := r.Forward(up, typedsocket.Forward{Method: "echo", Flow: "node-a"}); err != nil {
			t.Error(err)
			r.Fail()
		}
	})})
	node, err := typedsocket.Connect(t.Context(), typedsocket.Dial{URL: relay.URL, TLS: roots(relay), Config: typedsocket.Config{Peer: "relay"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1, 500, 4 << 10, 16 << 10, 64 << 10, 100 << 10, 1 << 20, 2<<20 - 1000} {
		body := `{ "log" : "` + strings.Repeat("é\\u0041", size/8) + `", "n" : 1.50 }`
		a, err := node.Call(t.Context(), "echo", []byte(body), typedsocket.CallOptions{})
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if got := string(a.Response()); got != `{"got":`+body+`}` {
			t.Errorf("%d bytes came back as %d", len(body), len(got))
		}
		a.Release()
	}
	for _, s := range []*typedsocket.Socket{node, up, <-cloudSockets, <-relaySockets} {
		s.Close(typedsocket.CloseNormal, "")
		<-s.Done()
	}
}

func TestAWrongCertificateIsNamed(t *testing.T) {
	server, _ := upgrade(t, typedsocket.Config{Peer: "relay"})
	server.Config.ErrorLog = discardLog()
	_, err := typedsocket.Connect(t.Context(), typedsocket.Dial{URL: server.URL, Config: typedsocket.Config{Peer: "cloudly"}})
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) || !strings.HasPrefix(err.Error(), "dial cloudly: ") {
		t.Fatalf("%v", err)
	}
}

// TestNoRedirectIsFollowed: neither a redirect nor any other answer that is
// no upgrade leads anywhere, and what the server wrote is not repeated.
func TestNoRedirectIsFollowed(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			return
		}
		http.Error(w, "secret words of the server", http.StatusForbidden)
	}))
	defer server.Close()
	for path, status := range map[string]int{"/redirect": 307, "/": 403} {
		_, err := typedsocket.Connect(context.Background(), typedsocket.Dial{URL: server.URL + path, Config: typedsocket.Config{Peer: "cloudly"}})
		var refused *typedsocket.UpgradeError
		if !errors.As(err, &refused) || refused.Status != status || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

// TestAPeerInTheMiddleOfItsMessageSeesWhyItIsRefused: over real connections,
// where closing with bytes unread would reset and lose the close frame.
func TestAPeerInTheMiddleOfItsMessageSeesWhyItIsRefused(t *testing.T) {
	for name, secure := range map[string]bool{"tcp": false, "tls": true} {
		ended := make(chan *typedsocket.Socket, 1)
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if s, err := typedsocket.Accept(w, r, typedsocket.Config{Peer: "node", Limits: typedsocket.Limits{Frame: 64 << 10}}); err == nil {
				ended <- s
			}
		})
		server := httptest.NewServer(handler)
		client := http.DefaultClient
		if secure {
			server.Close()
			server = httptest.NewTLSServer(handler)
			client = server.Client()
		}
		for range 10 {
			c, _, err := websocket.Dial(t.Context(), server.URL, &websocket.DialOptions{HTTPClient: client})
			if err != nil {
				t.Fatal(err)
			}
			seen := make(chan error, 1)
			go func() { _, _, err := c.Read(context.Background()); seen <- err }()
			c.Write(t.Context(), websocket.MessageText, bytes.Repeat([]byte("x"), 8<<20))
			if err := <-seen; websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
				t.Errorf("%s: the peer saw %v", name, err)
			}
			c.CloseNow()
			<-(<-ended).Done()
		}
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	}
}

// TestAFailedHandshakeLeavesNoConnection.
func TestAFailedHandshakeLeavesNoConnection(t *testing.T) {
	server, _ := upgrade(t, typedsocket.Config{Peer: "relay"})
	server.Config.ErrorLog = discardLog()
	closed := make(chan struct{})
	_, err := typedsocket.Connect(t.Context(), typedsocket.Dial{URL: server.URL, Config: typedsocket.Config{Peer: "cloudly"},
		Net: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, address)
			return &tracked{Conn: c, closed: closed}, err
		}})
	if err == nil {
		t.Fatal("an unknown certificate was accepted")
	}
	<-closed
}

// tracked tells when a connection is closed.
type tracked struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func (c *tracked) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
