package listener

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

var _ duty.Duty = (*Listener)(nil)

// bare is a listener that nobody binds or serves for it.
func bare(t testing.TB, listen func(context.Context, string, string) (net.Listener, error), address string) (*Listener, *duty.Events) {
	catalogue, err := duty.NewCatalogue(EventKinds)
	if err != nil {
		t.Fatal(err)
	}
	events := duty.NewEvents(duty.EventsConfig{Catalogue: catalogue})
	return New(Config{
		Listen: listen, Address: netip.MustParseAddrPort(address), Events: events,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return theCertificate(), nil },
	}), events
}

// R13: what was really bound is reported, on the machine's own network: port 0 becomes
// the port that nodes can dial.
func TestR13_WhatWasReallyBoundIsReported(t *testing.T) {
	asked := ""
	l, _ := bare(t, func(ctx context.Context, network, address string) (net.Listener, error) {
		asked = network + " " + address
		return new(net.ListenConfig).Listen(ctx, network, address)
	}, "127.0.0.1:0")
	if l.Addr().IsValid() {
		t.Errorf("before: %s", l.Addr())
	}
	if err := l.Bind(t.Context()); err != nil {
		t.Fatal(err)
	}
	if asked != "tcp4 127.0.0.1:0" {
		t.Errorf("asked for %s", asked)
	}
	if a := l.Addr(); a.Addr() != netip.MustParseAddr("127.0.0.1") || a.Port() == 0 {
		t.Errorf("bound %s", a)
	}
	served := make(chan error, 1)
	go func() { served <- l.Serve() }()
	client, err := typedsocket.Connect(t.Context(), typedsocket.Dial{
		URL: "wss://" + l.Addr().String(), TLS: clientTLS(), Config: typedsocket.Config{Peer: "relay"}})
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := refused(t, client, "registerPalletRuntimeSession", `{}`); !strings.HasPrefix(text, "relay-node-session-not-current") {
		t.Errorf("refused with %q", text)
	}
	if err := l.Bind(t.Context()); err == nil {
		t.Error("bound twice")
	}
	if err := l.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	wantEnd(t, client, typedsocket.CloseRestart, true)
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the port is still bound")
	}
}

// fixed is a listener with an address of the test's.
type fixed struct {
	net.Listener
	address net.Addr
	closed  bool
}

func (f *fixed) Addr() net.Addr { return f.address }
func (f *fixed) Close() error   { f.closed = true; return nil }

// TestAnotherAddressIsNotTaken for the one that was asked for: what is
// registered is what nodes are told to dial.
func TestAnotherAddressIsNotTaken(t *testing.T) {
	tcp := func(s string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }
	tests := []struct {
		asked string
		bound net.Addr
		ok    bool
	}{
		{"10.0.4.7:8443", tcp("10.0.4.7:8443"), true},
		{"10.0.4.7:0", tcp("10.0.4.7:40000"), true},
		{"10.0.4.7:8443", tcp("[::ffff:10.0.4.7]:8443"), true},
		{"10.0.4.7:8443", tcp("0.0.0.0:8443"), false},
		{"10.0.4.7:8443", tcp("[::]:8443"), false},
		{"10.0.4.7:8443", tcp("10.0.4.7:8444"), false},
		{"10.0.4.7:8443", tcp("10.0.4.8:8443"), false},
		{"10.0.4.7:8443", &net.UnixAddr{Name: "x", Net: "unix"}, false},
	}
	for _, test := range tests {
		f := &fixed{address: test.bound}
		l, events := bare(t, func(context.Context, string, string) (net.Listener, error) { return f, nil }, test.asked)
		err := l.Bind(t.Context())
		if (err == nil) != test.ok || f.closed == test.ok {
			t.Errorf("%s for %s: %v, closed %v", test.bound, test.asked, err, f.closed)
		}
		if !test.ok && (l.Addr().IsValid() || len(events.Since(0).Events) > 0) {
			t.Errorf("%s for %s: shown as %s", test.bound, test.asked, l.Addr())
		}
	}
}

func TestABindThatFailsIsSaid(t *testing.T) {
	refusedBind := &net.OpError{Op: "listen", Net: "tcp4", Err: syscall.EADDRINUSE}
	l, _ := bare(t, func(context.Context, string, string) (net.Listener, error) { return nil, refusedBind }, "10.0.4.7:8443")
	if c := l.Checks(time.Now())[0]; c.State != duty.Pending || c.Reason != "starting" {
		t.Errorf("before: %+v", c)
	}
	err := l.Bind(t.Context())
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.HasPrefix(err.Error(), "bind the node listener to 10.0.4.7:8443: ") {
		t.Errorf("error %v", err)
	}
	if c := l.Checks(time.Now())[0]; c.Name != "bound" || c.Advice || c.State != duty.Failing || c.Reason != "failed" {
		t.Errorf("after: %+v", c)
	}
	if err := l.Serve(); err == nil {
		t.Error("served without being bound")
	}
}

// B155: the accept loop outlives a time without file descriptors, and takes connections
// again afterwards.
func TestB155_TheAcceptLoopOutlivesExhaustion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		for range 5 {
			r.memory.errs <- &net.OpError{Op: "accept", Net: "tcp4", Err: syscall.EMFILE}
		}
		time.Sleep(5 * time.Second)
		r.connect()
		if c := r.Checks(time.Now())[0]; c.State != duty.OK {
			t.Errorf("check %+v", c)
		}
		if log := r.log.String(); strings.Count(log, `"msg":"http-accept-error"`) != 5 {
			t.Errorf("log: %s", log)
		}
	})
}

// An accept loop that ends by itself is an error and an event; sockets go on.
func TestAnAcceptLoopThatEndsIsSaid(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		node, _ := r.node("node-a")
		broken := errors.New("the network has gone")
		r.memory.errs <- broken
		<-r.ended
		if !errors.Is(r.served, broken) {
			t.Errorf("serve: %v", r.served)
		}
		r.served = nil
		call(t, node, "echo", `{}`)
		if c := r.Checks(time.Now())[0]; c.State != duty.Failing || c.Reason != "failed" {
			t.Errorf("check %+v", c)
		}
		if got := r.published(); got[len(got)-1] != EventFailed {
			t.Errorf("events %v", got)
		}
	})
}

// TestConnectionsAreBounded: one more than there may be is closed at once, and
// welcome as soon as another has gone.
func TestConnectionsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		all := make([]net.Conn, maxConnections)
		for i := range all {
			conn, err := r.memory.dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all[i] = conn
		}
		synctest.Wait()
		r.wantMetric(maxConnections, "relay_listener_open_connections")
		for range 2 {
			over, err := r.memory.dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			if _, err := over.Read(make([]byte, 1)); err == nil || time.Since(begin) > 0 {
				t.Errorf("one too many: %v after %s", err, time.Since(begin))
			}
		}
		r.wantMetric(2, "relay_listener_refused_connections_total")
		if got := countOf(r.published(), EventConnectionsFull); got != 1 {
			t.Errorf("%d events say so", got)
		}
		all[0].Close()
		synctest.Wait()
		r.connect()
		for _, c := range all {
			c.Close()
		}
	})
}

func TestABoundIsSaidOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, events := bare(t, func(context.Context, string, string) (net.Listener, error) { return nil, nil }, "10.0.4.7:1")
		for range 3 * 60 {
			l.sayFull(EventSocketsFull, field.Limit(maxSockets))
			l.sayFull(EventConnectionsFull, field.Limit(maxConnections))
			time.Sleep(time.Second)
		}
		if got := len(events.Since(0).Events); got != 6 {
			t.Errorf("%d events in three minutes, want 3 of each", got)
		}
	})
}

// R95: the listener's checks, and its sockets with role, node and address, are shown as
// one document.
func TestR95_ChecksAndStatus(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		readiness := duty.Ask(time.Now(), r.Listener)
		var names []string
		for _, f := range readiness.Findings {
			names = append(names, f.Duty+"/"+f.Check)
		}
		if diff := cmp.Diff([]string{"listener/bound", "listener/sockets"}, names); diff != "" || !readiness.Ready {
			t.Errorf("ready %v, checks (-want +got):\n%s", readiness.Ready, diff)
		}
		_, a := r.node("node-b")
		_, b := r.connect()
		b.BindIngress("node-a")
		r.connect()
		time.Sleep(time.Second)
		sections, err := duty.Assemble(r.Listener)
		if err != nil || len(sections) != 1 || sections[0].Name != "listener" {
			t.Fatal(sections, err)
		}
		got := sections[0].Value.(Status)
		for i := range got.Bound {
			got.Bound[i].FramesIn, got.Bound[i].FramesOut, got.Bound[i].BytesIn, got.Bound[i].BytesOut = 0, 0, 0, 0
		}
		want := Status{State: "serving", Address: "10.0.4.7:8443", Connections: Level{3, maxConnections}, Sockets: Level{3, maxSockets}, Unbound: 1,
			Bound: []SocketStatus{
				{Role: "ingress", Node: "node-a", Address: b.address.String(), Since: b.since.UTC()},
				{Role: "node", Node: "node-b", Address: a.address.String(), Since: a.since.UTC()},
			}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
		text, err := json.Marshal(got)
		if err != nil || !strings.Contains(string(text), `"bound":[{"role":"ingress","node":"node-a","address":"10.9.8.7:`) {
			t.Errorf("status as JSON: %s %v", text, err)
		}
	})
}

func TestEveryEnumHasItsNames(t *testing.T) {
	seen := map[string]bool{}
	check := func(kind, name string) {
		if !field.IsName(name) || seen[kind+name] {
			t.Errorf("%s %q is no name of its own", kind, name)
		}
		seen[kind+name] = true
	}
	for s := starting; s <= closed; s++ {
		check("state", s.String())
	}
	for o := range outcomes {
		check("outcome", o.String())
	}
	for c := range causes {
		check("cause", c.String())
	}
}
