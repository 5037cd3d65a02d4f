package simulate

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
)

// exchange is what is known of one request on its way through the proxy.
type exchange struct {
	route    *servedRoute
	upgraded bool // the backend has agreed to another protocol
}

type exchangeKey struct{}

func exchangeOf(r *http.Request) *exchange { return r.Context().Value(exchangeKey{}).(*exchange) }

// serveHTTP judges a request and forwards it.
func (w *web) serveHTTP(rw http.ResponseWriter, r *http.Request) {
	if !w.i.enter() {
		http.Error(rw, "ended", http.StatusServiceUnavailable)
		return
	}
	defer w.i.work.Done()
	hostname := r.Context().Value(connKey{}).(*clientConn).hostname
	w.i.count(hostname, Traffic{Requests: 1})
	route := w.i.route(hostname)
	switch {
	case hostOf(r.Host) != hostname:
		// One connection is one hostname's, by whose bytes its traffic is counted.
		http.Error(rw, "not the hostname of this connection", http.StatusMisdirectedRequest)
	case route == nil:
		rw.Header().Set("Connection", "close")
		http.Error(rw, "no route", http.StatusNotFound)
	case r.Method == http.MethodConnect || !strings.HasPrefix(r.URL.Path, "/"):
		http.Error(rw, "not a request for a path", http.StatusBadRequest)
	case !route.auth.admits(r):
		rw.Header().Set("WWW-Authenticate", `Basic realm="`+hostname+`", charset="UTF-8"`)
		http.Error(rw, "authentication is required", http.StatusUnauthorized)
	default:
		x := &exchange{route: route}
		w.proxy.ServeHTTP(rw, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
	}
}

// hostOf returns the hostname of a Host header.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// admits reports whether a request may pass: nil admits all of them.
func (b *BasicAuth) admits(r *http.Request) bool {
	if b == nil {
		return true
	}
	user, password, ok := r.BasicAuth()
	return ok && sameText(user, b.User)&sameText(password, b.Password) == 1
}

// sameText compares in a time that says nothing of either text, nor of its length.
func sameText(a, b string) int {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:])
}

func newProxy(w *web, silent *log.Logger) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite:       rewrite,
		Transport:     &inTurn{w},
		FlushInterval: -1, // what a backend streams is not kept back
		ErrorLog:      silent,
		ErrorHandler:  w.failed,
		ModifyResponse: func(answer *http.Response) error {
			x := exchangeOf(answer.Request)
			x.upgraded = answer.StatusCode == http.StatusSwitchingProtocols
			if !x.upgraded {
				answer.Body = &watchedBody{answer.Body, w, answer.Request}
			}
			return nil
		},
	}
}

// rewrite makes the request that a backend gets: the client's own path, query and
// host, unchanged, without its credentials for this ingress.
func rewrite(p *httputil.ProxyRequest) {
	p.SetXForwarded()
	p.Out.Header.Set("X-Forwarded-Proto", "https")
	p.Out.Host = p.In.Host
	p.Out.URL.Scheme, p.Out.URL.RawQuery = "http", p.In.URL.RawQuery
	if exchangeOf(p.In).route.auth != nil {
		p.Out.Header.Del("Authorization")
	}
}

// errNoBackend is a request for which there is no connection.
var errNoBackend = errors.New("no destination of the route takes a connection")

// failed answers a request that no backend has answered, and counts why.
func (w *web) failed(rw http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r)
	var f BackendFailures
	status := http.StatusBadGateway
	var slow net.Error
	switch {
	case errors.Is(err, errNoBackend): // counted where it was dialled
	case r.Context().Err() != nil, errors.Is(err, errClient): // nobody's but the client's
	case x.upgraded:
		f.Handshake = 1
	default:
		f.Request = 1
		if errors.As(err, &slow) && slow.Timeout() {
			status = http.StatusGatewayTimeout
		}
	}
	w.i.count(x.route.hostname, Traffic{Failures: f})
	http.Error(rw, http.StatusText(status), status)
}

// watchedBody notices an answer that breaks in the middle.
type watchedBody struct {
	io.ReadCloser
	w *web
	r *http.Request
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && b.r.Context().Err() == nil {
		b.w.i.count(exchangeOf(b.r).route.hostname, Traffic{Failures: BackendFailures{Request: 1}})
	}
	return n, err
}
