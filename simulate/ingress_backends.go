package simulate

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// dialError is a destination that takes no connection.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

// dial opens a connection to a destination within its time. It ends with the
// ingress, since a transport may dial on behind a request that has ended.
func (w *web) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	defer context.AfterFunc(w.ended, cancel)()
	conn, err := w.i.cfg.DialBackend(ctx, network, address)
	if err != nil {
		return nil, dialError{err}
	}
	return conn, nil
}

func newBackends(w *web) *http.Transport {
	t := &http.Transport{
		DialContext:            w.dial,
		DisableCompression:     true, // what the client accepts is its own to say
		MaxIdleConns:           maximumConnections,
		MaxIdleConnsPerHost:    maximumIdleBackends,
		IdleConnTimeout:        30 * time.Second,
		ResponseHeaderTimeout:  answerWait,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maximumHeader,
		Protocols:              new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	return t
}

// next returns the destinations of a route in the order in which they are tried:
// the one whose turn it is first.
func (w *web) next(route string, all []string) []string {
	if len(all) == 0 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.turn) >= maximumBuckets {
		clear(w.turn) // routes that have gone; a turn is no promise
	}
	first := w.turn[route] % len(all)
	w.turn[route] = first + 1
	return append(append([]string(nil), all[first:]...), all[:first]...)
}

// inTurn sends each request to the next destination of its route. One that takes no
// connection has seen nothing of the request, so that the next one can have it.
type inTurn struct{ w *web }

// RoundTrip returns errNoBackend when there is no connection to any destination.
func (t *inTurn) RoundTrip(r *http.Request) (*http.Response, error) {
	route := exchangeOf(r).route
	attempt := r.Clone(r.Context())
	body := &clientBody{Reader: r.Body}
	if r.Body != nil && r.Body != http.NoBody {
		defer r.Body.Close()
		attempt.Body = body
	}
	for _, destination := range t.w.next(route.hostname, route.destinations) {
		attempt.URL.Host = destination
		answer, err := t.w.backends.RoundTrip(attempt)
		if err == nil {
			answer.Request = r
			return answer, nil
		}
		if body.broke.Load() {
			return nil, errClient
		}
		if !errors.As(err, new(dialError)) || r.Context().Err() != nil {
			return nil, err
		}
		t.w.i.count(route.hostname, Traffic{Failures: BackendFailures{Connect: 1}})
	}
	return nil, errNoBackend
}

// errClient is a request whose client has not sent all of it.
var errClient = errors.New("the request ended early")

// clientBody is the body of a request. It outlives an attempt that has seen nothing
// of it, and knows when it was the client that broke it off.
type clientBody struct {
	io.Reader
	broke atomic.Bool
}

func (b *clientBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF {
		b.broke.Store(true)
	}
	return n, err
}

// Close leaves the body open.
func (b *clientBody) Close() error { return nil }
