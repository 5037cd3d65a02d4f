package operator

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket/carriertest"
)

// mustPanic returns what f panics with.
func mustPanic(t *testing.T, f func()) (text string) {
	t.Helper()
	defer func() {
		text, _ = recover().(string)
		if text == "" {
			t.Error("no panic")
		}
	}()
	f()
	return ""
}

func TestConfigurationsThatCannotBeRight(t *testing.T) {
	listen := func(context.Context, string, string) (net.Listener, error) { return newMemory(), nil }
	good := Config{Listen: listen, Address: testAddress, Events: duty.NewEvents(duty.EventsConfig{})}
	const missing = "operator: Listen, Address and Events must be set"
	for _, test := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"no Listen", func(c *Config) { c.Listen = nil }, missing},
		{"no Address", func(c *Config) { c.Address = netip.AddrPort{} }, missing},
		{"no Events", func(c *Config) { c.Events = nil }, missing},
		{"a duty without a name", duties(says("")), `operator: "" is not the name of one duty`},
		{"a duty twice", duties(says("hub"), says("hub")), `operator: "hub" is not the name of one duty`},
		{"the operator itself", duties(says("operator")), `operator: "operator" is not the name of one duty`},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := good
			test.change(&cfg)
			if got := mustPanic(t, func() { New(cfg) }); got != test.want {
				t.Error(got)
			}
		})
	}
	New(good) // without a logger, a clock, a build
}

// elsewhere is a listener that was bound to another address.
type elsewhere struct{ *memory }

func (elsewhere) Addr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.1:9465"))
}

func TestBind(t *testing.T) {
	refused := errors.New("address in use")
	for _, test := range []struct {
		name    string
		address string
		give    func(*memory) (net.Listener, error)
		network string
		want    string // of the error; empty when bound
	}{
		{"as asked", "127.0.0.1:9465", func(m *memory) (net.Listener, error) { return m, nil }, "tcp4", ""},
		{"any port", "127.0.0.1:0", func(m *memory) (net.Listener, error) { return m, nil }, "tcp4", ""},
		{"refused", "127.0.0.1:9465", func(*memory) (net.Listener, error) { return nil, refused }, "tcp4", "bind the operator endpoint to 127.0.0.1:9465: address in use"},
		{"another address", "127.0.0.1:9465", func(m *memory) (net.Listener, error) { return elsewhere{m}, nil }, "tcp4",
			"bind the operator endpoint to 127.0.0.1:9465: another address was bound"},
		{"another port", "127.0.0.1:80", func(m *memory) (net.Listener, error) { return m, nil }, "tcp4",
			"bind the operator endpoint to 127.0.0.1:80: another address was bound"},
		{"another family", "[::]:9465", func(m *memory) (net.Listener, error) { return m, nil }, "tcp",
			"bind the operator endpoint to [::]:9465: another address was bound"},
	} {
		t.Run(test.name, func(t *testing.T) {
			carriertest.Bubble(t, func(t *testing.T) {
				var network, address string
				var r *rig
				r = newUnbound(t, func(c *Config) {
					c.Address = netip.MustParseAddrPort(test.address)
					c.Listen = func(_ context.Context, n, a string) (net.Listener, error) {
						network, address = n, a
						return test.give(r.memory)
					}
				})
				err := r.Bind(t.Context())
				if network != test.network || address != test.address {
					t.Errorf("listened on %s %s", network, address)
				}
				if test.want != "" {
					if err == nil || err.Error() != test.want {
						t.Errorf("%v", err)
					}
					if r.Addr().IsValid() || r.state != failed || len(r.events.Since(0).Events) != 0 {
						t.Errorf("address %v, state %s", r.Addr(), r.state)
					}
					return
				}
				if err != nil || r.Addr() != testAddress {
					t.Errorf("%v, %v", r.Addr(), err)
				}
				if err := r.Bind(t.Context()); !errors.Is(err, errNotStarting) || r.state != serving {
					t.Errorf("again: %v, %s", err, r.state)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Of two calls at once one binds, and the other changes nothing.
func TestBindTwiceAtOnce(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		var r *rig
		slower := newMemory()
		r = newUnbound(t, func(c *Config) {
			first := true
			c.Listen = func(ctx context.Context, _, _ string) (net.Listener, error) {
				if !first {
					return r.memory, nil
				}
				first = false
				if err := r.Bind(ctx); err != nil {
					t.Errorf("the faster one: %v", err)
				}
				return slower, nil
			}
		})
		if err := r.Bind(t.Context()); !errors.Is(err, errNotStarting) || r.state != serving || r.Addr() != testAddress {
			t.Errorf("%v, %s", err, r.state)
		}
		if _, err := slower.dial(t.Context(), local); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the listener of the slower one: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What net/http has to say ends in our log, without its text.
func TestLinesOfTheServer(t *testing.T) {
	r := newUnbound(t)
	r.http.ErrorLog.Print("http: a secret!")
	if got := r.log.String(); !strings.Contains(got, `"msg":"http-line","source":"operator","bytes":15}`) || strings.Contains(got, "secret") {
		t.Error(got)
	}
}

func TestServeBeforeBindAndAfterClose(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newUnbound(t)
		if err := r.Serve(); err == nil || err.Error() != "serve the operator endpoint: it is not bound" {
			t.Error(err)
		}
		if err := r.Bind(t.Context()); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := r.Serve(); err != nil {
			t.Error(err)
		}
		if err := r.Bind(t.Context()); !errors.Is(err, errNotStarting) {
			t.Error(err)
		}
	})
}

func TestTheEndOfTheAcceptLoop(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newUnbound(t)
		if err := r.Bind(t.Context()); err != nil {
			t.Fatal(err)
		}
		go func() { defer close(r.ended); r.served = r.Serve() }()
		r.memory.errs <- net.UnknownNetworkError("a secret!")
		<-r.ended
		if r.served == nil || !strings.HasPrefix(r.served.Error(), "serve the operator endpoint: ") {
			t.Errorf("%v", r.served)
		}
		page := r.events.Since(2)
		if len(page.Events) != 1 || page.Events[0].Type != EventFailed || page.Events[0].Fields[0].String() != "network not known" {
			t.Errorf("%+v", page)
		}
		if checks := r.Checks(time.Now()); checks[1].Name != "bound" || checks[1].Reason != "failed" {
			t.Errorf("%+v", checks[1])
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What is being answered is answered whole; what comes later is refused.
func TestDrainFinishesWhatIsInFlight(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		entered, release := make(chan struct{}), make(chan struct{})
		r := newRig(t, duties(&stub{name: "hub", status: func() any { close(entered); <-release; return StubStatus{} }}))
		inFlight, resting := r.dial(local), r.dial(local)
		resting.do("GET /livez")
		r.dial(remote) // and one that says nothing
		inFlight.send(request("GET /status"))
		<-entered
		drained := make(chan error, 1)
		go func() { drained <- r.Drain(context.Background()) }()
		synctest.Wait()
		if _, err := r.memory.dial(t.Context(), local); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a new connection: %v", err)
		}
		if got := resting.do("GET /livez"); got.status != 503 || got.body != "the relay is leaving\n" || r.count(routeLive, leaving) != 1 {
			t.Errorf("a new request: %d %q", got.status, got.body)
		}
		select {
		case err := <-drained:
			t.Fatalf("drained before the answer: %v", err)
		default:
		}
		close(release)
		if got := inFlight.receive("GET /status"); got.status != 200 || !strings.Contains(got.body, `"draining":true`) {
			t.Errorf("in flight: %d %s", got.status, got.body)
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if r.state != draining {
			t.Errorf("state %s", r.state)
		}
		<-r.ended
	})
}

// A peer that connected and says nothing does not hold a drain up.
func TestDrainWhileIdleIsQuick(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.occupy(3)
		r.dial(remote)
		before := time.Now()
		if err := r.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(before); took > lastWords {
			t.Errorf("took %v", took)
		}
	})
}

func TestDrainEndsWithItsContext(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.dial(local)
		c.send(request("GET /metrics")) // and does not read
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := r.Drain(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "drain the operator endpoint: requests were still being answered: ") {
			t.Error(err)
		}
		synctest.Wait()
		if n := r.metrics.connections.Value(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

// Close waits for nobody but a duty that hangs, and for that not for long.
func TestClose(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		r := newRig(t, duties(&stub{name: "hub", status: func() any { <-release; return nil }}))
		r.dial(local).send(request("GET /status"))
		r.dial(local).send(request("GET /events?fromSeq=2&wait=30"))
		r.occupy(2)
		synctest.Wait()
		before := time.Now()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(before); took > 2*askWait {
			t.Errorf("took %v", took)
		}
		synctest.Wait()
		if n := r.metrics.connections.Value(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
		if err := r.Close(); err != nil {
			t.Errorf("again: %v", err)
		}
	})
}

// Custody holds nothing here and changes nothing.
func TestDropCustody(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t, duties(says("cloudly", ok("session"))))
		before := r.get("/readyz?verbose").body
		r.DropCustody("relay-node-foreign")
		if diff := cmp.Diff(before, r.get("/readyz?verbose").body); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOwnChecks(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for s, want := range map[state]struct {
		state  duty.State
		reason string
	}{
		starting: {duty.Pending, "starting"}, serving: {duty.OK, ""}, failed: {duty.Failing, "failed"},
		draining: {duty.Failing, "draining"}, closed: {duty.Failing, "closed"},
	} {
		got := boundCheck(s, at, field.Address(testAddress))
		if got.State != want.state || got.Reason != want.reason || !got.Advice || (got.Hint == "") != (s == serving) || got.Since != at {
			t.Errorf("%s: %+v", s, got)
		}
	}
	for open, want := range map[int]duty.State{0: duty.OK, maxConnections - 1: duty.OK, maxConnections: duty.Failing, maxConnections + 1: duty.Failing} {
		if got := roomCheck(Level{Open: open, Limit: maxConnections}); got.State != want || !got.Advice {
			t.Errorf("%d open: %+v", open, got)
		}
	}
	if got := stayingCheck(at, time.Time{}); got.State != duty.OK || !got.Advice || got.Since != at {
		t.Errorf("staying: %+v", got)
	}
	if got := stayingCheck(time.Time{}, at); got.State != duty.Failing || got.Advice || got.Reason != "draining" || got.Since != at {
		t.Errorf("leaving: %+v", got)
	}
}

// A mistake of this package is told by a 500, costs one connection and is
// counted; none of its text is shown.
func TestAPanicOfAHandler(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.scrape = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a secret!") })
		c := r.dial(local)
		if got := c.do("GET /metrics"); got.status != 500 || got.body != "the relay made a mistake; its log has more\n" || !c.closed() {
			t.Errorf("%d %q", got.status, got.body)
		}
		// Once an answer has begun it must not look whole.
		r.scrape = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", textType)
			w.Write([]byte("half"))
			http.NewResponseController(w).Flush()
			panic("a secret!")
		})
		c = r.dial(local)
		c.send(request("GET /metrics"))
		response, err := http.ReadResponse(c.reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := response.Body.Read(make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		if n, err := response.Body.Read(make([]byte, 100)); err == nil || n != 0 {
			t.Errorf("the answer went on: %d, %v", n, err)
		}
		synctest.Wait()
		if n := r.count(routeMetrics, broken); n != 2 {
			t.Errorf("counted %d", n)
		}
		if len(r.answers) != 0 {
			t.Error("a place was lost")
		}
		log := r.log.String()
		if strings.Contains(log, "secret!") || strings.Count(log, `"msg":"panic-recovered","duty":"operator","reason":"metrics"`) != 2 {
			t.Errorf("%s", log)
		}
		if got := r.get("/status"); got.status != 200 {
			t.Errorf("after it: %d", got.status)
		}
	})
}
