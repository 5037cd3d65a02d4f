package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// Timeout bounds a call: the endpoint itself gives up after 10 s.
	Timeout = 15 * time.Second
	// MaximumBody bounds an answer: some ten times the largest document of a
	// relay with 256 nodes, and small enough for any machine.
	MaximumBody = 64 << 20
	// maximumHeader bounds an answer's header.
	maximumHeader = 64 << 10
)

// Client asks the operator endpoint of one relay.
type Client struct {
	// Base is the endpoint's URL without a path, such as http://127.0.0.1:9465.
	// Its host is an address or localhost; the endpoint refuses names.
	Base string
	// Dial makes the connections: a net.Dialer's DialContext if nil.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Live asks whether the process lives; nil means yes.
func (c Client) Live(ctx context.Context) error {
	_, err := c.get(ctx, "/livez", "", http.StatusOK)
	return err
}

// Ready asks for every check. The error is a NotReadyError if a required one is
// against; the readiness is complete then too.
func (c Client) Ready(ctx context.Context) (Readiness, error) {
	a, err := c.get(ctx, "/readyz", "verbose&format=json", http.StatusOK, http.StatusServiceUnavailable)
	if err != nil {
		return Readiness{}, err
	}
	// A 503 without JSON is no judgement: the endpoint has no place for us.
	if a.status == http.StatusServiceUnavailable && !a.json {
		return Readiness{}, a.unavailable("/readyz")
	}
	var r Readiness
	if err := a.decode("/readyz", &r); err != nil {
		return Readiness{}, err
	}
	if !r.Ready || a.status != http.StatusOK {
		return r, &NotReadyError{Readiness: r}
	}
	return r, nil
}

// Status asks for the status document and returns its text, which is JSON.
func (c Client) Status(ctx context.Context) ([]byte, error) {
	a, err := c.get(ctx, "/status", "", http.StatusOK)
	if err != nil {
		return nil, err
	}
	if !a.json || !json.Valid(a.body) {
		return nil, fmt.Errorf("ask the relay for /status: %w", errNotJSON)
	}
	return a.body, nil
}

// Events asks for the events numbered from or later. The page may end before
// the latest one; ask again from its Next until it is empty.
func (c Client) Events(ctx context.Context, from uint64) (Page, error) {
	a, err := c.get(ctx, "/events", "fromSeq="+strconv.FormatUint(from, 10), http.StatusOK)
	if err != nil {
		return Page{}, err
	}
	var p Page
	if err := a.decode("/events", &p); err != nil {
		return Page{}, err
	}
	return p, nil
}

// Explain asks which rule of the hub's network admits or drops packets from one address
// to another. The error is ErrNoHub if the relay has no hub. Only an endpoint on this
// machine answers.
func (c Client) Explain(ctx context.Context, from, to netip.Addr) (Explanation, error) {
	const path = "/explain"
	query := url.Values{"from": {from.String()}, "to": {to.String()}}.Encode()
	a, err := c.get(ctx, path, query, http.StatusOK, http.StatusNotFound)
	if err != nil {
		return Explanation{}, err
	}
	if a.status == http.StatusNotFound {
		var refusal struct {
			Error string `json:"error"`
		}
		if a.json && json.Unmarshal(a.body, &refusal) == nil && refusal.Error == noHub {
			return Explanation{}, ErrNoHub
		}
		return Explanation{}, &AnswerError{Path: path, Status: a.status}
	}
	var x Explanation
	if err := a.decode(path, &x); err != nil {
		return Explanation{}, err
	}
	return x, nil
}

// answer is an answer that was read whole.
type answer struct {
	status     int
	json       bool // it says that it is
	retryAfter time.Duration
	body       []byte
}

var (
	errNotJSON = errors.New("the answer is not JSON")
	errTooLong = fmt.Errorf("the answer is longer than %d bytes", MaximumBody)
)

func (a answer) decode(path string, to any) error {
	if !a.json || json.Unmarshal(a.body, to) != nil {
		return fmt.Errorf("ask the relay for %s: %w", path, errNotJSON)
	}
	return nil
}

func (a answer) unavailable(path string) error {
	return &UnavailableError{Path: path, RetryAfter: a.retryAfter}
}

// get asks for a path. An answer of another status than those wanted is an
// error.
func (c Client) get(ctx context.Context, path, query string, wanted ...int) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	a, err := c.ask(ctx, path, query)
	if err != nil {
		return answer{}, fmt.Errorf("ask the relay for %s: %w", path, err)
	}
	for _, status := range wanted {
		if a.status == status {
			return a, nil
		}
	}
	if a.status == http.StatusServiceUnavailable {
		return answer{}, a.unavailable(path)
	}
	return answer{}, &AnswerError{Path: path, Status: a.status}
}

func (c Client) ask(ctx context.Context, path, query string) (answer, error) {
	target, err := c.target(path, query)
	if err != nil {
		return answer{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return answer{}, err
	}
	dial := c.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	// A transport of one call: nothing is left of it when the body was read. Its
	// Proxy is not set, so none is used.
	transport := &http.Transport{
		DialContext: dial, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maximumHeader,
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return answer{}, &NoAnswerError{Cause: err}
	}
	defer response.Body.Close()
	if response.ContentLength > MaximumBody {
		return answer{}, errTooLong
	}
	body, err := readAll(response.Body, MaximumBody)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: response.StatusCode, body: body}
	a.json = strings.HasPrefix(response.Header.Get("Content-Type"), "application/json")
	if seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16); err == nil {
		a.retryAfter = time.Duration(seconds) * time.Second
	}
	return a, nil
}

// readAll reads a body of at most limit bytes.
func readAll(from io.Reader, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && int64(len(body)) > limit {
		return nil, errTooLong
	}
	return body, err
}

// target returns the URL of a path.
func (c Client) target(path, query string) (string, error) {
	base, err := url.Parse(c.Base)
	if err != nil || base.Scheme != "http" || base.Host == "" || base.User != nil ||
		strings.TrimSuffix(base.Path, "/") != "" || base.RawQuery != "" || base.Fragment != "" {
		return "", errors.New("the endpoint's URL must be http://, a host and a port")
	}
	return (&url.URL{Scheme: base.Scheme, Host: base.Host, Path: path, RawQuery: query}).String(), nil
}
