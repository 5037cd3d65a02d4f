package typedsocket

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"

	"github.com/coder/websocket"
)

// Dial says how to reach a server.
type Dial struct {
	// URL is ws, wss, http or https, with the path the server expects.
	URL string
	// Net opens the connection; nil uses a net.Dialer. It is the seam tests
	// put pipes into.
	Net func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is used for wss and https; nil means the defaults of crypto/tls.
	TLS *tls.Config
	// Header is sent with the upgrade.
	Header http.Header
	// Config is the socket's.
	Config Config
}

// UpgradeError is a server that answered but did not upgrade.
type UpgradeError struct {
	Peer   string
	Status int // HTTP status, 0 when the answer was none of HTTP
}

func (e *UpgradeError) Error() string {
	return fmt.Sprintf("dial %s: no upgrade to WebSocket, HTTP status %d", e.Peer, e.Status)
}

// Connect dials. The context bounds the handshake, which takes at most 15 s,
// and nothing after it. It follows no redirect and uses no proxy: a cluster's
// relay speaks to the origin it was given. Errors: *UpgradeError, those of
// net and crypto/tls, or the context's.
func Connect(ctx context.Context, d Dial) (*Socket, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeWait)
	defer cancel()
	u, err := url.Parse(d.URL)
	if err != nil {
		return nil, fmt.Errorf("dial %s: the URL does not parse", d.Config.Peer)
	}
	l := &dialing{ctx: ctx, d: d, host: u.Hostname()}
	transport := &http.Transport{
		DialContext:            l.plain,
		DialTLSContext:         l.secure,
		MaxResponseHeaderBytes: maxHandshakeHeader,
		Protocols:              new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(true)
	defer transport.CloseIdleConnections()

	late := &lateSocket{ready: make(chan struct{})}
	ws, response, err := websocket.Dial(ctx, d.URL, &websocket.DialOptions{
		HTTPClient: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		HTTPHeader:      d.Header,
		CompressionMode: websocket.CompressionDisabled,
		OnPingReceived:  late.ping,
	})
	if err != nil {
		return nil, l.failed(response, err)
	}
	late.s = start(ws, l.link, true, d.Config)
	close(late.ready)
	return late.s, nil
}

// dialing is one dial. Its functions run on goroutines of the transport, which
// may outlive the request; so they follow the dial's own context.
type dialing struct {
	ctx  context.Context
	d    Dial
	host string

	mu   sync.Mutex // guards what follows
	link *link
	err  error // of the connection, before HTTP
}

func (l *dialing) plain(_ context.Context, network, address string) (net.Conn, error) {
	conn, err := l.open(network, address)
	return l.opened(conn, err)
}

func (l *dialing) secure(_ context.Context, network, address string) (net.Conn, error) {
	conn, err := l.open(network, address)
	if err != nil {
		return l.opened(nil, err)
	}
	config := &tls.Config{}
	if l.d.TLS != nil {
		config = l.d.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = l.host
	}
	config.NextProtos = []string{"http/1.1"}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(l.ctx); err != nil {
		conn.Close()
		return l.opened(nil, err)
	}
	return l.opened(secured, nil)
}

func (l *dialing) open(network, address string) (net.Conn, error) {
	dial := l.d.Net
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return dial(l.ctx, network, address)
}

// opened remembers how opening the connection went.
func (l *dialing) opened(conn net.Conn, err error) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.err = err
		return nil, err
	}
	l.link = &link{Conn: conn}
	return l.link, nil
}

// failed names a failed dial without quoting what the server said.
func (l *dialing) failed(response *http.Response, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	peer := l.d.Config.Peer
	var network *net.OpError
	switch {
	case l.ctx.Err() != nil:
		return fmt.Errorf("dial %s: not finished: %w", peer, l.ctx.Err())
	case l.err != nil:
		return fmt.Errorf("dial %s: %w", peer, l.err)
	case response != nil:
		return &UpgradeError{Peer: peer, Status: response.StatusCode}
	case errors.As(err, &network):
		return fmt.Errorf("dial %s: %w", peer, network)
	}
	return &UpgradeError{Peer: peer}
}

// lateSocket gives pings to a socket that is made after the library's
// connection that delivers them.
type lateSocket struct {
	s     *Socket
	ready chan struct{}
}

func (l *lateSocket) ping(ctx context.Context, payload []byte) bool {
	<-l.ready
	return l.s.ping(ctx, payload)
}
