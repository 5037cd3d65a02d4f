package listener

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// What forward asks of a socket.
var _ interface {
	Socket() *typedsocket.Socket
	Role() string
	BindNode(nodeID string) error
	Bound() string
} = (*Conn)(nil)

// TestOneRoleASocket: from unbound to one role for one node, never back and
// never to another.
func TestOneRoleASocket(t *testing.T) {
	asNode := func(id string) func(*Conn) error { return func(c *Conn) error { return c.BindNode(id) } }
	asIngress := func(id string) func(*Conn) error { return func(c *Conn) error { return c.BindIngress(id) } }
	tests := []struct {
		name  string
		binds []func(*Conn) error
		errs  []error
		role  string
		node  string
	}{
		{"unbound", nil, nil, Unbound, ""},
		{"a node", []func(*Conn) error{asNode("node-a")}, []error{nil}, Node, "node-a"},
		{"rotation", []func(*Conn) error{asNode("node-a"), asNode("node-a")}, []error{nil, nil}, Node, "node-a"},
		{"R33: a second node", []func(*Conn) error{asNode("node-a"), asNode("node-b")}, []error{nil, ErrBound}, Node, "node-a"},
		{"a node becomes an ingress", []func(*Conn) error{asNode("node-a"), asIngress("node-a")}, []error{nil, ErrBound}, Node, "node-a"},
		{"an ingress", []func(*Conn) error{asIngress("node-a"), asIngress("node-a")}, []error{nil, nil}, Ingress, "node-a"},
		{"an ingress becomes a node", []func(*Conn) error{asIngress("node-a"), asNode("node-a")}, []error{nil, ErrBound}, Ingress, "node-a"},
		{"another ingress", []func(*Conn) error{asIngress("node-a"), asIngress("node-b")}, []error{nil, ErrBound}, Ingress, "node-a"},
		{"R01: odd ids", []func(*Conn) error{asNode("a.b"), asNode(""), asNode(strings.Repeat("a", 129)), asNode("-a_")}, []error{ErrNodeID, ErrNodeID, ErrNodeID, nil}, Node, "-a_"},
	}
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		for _, test := range tests {
			client, c := r.connect()
			for i, bind := range test.binds {
				if err := bind(c); err != test.errs[i] {
					t.Errorf("%s: bind %d: %v, want %v", test.name, i, err, test.errs[i])
				}
			}
			if c.Role() != test.role || c.Bound() != test.node {
				t.Errorf("%s: %s %q", test.name, c.Role(), c.Bound())
			}
			r.wantMetric(1, "relay_listener_open_sockets", test.role)
			if test.role != Unbound {
				r.wantMetric(0, "relay_listener_open_sockets", Unbound)
			}
			client.Close(typedsocket.CloseNormal, "")
			<-c.Socket().Done()
			synctest.Wait()
			r.wantMetric(0, "relay_listener_open_sockets", test.role)
			if err := c.BindNode("node-a"); err != ErrEnded {
				t.Errorf("%s: bind after the end: %v", test.name, err)
			}
		}
	})
}

// TestAnUnregisteredSocketHasThirtySeconds, whatever it says meanwhile; one with
// a role has for ever.
func TestAnUnregisteredSocketHasThirtySeconds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		silent, _ := r.connect()
		busy, _ := r.connect()
		node, _ := r.node("node-a")
		ingress, c := r.connect()
		if err := c.BindIngress("node-a"); err != nil {
			t.Fatal(err)
		}
		for range 29 {
			time.Sleep(time.Second)
			call(t, busy, "registerPalletRuntimeSession", `{}`)
		}
		if silent.Err() != nil || busy.Err() != nil {
			t.Fatal("ended early:", silent.Err(), busy.Err())
		}
		late, atTheLast := r.connect()
		time.Sleep(time.Second + time.Millisecond)
		for _, s := range []*typedsocket.Socket{silent, busy} {
			if s.Err() == nil {
				t.Error("still there after 30 s")
			}
			wantEnd(t, s, typedsocket.CloseUnregistered, true)
		}
		time.Sleep(29*time.Second - 2*time.Millisecond)
		if err := atTheLast.BindNode("node-b"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		for _, s := range []*typedsocket.Socket{node, ingress, late} {
			call(t, s, "echo", `{}`)
		}
		r.wantMetric(2, "relay_listener_closed_sockets_total", "unregistered")
		// Strangers do not fill the ring of events.
		if got := countOf(r.published(), EventSocketClosed); got != 0 {
			t.Errorf("%d events about sockets that nobody registered", got)
		}
	})
}

// TestBindingAndExpiryAreExclusive: at the instant of the deadline exactly one
// of the two happens, and it is final.
func TestBindingAndExpiryAreExclusive(t *testing.T) {
	outcomes := map[bool]int{}
	for range 50 {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			client, c := r.connect()
			time.Sleep(registrationWait - time.Since(c.since))
			err := c.BindNode("node-a")
			time.Sleep(10 * time.Second)
			ended := client.Err() != nil
			if (err == nil) == ended {
				t.Errorf("bound: %v, ended: %v", err, client.Err())
			}
			outcomes[ended]++
		})
	}
	t.Logf("bound in time: %d, expired: %d", outcomes[false], outcomes[true])
}

// A socket whose time is up cannot be bound any more, even before it has ended.
func TestAnExpiredSocketIsNotBound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, c := r.connect()
		c.mu.Lock()
		c.expired = true
		c.mu.Unlock()
		if err := c.BindNode("node-a"); err != ErrEnded || c.Role() != Unbound {
			t.Errorf("%v, %s", err, c.Role())
		}
	})
}

// B208: sockets, busy and idle ones, outlive the timeouts of the HTTP server that took
// them.
func TestB208_SocketsOutliveTheServersTimeouts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		idle, _ := r.node("node-a")
		busy, _ := r.node("node-b")
		for range 6 * 60 {
			time.Sleep(time.Minute)
			call(t, busy, "echo", `{}`)
		}
		call(t, idle, "echo", `{}`)
		// A frame that takes minutes to send is no header that does.
		slow := r.upgraded()
		request := envelope("hello", `{}`, "c")
		slow.send(frame(0x81, uint64(len(request)), request))
		if err := (<-r.conns).BindNode("node-c"); err != nil {
			t.Fatal(err)
		}
		go io.Copy(io.Discard, slow.reader)
		text := frame(0x81, uint64(len(request)), request)
		for i := range text {
			time.Sleep(5 * time.Second) // it answers no pings, but it is heard of
			slow.send(text[i : i+1])
		}
		<-r.conns
	})
}

// B017: a node that vanished without a word is back after 5 s and served; its old
// socket is gone within the silence it has.
func TestB017_AGhostDoesNotKeepItsNodeOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		ghost := r.upgraded()
		request := envelope("hello", `{}`, "c")
		ghost.send(frame(0x81, uint64(len(request)), request))
		old := <-r.conns
		if err := old.BindNode("node-a"); err != nil {
			t.Fatal(err)
		}
		// Unplugged: it neither reads nor writes any more.
		time.Sleep(5 * time.Second)
		client, c := r.node("node-a")
		call(t, client, "reportRuntimeAssignmentLogs", `{}`)
		if status := r.Status().(Status); len(status.Bound) != 2 || status.Bound[0].Node != "node-a" || status.Bound[1].Node != "node-a" ||
			status.Bound[0].Since.After(status.Bound[1].Since) || status.Bound[0].Address == status.Bound[1].Address {
			t.Errorf("status does not show both: %+v", status.Bound) // B055
		}
		time.Sleep(2 * time.Minute)
		if old.Socket().Err() == nil {
			t.Error("the ghost is still there")
		}
		if c.Socket().Err() != nil {
			t.Error("the node's new socket ended:", c.Socket().Err())
		}
		if status := r.Status().(Status); status.Sockets.Open != 1 {
			t.Errorf("%d places are taken", status.Sockets.Open)
		}
	})
}

func TestFrameLimitsFollowTheRole(t *testing.T) {
	text := func(size int) string { return `{"a":"` + strings.Repeat("x", size) + `"}` }
	tests := []struct {
		role       string
		passes     int
		refuses    int // a request of this size is refused, and the socket stands; 0: none
		closes     int
		closeLimit int
	}{
		{Unbound, 60 << 10, 0, 64 << 10, contract.UnregisteredFrameLimit},
		{Node, 3 << 20, 0, 4 << 20, contract.NodeFrameLimit},
		{Ingress, 60 << 10, 65 << 10, 1 << 20, contract.IngressFrameLimit},
	}
	for _, test := range tests {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			other, _ := r.node("node-z")
			client, c := r.connect()
			switch test.role {
			case Node:
				c.BindNode("node-a")
			case Ingress:
				c.BindIngress("node-a")
			}
			if got := call(t, client, "echo", text(test.passes)); got != text(test.passes) {
				t.Errorf("%s: %d bytes came back", test.role, len(got))
			}
			if test.refuses > 0 {
				got, data := refused(t, client, "echo", text(test.refuses))
				want := fmt.Sprintf("frame-too-large: %d bytes pass the limit of 65536", len(text(test.refuses)))
				if got != want || data != `{"code":"frame-too-large"}` {
					t.Errorf("%s: refused with %q %s", test.role, got, data)
				}
				// An answer of the ingress, such as a page of statistics, may be larger.
				a, err := c.Socket().Call(context.Background(), "echo", []byte(text(900<<10)), typedsocket.CallOptions{})
				if err != nil {
					t.Errorf("%s: a large answer: %v", test.role, err)
				} else {
					a.Release()
				}
			}
			go client.Call(context.Background(), "echo", []byte(text(test.closes)), typedsocket.CallOptions{})
			end := wantEnd(t, client, typedsocket.CloseTooBig, true)
			<-c.Socket().Done()
			if want := fmt.Sprintf("message larger than %d bytes", test.closeLimit); !strings.Contains(c.Socket().Err().Error(), want) {
				t.Errorf("%s: %v, %v", test.role, end, c.Socket().Err())
			}
			synctest.Wait()
			r.wantMetric(1, "relay_listener_closed_sockets_total", "too-big")
			call(t, other, "echo", `{}`)
		})
	}
}

func TestHooksAreCalledOnceInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		client, c := r.node("node-a")
		var mu sync.Mutex
		var called []string
		note := func(name string) func() {
			return func() {
				mu.Lock()
				defer mu.Unlock()
				called = append(called, name)
				if c.Socket().Err() == nil {
					t.Errorf("%s: called while the socket stands", name)
				}
			}
		}
		c.OnClose(note("first"))
		c.OnClose(func() { panic("a body with secrets") })
		c.OnClose(note("second"))
		c.OnClose(func() { c.OnClose(note("from a hook")) })
		time.Sleep(time.Minute)
		client.Close(typedsocket.CloseNormal, "")
		<-client.Done()
		synctest.Wait()
		c.OnClose(note("late"))
		synctest.Wait()
		if want := []string{"first", "second", "from a hook", "late"}; !slices.Equal(called, want) {
			t.Errorf("called %v, want %v", called, want)
		}
		if log := r.log.String(); !strings.Contains(log, "panic-recovered") || strings.Contains(log, "secrets") {
			t.Errorf("log: %s", log)
		}
	})
}

// A hook runs as soon as the socket begins to end, not when the peer agrees.
func TestHooksDoNotWaitForTheGoodbye(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, c := r.node("node-a")
		var after time.Duration
		begin := time.Now()
		c.OnClose(func() { after = time.Since(begin) })
		c.Socket().Close(typedsocket.CloseSuperseded, "")
		synctest.Wait()
		if after != 0 {
			t.Errorf("called after %s", after)
		}
	})
}

func TestTheEndOfABoundSocketIsAnEvent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		client, c := r.node("node-a")
		time.Sleep(time.Minute)
		c.Socket().Close(typedsocket.CloseSuperseded, "")
		wantEnd(t, client, typedsocket.CloseSuperseded, true)
		synctest.Wait()
		events := r.events.Since(0).Events
		last := events[len(events)-1]
		got := map[string]string{}
		for _, f := range last.Fields {
			got[f.Key().String()] = f.String()
		}
		want := map[string]string{"role": "node", "node": "node-a", "address": c.address.String(), "reason": "superseded", "closeCode": "4001", "durationSeconds": "60"}
		if last.Type != EventSocketClosed || len(got) != len(want) {
			t.Fatalf("last event: %+v", last)
		}
		for key, value := range want {
			if got[key] != value {
				t.Errorf("%s is %q, want %q", key, got[key], value)
			}
		}
	})
}

func TestCauses(t *testing.T) {
	end := func(code typedsocket.CloseCode, remote bool) error {
		return &typedsocket.EndError{Code: code, Remote: remote}
	}
	tests := []struct {
		err  error
		want cause
	}{
		{end(typedsocket.CloseNormal, true), causePeer}, {end(1005, true), causePeer}, {end(typedsocket.CloseTooBig, true), causePeer},
		{end(1006, true), causeLost}, {end(1006, false), causeLost}, {end(typedsocket.CloseSilent, false), causeSilent},
		{end(typedsocket.CloseSlow, false), causeSlow}, {end(typedsocket.CloseProtocol, false), causeProtocol},
		{end(typedsocket.CloseUnsupported, false), causeBinary}, {end(typedsocket.CloseInvalidData, false), causeMalformed},
		{end(typedsocket.CloseTooBig, false), causeTooBig}, {end(typedsocket.ClosePolicy, false), causePolicy},
		{end(typedsocket.CloseUnregistered, false), causeUnregistered}, {end(typedsocket.CloseSuperseded, false), causeSuperseded},
		{end(typedsocket.CloseCustodyEnded, false), causeCustodyEnded}, {end(typedsocket.CloseRegisterAgain, false), causeRegisterAgain},
		{end(typedsocket.CloseRestart, false), causeRestart}, {end(typedsocket.CloseInternal, false), causeInternal},
		{end(typedsocket.CloseGoingAway, false), causeOurs}, {end(4999, false), causeOurs}, {errors.New("?"), causeOurs}, {nil, causeOurs},
	}
	for _, test := range tests {
		if got := causeOf(test.err); got != test.want {
			t.Errorf("%v: %s, want %s", test.err, got, test.want)
		}
	}
}
