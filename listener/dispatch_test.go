package listener

import (
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// TestWhatEachRoleMaySend: every role against methods of every kind. What is not
// served is refused by name, in text and data alike.
func TestWhatEachRoleMaySend(t *testing.T) {
	const (
		served     = ""
		noSession  = "relay-node-session-not-current: this socket has no registered session of a node"
		noIngress  = "cluster-ingress-not-registered: this socket is no registered ingress"
		cloudly    = "relay-cloudly-only: only Cloudly sends this method"
		escrow     = "escrow-cloudly-only: only Cloudly sends this method"
		forwarded  = "relay-method-not-forwarded"
		noSuchRole = "relay-method-not-forwarded"
	)
	tests := []struct{ method, unbound, node, ingress string }{
		{"registerPalletRuntimeSession", served, served, noSession},
		{"reportRuntimeAssignmentLogs", noSession, served, noSession},
		{"configuredMethod", noSession, served, noSession},
		{"registerClusterIngress", served, noIngress, noSuchRole},
		{"getClusterIngressRouteTable", noIngress, noIngress, served},
		// R39: Cloudly's own, by names of their own
		{"holdRuntimeNetworkDnsLeaseRenewals", escrow, escrow, escrow},
		{"pushClusterRouteTable", cloudly, cloudly, cloudly},
		{"applyClusterVpnNetwork", cloudly, cloudly, cloudly},
		{"getClusterTrafficStatistics", cloudly, cloudly, cloudly},
		{"pushClusterConfig", cloudly, cloudly, cloudly},
		{"getClusterCorestoreInventory", cloudly, cloudly, cloudly},
		// R38: the wrong direction, and what never passes
		{"applyRuntimeAssignment", forwarded, forwarded, forwarded},
		{"applyRuntimeNetworkDnsLeaseRenewal", forwarded, forwarded, forwarded},
		{"openRuntimeAssignmentExec", forwarded, forwarded, forwarded},
		{"registerClusterRelay", forwarded, forwarded, forwarded},
		{"pushClusterIngressRouteTableChanged", forwarded, forwarded, forwarded},
		{"backupServiceDatabaseClosure", forwarded, forwarded, forwarded},
		{"getIdentityByToken", forwarded, forwarded, forwarded},
		{"nobodyKnowsThis", forwarded, forwarded, forwarded},
		{"RegisterPalletRuntimeSession", forwarded, forwarded, forwarded},
		// a node's method that the table of this relay has for nobody
		{"reportRuntimeNetworkProtection", noSession, forwarded, noSession},
	}
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		plain, _ := r.connect()
		nodes, _ := r.node("node-a")
		ingresses, c := r.connect()
		c.BindIngress("node-b")
		for _, test := range tests {
			for role, want := range map[*typedsocket.Socket]string{plain: test.unbound, nodes: test.node, ingresses: test.ingress} {
				if want == served {
					if got := call(t, role, test.method, `{"x":1}`); got != `{"x":1}` {
						t.Errorf("%q: answered %s", test.method, got)
					}
					continue
				}
				name, _, _ := strings.Cut(want, ":")
				if text, data := refused(t, role, test.method, `{"x":1}`); text != want || data != `{"code":"`+name+`"}` {
					t.Errorf("%q: refused with %q %s, want %q", test.method, text, data, want)
				}
			}
		}
		r.wantMetric(3, "relay_listener_typed_requests_total", Node, "served") // echoes its hello apart
		r.wantMetric(1, "relay_listener_typed_requests_total", Ingress, "escrow-cloudly-only")
		r.wantMetric(2, "relay_listener_typed_requests_total", Node, "cluster-ingress-not-registered")
	})
}

// R71: what the listener itself turns away of a route is refused in that route's own
// form.
func TestR71_ARouteRefusesInItsOwnForm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var held []*typedsocket.Request
		hold := func(_ *Conn, q *typedsocket.Request) { held = append(held, q) }
		own := func(q *typedsocket.Request, name contract.RefusalName) {
			q.Refuse("own: "+string(name), []byte(`{"own":1}`))
		}
		r := newRig(t, func(c *Config) {
			c.Routes = append(c.Routes, Route{Role: Unbound, Method: "hold", Serve: hold, Refuse: own},
				Route{Role: Ingress, Method: "hold", Serve: hold, Refuse: own})
		})
		client, c := r.connect()
		want := func(name, body string) {
			t.Helper()
			if text, data := refused(t, client, "hold", body); text != "own: "+name || data != `{"own":1}` {
				t.Errorf("refused with %q %s", text, data)
			}
		}
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() { call(t, client, "hold", `{}`) })
		}
		synctest.Wait()
		want("relay-overloaded", `{}`)
		r.wantMetric(1, "relay_listener_typed_requests_total", Unbound, "relay-overloaded")
		if err := c.BindIngress("node-a"); err != nil {
			t.Fatal(err)
		}
		want("frame-too-large", `{"x":"`+strings.Repeat("x", contract.IngressRequestLimit)+`"}`)
		r.wantMetric(1, "relay_listener_typed_requests_total", Ingress, "frame-too-large")
		drained := make(chan error, 1)
		go func() { drained <- r.Drain(t.Context()) }()
		synctest.Wait()
		want("relay-not-ready", `{}`)
		for _, q := range held {
			q.Answer([]byte(`{}`))
		}
		calls.Wait()
		if err := <-drained; err != nil {
			t.Error(err)
		}
	})
}

func TestAPanicOfAHandlerFailsItsRequestAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		node, _ := r.node("node-a")
		if text, data := refused(t, node, "panics", `{}`); text != "Internal server error" || data != "{}" {
			t.Errorf("answered %q %s", text, data)
		}
		call(t, node, "echo", `{}`)
		if log := r.log.String(); !strings.Contains(log, "panic-recovered") || strings.Contains(log, "secrets") {
			t.Errorf("log: %s", log)
		}
	})
}

// TestRequestsInFlightFollowTheRole: two before a registration, 64 after it; the
// next is refused by name, and one more is welcome when one was answered.
func TestRequestsInFlightFollowTheRole(t *testing.T) {
	for _, test := range []struct {
		role  string
		limit int
		text  string
	}{
		{Unbound, 2, "relay-overloaded: 2 requests are in flight before a registration"},
		{Node, 64, "relay-overloaded: 64 requests or 8388608 bytes wait for an answer on this socket"},
	} {
		bubble(t, func(t *testing.T) {
			var mu sync.Mutex
			var held []*typedsocket.Request
			hold := func(_ *Conn, q *typedsocket.Request) {
				mu.Lock()
				defer mu.Unlock()
				held = append(held, q)
			}
			r := newRig(t, func(c *Config) {
				c.Routes = append(c.Routes, Route{Role: Unbound, Method: "hold", Serve: hold}, Route{Role: Node, Method: "hold", Serve: hold})
			})
			client, c := r.connect()
			if test.role == Node {
				c.BindNode("node-a")
			}
			var calls sync.WaitGroup
			for range test.limit {
				calls.Go(func() { call(t, client, "hold", `{}`) })
			}
			synctest.Wait()
			if text, data := refused(t, client, "hold", `{}`); text != test.text || data != `{"code":"relay-overloaded"}` {
				t.Errorf("%s: refused with %q %s", test.role, text, data)
			}
			mu.Lock()
			held[0].Answer([]byte(`{}`))
			held = held[1:]
			mu.Unlock()
			synctest.Wait()
			calls.Go(func() { call(t, client, "hold", `{}`) })
			synctest.Wait()
			mu.Lock()
			if len(held) != test.limit {
				t.Errorf("%s: %d in flight, want %d", test.role, len(held), test.limit)
			}
			for _, q := range held {
				q.Answer([]byte(`{}`))
			}
			mu.Unlock()
			calls.Wait()
		})
	}
}

// R03: a malformed frame closes that socket only, of whatever role; the others go on,
// and the listener counts it.
func TestR03_AMalformedFrameClosesThatSocketOnly(t *testing.T) {
	text := func(payload string) string { return frame(0x81, uint64(len(payload)), payload) }
	tests := []struct {
		name, bytes string
		code        typedsocket.CloseCode
		cause       cause
	}{
		{"no JSON", text(`not json`), 1007, causeMalformed},
		{"empty", text(``), 1007, causeMalformed},
		{"an array", text(`[]`), 1007, causeMalformed},
		{"a string", text(`"text"`), 1007, causeMalformed},
		{"trailing data", text(`{"a":1} {}`), 1007, causeMalformed},
		{"bad UTF-8", text("{\"a\":\"\xff\"}"), 1007, causeMalformed},
		{"bad UTF-8 in a name", text("{\"\xc3\x28\":1}"), 1007, causeMalformed},
		{"depth", text(strings.Repeat(`{"a":`, 65) + `1` + strings.Repeat(`}`, 65)), 1007, causeMalformed},
		{"depth in a body", text(`{"request":` + strings.Repeat(`[`, 64) + strings.Repeat(`]`, 64) + `}`), 1007, causeMalformed},
		{"a name twice", text(`{"method":"a","method":"b"}`), 1007, causeMalformed},
		{"a name twice, escaped", text(`{"method":"a","\u006dethod":"b"}`), 1007, causeMalformed},
		{"a name twice in a body", text(`{"request":{"x":1,"x":2}}`), 1007, causeMalformed},
		{"__proto__", text(`{"__proto__":1}`), 1007, causeMalformed},
		{"a lone surrogate", text(`{"method":"\ud800"}`), 1007, causeMalformed},
		{"a number", text(`{"a":01}`), 1007, causeMalformed},
		{"binary", frame(0x82, 2, `{}`), 1003, causeBinary},
		{"empty binary", frame(0x82, 0, ``), 1003, causeBinary},
		{"an unknown opcode", frame(0x83, 2, `{}`), 1002, causeProtocol},
		{"a reserved bit", frame(0xc1, 2, `{}`), 1002, causeProtocol},
		{"no mask", "\x81\x02{}", 1002, causeProtocol},
		{"a continuation of nothing", frame(0x80, 2, `{}`), 1002, causeProtocol},
		{"B166: a negative length", frame(0x81, 1<<63, `{}`), 1002, causeProtocol},
		{"B166: all bits", frame(0x81, 1<<64-1, `{}`), 1002, causeProtocol},
		{"a long ping", frame(0x89, 200, strings.Repeat("x", 200)), 1002, causeProtocol},
		{"a close frame of one byte", frame(0x88, 1, `x`), 1002, causeProtocol},
		{"B175: too big", frame(0x81, 64<<10+1, strings.Repeat("x", 64<<10+1)), 1009, causeTooBig},
	}
	for _, role := range []string{Unbound, Node, Ingress} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			others := map[string]*typedsocket.Socket{}
			others[Unbound], _ = r.connect()
			others[Node], _ = r.node("node-y")
			ingress, ingressConn := r.connect()
			ingressConn.BindIngress("node-z")
			others[Ingress] = ingress
			for _, test := range tests {
				if test.cause == causeTooBig && role != Unbound {
					continue
				}
				c := r.upgraded()
				hello := envelope("hello", `{}`, "c")
				c.send(frame(0x81, uint64(len(hello)), hello))
				conn := <-r.conns
				c.message()
				switch role {
				case Node:
					conn.BindNode("node-a")
				case Ingress:
					conn.BindIngress("node-a")
				}
				before := metric(r.Metrics(), "relay_listener_closed_sockets_total", test.cause.String())
				go c.Write([]byte(test.bytes))
				if code, reason := c.closeFrame(); code != test.code {
					t.Errorf("%s, %s: closed with %d %q, want %d", role, test.name, code, reason, test.code)
				}
				c.Close()
				<-conn.Socket().Done()
				synctest.Wait()
				r.wantMetric(before+1, "relay_listener_closed_sockets_total", test.cause.String())
			}
			for name, other := range others {
				if got := call(t, other, "echo", `{"still":"here"}`); got != `{"still":"here"}` {
					t.Errorf("%s after all of it: %s", name, got)
				}
			}
		})
	}
}

// B170: a first message that is bent at random, as text or as binary, costs its socket
// at most.
func TestB170_TheFirstMessageMayBeAnything(t *testing.T) {
	seeds := []string{
		envelope("registerPalletRuntimeSession", `{"nodeId":"node-a"}`, "c"), envelope("hello", `null`, "c"), envelope("echo", `[]`, ""),
		`{}`, `[]`, `{"method":"echo"}`, `{"correlation":{"id":1e400,"phase":"request"},"method":"echo","request":{}}`,
		`{"method":"__typedsocket_setTag","request":{"name":"a","payload":1},"correlation":{"id":"c","phase":"request"}}`, "\xff", ``,
	}
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		random := rand.New(rand.NewPCG(170, 1))
		for i := range 600 {
			message := []byte(seeds[i%len(seeds)])
			for range i / len(seeds) % 6 {
				at := random.IntN(len(message) + 1)
				switch random.IntN(3) {
				case 0:
					message = slices.Insert(message, at, byte(random.UintN(256)))
				case 1:
					message = message[:at]
				case 2:
					message = append(message, message[at:]...)
				}
			}
			c := r.upgraded()
			go io.Copy(io.Discard, c.reader)
			c.send(frame([]byte{0x81, 0x82}[i%2], uint64(len(message)), string(message)))
			time.Sleep(time.Second)
			c.Close()
		}
		time.Sleep(5 * time.Second)
		if got := r.Status().(Status).Sockets.Open; got != 0 {
			t.Errorf("%d sockets are left", got)
		}
		r.connect()
		if strings.Contains(r.log.String(), "panic") {
			t.Errorf("log: %s", r.log)
		}
	})
}

// R30: a request that the listener refuses is zeroed: it may have been a registration,
// and its memory is lent to others next.
func TestR30_ARefusedRequestIsZeroed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		left := make(chan string, 1)
		r := newRig(t, func(c *Config) {
			c.Routes = append(c.Routes, Route{Role: Unbound, Method: "refuse", Serve: func(c *Conn, q *typedsocket.Request) {
				body := q.Body()
				c.refuse(q, outcomeNotReady, "")
				left <- string(body)
			}})
		})
		// A bare peer: it takes nothing from the pool that the memory went back to.
		c, request := r.upgraded(), envelope("refuse", `{"bearer":"clusterRelayToken_x"}`, "c")
		c.send(frame(0x81, uint64(len(request)), request))
		if got := <-left; strings.Trim(got, "\x00") != "" {
			t.Errorf("%q is left", got)
		}
	})
}

func TestRoutesThatCannotBeRight(t *testing.T) {
	serve := func(*Conn, *typedsocket.Request) {}
	for name, routes := range map[string][]Route{
		"unknown role": {{Role: "cloudly", Method: "a", Serve: serve}}, "no method": {{Role: Node, Serve: serve}},
		"no handler": {{Role: Node, Method: "a"}},
		"twice":      {{Role: Node, Method: "a", Serve: serve}, {Role: Node, Method: "a", Serve: serve}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: accepted", name)
				}
			}()
			newTable(routes)
		}()
	}
	defer func() {
		if recover() == nil {
			t.Error("an empty configuration: accepted")
		}
	}()
	New(Config{})
}
