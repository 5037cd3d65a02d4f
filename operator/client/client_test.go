package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/operator"
	"serve.zone/relay/typedsocket/carriertest"
)

func TestMain(m *testing.M) {
	// Before anything reads it, which happens once: no call may use it.
	os.Setenv("HTTP_PROXY", "http://proxy.example:1")
	goleak.VerifyTestMain(m)
}

const base = "http://127.0.0.1:9465"

// addressed is a network inside the process with the endpoint's address.
type addressed struct{ *carriertest.Network }

func (addressed) Addr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:9465"))
}

// stub is a duty with one check and a section.
type stub struct{ check duty.Check }

// StubStatus is its section.
type StubStatus struct{}

func (*stub) Name() string                    { return "cloudly" }
func (s *stub) Checks(time.Time) []duty.Check { return []duty.Check{s.check} }
func (*stub) Status() any                     { return StubStatus{} }
func (*stub) DropCustody(string)              {}
func (*stub) Drain(context.Context) error     { return nil }

// serve runs a real endpoint over a network in memory, in fake time.
func serve(t *testing.T, s *stub) (Client, *operator.Operator, *duty.Events) {
	t.Helper()
	network := addressed{carriertest.NewNetwork()}
	catalogue, err := duty.NewCatalogue(operator.EventKinds)
	if err != nil {
		t.Fatal(err)
	}
	events := duty.NewEvents(duty.EventsConfig{Catalogue: catalogue})
	o := operator.New(operator.Config{
		Listen:  func(context.Context, string, string) (net.Listener, error) { return network, nil },
		Address: netip.MustParseAddrPort("127.0.0.1:9465"), Duties: []duty.Duty{s}, Events: events,
	})
	if err := o.Bind(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- o.Serve() }()
	t.Cleanup(func() {
		if err := errors.Join(o.Close(), <-ended); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
	})
	return Client{Base: base, Dial: network.Dial}, o, events
}

func TestAgainstARealEndpoint(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		s := &stub{check: duty.Check{Name: "session", State: duty.OK}}
		c, o, events := serve(t, s)
		if err := c.Live(t.Context()); err != nil {
			t.Error(err)
		}
		ready, err := c.Ready(t.Context())
		if err != nil || !ready.Ready || len(ready.Findings) != 4 || ready.Against() != nil {
			t.Errorf("%+v, %v", ready, err)
		}

		s.check = duty.Check{Name: "session", State: duty.Failing, Reason: "relay-node-unknown", Hint: "Enrol the node first.",
			Facts: []field.Field{field.Generation(3)}, Since: time.Now()}
		time.Sleep(90 * time.Second)
		ready, err = c.Ready(t.Context())
		var notReady *NotReadyError
		if !errors.As(err, &notReady) || err.Error() != "the relay is not ready: cloudly session (relay-node-unknown)" {
			t.Fatalf("%v", err)
		}
		want := []Finding{{Duty: "cloudly", Check: "session", State: "failing", Reason: "relay-node-unknown", Hint: "Enrol the node first.",
			Facts: []byte(`{"generation":3}`), Since: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), AgeSeconds: 90}}
		if diff := cmp.Diff(want, ready.Against()); diff != "" || len(notReady.Readiness.Findings) != 4 {
			t.Error(diff)
		}

		document, err := c.Status(t.Context())
		if err != nil || !strings.HasPrefix(string(document), `{"schema":1,`) || !strings.Contains(string(document), `"cloudly":{}`) {
			t.Errorf("%s, %v", document, err)
		}

		for range 1500 {
			events.Publish(operator.EventFailed, field.Count(7))
		}
		var seen uint64
		for next := uint64(0); ; {
			page, err := c.Events(t.Context(), next)
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Events) == 0 {
				break
			}
			for _, e := range page.Events {
				if seen++; e.Seq != seen {
					t.Fatalf("%d came as %d", seen, e.Seq)
				}
			}
			next = page.Next
		}
		if seen != 1501 {
			t.Errorf("read up to %d", seen)
		}
		page, err := c.Events(t.Context(), 1501)
		at := time.Date(2000, 1, 1, 0, 1, 30, 0, time.UTC)
		wantPage := Page{Next: 1502, Start: at.Add(-90 * time.Second), Events: []Event{
			{Seq: 1501, Time: at, Type: "operator-failed", Duty: "operator", Level: "ERROR", Fields: []byte(`{"count":7}`)}}}
		if diff := cmp.Diff(wantPage, page); diff != "" || err != nil {
			t.Error(diff, err)
		}

		o.SetDraining()
		if _, err := c.Ready(t.Context()); !strings.HasSuffix(fmt.Sprint(err), "operator staying (draining)") {
			t.Error(err)
		}
		c.Base = "http://relay.example:9465"
		if err := c.Live(t.Context()); err == nil || err.Error() != "ask the relay for /livez: it is to be asked by an address or as localhost, not by another name (421)" {
			t.Error(err)
		}
	})
}

// scripted is an endpoint that answers every request with h.
func scripted(t *testing.T, h http.HandlerFunc) Client {
	t.Helper()
	network := carriertest.NewNetwork()
	server := &http.Server{Handler: h}
	ended := make(chan struct{})
	go func() { defer close(ended); server.Serve(network) }()
	t.Cleanup(func() {
		server.Close()
		<-ended
		time.Sleep(time.Second)
	})
	return Client{Base: base, Dial: network.Dial}
}

// calls are all that can be asked, each with its path.
var calls = map[string]func(Client, context.Context) error{
	"/livez":  Client.Live,
	"/readyz": func(c Client, ctx context.Context) error { _, err := c.Ready(ctx); return err },
	"/status": func(c Client, ctx context.Context) error { _, err := c.Status(ctx); return err },
	"/events": func(c Client, ctx context.Context) error { _, err := c.Events(ctx, 1); return err },
	"/explain": func(c Client, ctx context.Context) error {
		_, err := c.Explain(ctx, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.1.0.1"))
		return err
	},
}

func TestAnswersThatAreNotWanted(t *testing.T) {
	say := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	notJSON := func(path string) string { return "ask the relay for " + path + ": the answer is not JSON" }
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		want    func(path string) string
	}{
		{"not for us", say(403, "text/plain", "a secret!"), func(path string) string {
			return "ask the relay for " + path + ": it is answered on the relay's own machine alone, by a loopback address (403)"
		}},
		{"too much at once", say(503, "text/plain", "a secret!"), func(path string) string { return "ask the relay for " + path + ": it cannot answer at present (503)" }},
		{"something else listens there", say(404, "text/html", "a secret!"), func(path string) string { return "ask the relay for " + path + ": status 404" }},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "http://secret/", http.StatusFound) },
			func(path string) string { return "ask the relay for " + path + ": status 302" }},
		{"no JSON", say(200, "text/plain", "a secret!"), notJSON},
		{"text that could be JSON", say(200, "text/plain", `{"ready":true}`), notJSON},
		{"broken JSON", say(200, "application/json", `{"a secret!`), notJSON},
		{"too long", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "67108865") },
			func(path string) string {
				return "ask the relay for " + path + ": the answer is longer than 67108864 bytes"
			}},
	} {
		for path, call := range calls {
			if path == "/livez" && strings.Contains(test.name, "JSON") {
				continue // nobody reads that text
			}
			t.Run(test.name+path, func(t *testing.T) {
				carriertest.Bubble(t, func(t *testing.T) {
					asked := ""
					c := scripted(t, func(w http.ResponseWriter, r *http.Request) {
						asked += r.URL.Path
						if !r.Close {
							t.Error("the connection is kept")
						}
						test.handler(w, r)
					})
					if err := call(c, t.Context()); err == nil || err.Error() != test.want(path) {
						t.Errorf("%v", err)
					}
					if asked != path {
						t.Errorf("asked for %s", asked)
					}
				})
			})
		}
	}
}

func TestErrorsAreTyped(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		status := 503
		c := scripted(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
		})
		for path, call := range calls {
			status = 503
			var unavailable *UnavailableError
			if err := call(c, t.Context()); !errors.As(err, &unavailable) || *unavailable != (UnavailableError{path, 7 * time.Second}) {
				t.Errorf("%s: %v", path, err)
			}
			status = 400
			var answer *AnswerError
			if err := call(c, t.Context()); !errors.As(err, &answer) || *answer != (AnswerError{path, 400}) {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
}

// A relay that is not ready and names nothing is not ready all the same.
func TestNotReadyWithoutFindings(t *testing.T) {
	for _, answer := range []struct {
		status int
		body   string
	}{{503, `{"ready":false,"findings":[]}`}, {200, `{"ready":false}`}, {503, `{"ready":true}`}} {
		carriertest.Bubble(t, func(t *testing.T) {
			c := scripted(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(answer.status)
				io.WriteString(w, answer.body)
			})
			if _, err := c.Ready(t.Context()); err == nil || err.Error() != "the relay is not ready" {
				t.Errorf("%v: %v", answer, err)
			}
		})
	}
}

func TestAgainst(t *testing.T) {
	r := Readiness{Findings: []Finding{
		{Check: "a", State: "ok"}, {Check: "b", State: "failing", Advice: true}, {Check: "c", State: "pending"}, {Check: "d", State: "failing"},
	}}
	if diff := cmp.Diff(r.Findings[2:], r.Against()); diff != "" {
		t.Error(diff)
	}
}

// A relay that hangs, before or within its answer, costs Timeout; a caller may
// have less patience.
func TestCallsEnd(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	half := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "half")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	for name, handler := range map[string]http.HandlerFunc{"before": hang, "within": half} {
		for path, call := range calls {
			t.Run(name+path, func(t *testing.T) {
				carriertest.Bubble(t, func(t *testing.T) {
					c := scripted(t, handler)
					before := time.Now()
					if err := call(c, t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(before) != Timeout {
						t.Errorf("%v after %v", err, time.Since(before))
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					before = time.Now()
					if err := call(c, ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(before) != time.Second {
						t.Errorf("%v after %v", err, time.Since(before))
					}
				})
			})
		}
	}
}

func TestBase(t *testing.T) {
	refused := errors.New("nobody there")
	for target, want := range map[string]string{
		"http://127.0.0.1:9465":  "127.0.0.1:9465",
		"http://127.0.0.1:9465/": "127.0.0.1:9465",
		"http://[::1]:9465":      "[::1]:9465",
		"http://localhost":       "localhost:80",
		"http://10.0.4.7:9465":   "10.0.4.7:9465",
		"":                       "", "127.0.0.1:9465": "", "localhost:9465": "", "https://127.0.0.1:9465": "", "http://": "",
		"http://127.0.0.1:9465/status": "", "http://127.0.0.1:9465?x": "", "http://127.0.0.1:9465#x": "", "http://a:b@127.0.0.1": "", "http://127.0.0.1:x": "",
	} {
		dialled := ""
		c := Client{Base: target, Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			dialled = address
			return nil, refused
		}}
		err := c.Live(t.Context())
		if dialled != want {
			t.Errorf("%q: dialled %q", target, dialled)
		}
		if want == "" && (err == nil || err.Error() != "ask the relay for /livez: the endpoint's URL must be http://, a host and a port") {
			t.Errorf("%q: %v", target, err)
		}
		if want != "" && !errors.Is(err, refused) {
			t.Errorf("%q: %v", target, err)
		}
	}
}

func TestReadAllIsBounded(t *testing.T) {
	for _, test := range []struct {
		body string
		want error
	}{{"", nil}, {"123", nil}, {"1234", errTooLong}, {"123456789", errTooLong}} {
		got, err := readAll(strings.NewReader(test.body), 3)
		if err != test.want || err == nil && string(got) != test.body {
			t.Errorf("%q: %q, %v", test.body, got, err)
		}
	}
}

// Over real sockets, with the dialler of a Client that was given none.
func TestOverTCP(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })}
	ended := make(chan struct{})
	go func() { defer close(ended); server.Serve(listener) }()
	if err := (Client{Base: "http://" + listener.Addr().String()}).Live(t.Context()); err != nil {
		t.Error(err)
	}
	server.Close()
	<-ended
	if err := (Client{Base: "http://" + listener.Addr().String()}).Live(t.Context()); err == nil {
		t.Error("nobody listens any more")
	}
}
