package forward

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// serveRegistrations answers what comes to Cloudly until its socket ends: nodes
// get the session of their first registration again.
func (w *wire) serveRegistrations() {
	for {
		select {
		case f := <-w.frames:
			if f.Method == register {
				id := strings.Split(string(f.Request), `"`)[3]
				w.ws.Write(w.t.Context(), 1, fmt.Appendf(nil, `{"method":%q,%s,"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`,
					register, accepted(sessionOf(id, 1)), f.RequestInstanceID, f.Correlation.ID))
			}
		case <-w.ended:
			return
		}
	}
}

// pallet is a node that dials again after a time whenever it has no session, and
// admits whatever it is given.
type pallet struct {
	r      *rig
	id     string
	redial time.Duration
	stop   chan struct{}
	mu     sync.Mutex
	closes []time.Time
}

func (r *rig) pallets(n int, redial time.Duration) []*pallet {
	var all []*pallet
	var running sync.WaitGroup
	for i := range n {
		p := &pallet{r: r, id: fmt.Sprintf("node-%02d", i), redial: redial, stop: make(chan struct{})}
		all = append(all, p)
		running.Go(p.run)
		synctest.Wait() // dials meet their sockets one at a time
	}
	r.t.Cleanup(func() {
		for _, p := range all {
			close(p.stop)
		}
		running.Wait()
	})
	return all
}

func (p *pallet) run() {
	for {
		w := p.r.dial(p.r.nodes, p.r.downs)
		w.ws.Write(p.r.t.Context(), 1, fmt.Appendf(nil, `{"method":%q,"request":%s,"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`, register, registrationOf(p.id)))
		p.stay(w)
		w.hangUp()
		select {
		case <-p.stop:
			return
		case <-time.After(p.redial):
		}
	}
}

func (p *pallet) stay(w *wire) {
	for {
		select {
		case f := <-w.frames:
			switch {
			case f.Correlation.Phase == "request":
				w.ws.Write(p.r.t.Context(), 1, fmt.Appendf(nil, `{"method":%q,"response":{"status":"replay"},"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`,
					f.Method, f.RequestInstanceID, f.Correlation.ID))
			case f.Error != nil:
				return
			}
		case <-w.ended:
			p.mu.Lock()
			p.closes = append(p.closes, time.Now())
			p.mu.Unlock()
			return
		case <-p.stop:
			return
		}
	}
}

// reachable reports whether a renewal reaches the node under its binding.
func (p *pallet) reachable() bool {
	b, ok := p.r.Binding(p.id)
	if !ok {
		return false
	}
	answer, err := b.Socket.Call(p.r.t.Context(), contract.MethodApplyDNSLeaseRenewal, []byte(`{}`), typedsocket.CallOptions{Timeout: time.Millisecond})
	if err != nil {
		return false
	}
	answer.Release()
	return string(b.Session.Received) == sessionOf(p.id, 1)
}

// TestO9_CloudlyReturnsAndDies over and over: each node is registered or still
// reachable under its binding at the end of every cycle. One that takes a second
// to dial again can be caught on its way, but never two.
func TestO9_CloudlyReturnsAndDies(t *testing.T) {
	for _, c := range []struct {
		nodes, away int
		redial      time.Duration
	}{{6, 0, 0}, {3, 1, time.Second}, {5, 1, 700 * time.Millisecond}} {
		for _, stands := range []time.Duration{0, time.Second, 3 * time.Second, 6 * time.Second, 12 * time.Second} {
			t.Run(fmt.Sprintf("%d nodes dialing after %s, stands %s", c.nodes, c.redial, stands), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					r := newRig(t)
					cloud := r.cloudly()
					go cloud.serveRegistrations()
					pallets := r.pallets(c.nodes, c.redial)
					time.Sleep(20 * time.Second)
					for cycle := range 20 {
						r.lose(cloud)
						time.Sleep(5 * time.Second)
						cloud = r.cloudly()
						go cloud.serveRegistrations()
						// A little more than a whole number, so that the end falls
						// beside what happens at the same instant.
						time.Sleep(stands + time.Millisecond)
						away := 0
						for _, p := range pallets {
							if !p.reachable() {
								away++
							}
						}
						if away > c.away {
							t.Fatalf("cycle %d: %d nodes are neither registered nor reachable", cycle, away)
						}
						if n := r.Status().(Status); stands == 12*time.Second && slices.ContainsFunc(n.Nodes, func(n Node) bool { return !n.Confirmed }) {
							t.Fatalf("cycle %d: not all have registered again: %+v", cycle, n.Nodes)
						}
						if away > 0 {
							time.Sleep(time.Second) // it comes back before Cloudly dies, so that the next cycle begins whole
						}
					}
				})
			})
		}
	}
}

// R42: every node is made to register again within 15 s of a return of Cloudly.
func TestR42_EveryNodeRegistersAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		go cloud.serveRegistrations()
		pallets := r.pallets(100, time.Second)
		time.Sleep(time.Minute)
		r.lose(cloud)
		time.Sleep(time.Minute)
		back := time.Now()
		cloud = r.cloudly()
		go cloud.serveRegistrations()
		time.Sleep(15 * time.Second)
		s := r.Status().(Status)
		for _, n := range s.Nodes {
			if !n.Confirmed || n.Since.Before(back) {
				t.Errorf("%+v", n)
			}
		}
		if len(s.Nodes) != 100 {
			t.Errorf("%d nodes", len(s.Nodes))
		}
		for _, p := range pallets {
			if len(p.closes) != 1 {
				t.Errorf("%s was closed %d times", p.id, len(p.closes))
			}
		}
	})
}

// TestO9_WhatAnUnconfirmedBindingIsGoodFor: registrations alone, until Cloudly is
// lost again.
func TestO9_WhatAnUnconfirmedBindingIsGoodFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		r.lose(cloud)
		if b, ok := r.Binding("node-a"); !ok || !b.Confirmed {
			t.Fatal("the outage took the binding")
		}
		cloud = r.cloudly()
		if b, ok := r.Binding("node-a"); !ok || b.Confirmed || b.Socket != node.sock {
			t.Fatal("the binding is not unconfirmed")
		}
		node.send(report, body(session, `"x":1`))
		refused(t, node.recv(), contract.RelayNotReady)
		cloud.send("applyRuntimeAssignment", body(session, `"x":1`))
		refused(t, cloud.recv(), contract.RelayNodeSessionNotCurrent)
		cloud.none()
		node.none()
		r.lose(cloud)
		if b, ok := r.Binding("node-a"); !ok || b.Confirmed || b.Socket.Err() != nil {
			t.Fatal("an unconfirmed binding did not outlive the second loss")
		}
		cloud = r.cloudly()
		again := r.register(cloud, node, "node-a", 1) // on the socket it has
		node.send(report, body(again, `"x":1`))
		cloud.answer(cloud.recv(), `"response":{}`)
		node.recv()
		time.Sleep(time.Minute)
		if node.sock.Err() != nil {
			t.Fatalf("a node that registered again was closed: %v", node.sock.Err())
		}
		if got, want := r.eventsOf(NodeBound), []string{"node-bound node=node-a outcome=first", "node-bound node=node-a outcome=confirmed"}; !slices.Equal(got, want) {
			t.Errorf("events %q", got)
		}
		if got, want := r.eventsOf(NodesUnconfirmed, NodeRecallInterrupted), []string{
			"nodes-unconfirmed count=1", "nodes-recall-interrupted count=1", "nodes-unconfirmed count=1"}; !slices.Equal(got, want) {
			t.Errorf("events %q", got)
		}
	})
}

// TestO9_RepeatedOnTheSameSocket leaves every binding as it is.
func TestO9_RepeatedOnTheSameSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		cloud.send("applyRuntimeAssignment", body(session, `"x":1`))
		f := node.recv()
		r.UpstreamRegistered(cloud.sock)
		node.answer(f, `"response":{"ok":1}`)
		if f := cloud.recv(); f.Error != nil {
			t.Fatalf("answered %s", f.text)
		}
		node.send(report, body(session, `"x":1`))
		cloud.recv()
		time.Sleep(20 * time.Second)
		if b, _ := r.Binding("node-a"); !b.Confirmed || node.sock.Err() != nil {
			t.Fatal("a repeated registration was taken for a return")
		}
	})
}

// recalled is a room with nodes that do not come back, after a return.
func recalled(t *testing.T, n int) (r *rig, cloud *wire, nodes []*wire, back time.Time) {
	r = newRig(t)
	cloud = r.cloudly()
	for i := range n {
		w, _ := r.bound(cloud, fmt.Sprintf("node-%03d", i))
		nodes = append(nodes, w)
	}
	r.lose(cloud)
	return r, r.cloudly(), nodes, time.Now()
}

// TestO9_SocketsAreClosedOneByOne, from 2 s on and within 10 more.
func TestO9_SocketsAreClosedOneByOne(t *testing.T) {
	for _, n := range []int{1, 3, 256} {
		bubble(t, func(t *testing.T) {
			r, _, nodes, back := recalled(t, n)
			var mu sync.Mutex
			var at []time.Duration
			var all sync.WaitGroup
			for _, w := range nodes {
				all.Go(func() {
					code := w.closed()
					mu.Lock()
					defer mu.Unlock()
					at = append(at, time.Since(back))
					if code != typedsocket.CloseRegisterAgain {
						t.Errorf("closed with %d", code)
					}
				})
			}
			all.Wait()
			slices.Sort(at)
			if at[0] != 2*time.Second || at[n-1] >= 12*time.Second {
				t.Errorf("%d sockets: first at %s, last at %s", n, at[0], at[n-1])
			}
			for i := 1; i < n; i++ {
				if gap := at[i] - at[i-1]; gap != min(10*time.Second/time.Duration(n), 2*time.Second) {
					t.Fatalf("%d sockets: %s between the closes %d and %d", n, gap, i-1, i)
				}
			}
			synctest.Wait()
			if got := len(r.eventsOf(NodeUnbound)); got != n {
				t.Errorf("%d events", got)
			}
		})
	}
}

// TestO9_ClosingStopsWithTheSession, at the moment it is lost.
func TestO9_ClosingStopsWithTheSession(t *testing.T) {
	for name, end := range map[string]func(r *rig, cloud *wire){
		"told":          func(r *rig, cloud *wire) { r.UpstreamLost() },
		"not told yet":  func(r *rig, cloud *wire) { cloud.hangUp() },
		"drained":       func(r *rig, cloud *wire) { go r.Drain(context.Background()) },
		"return anew":   func(r *rig, cloud *wire) { r.cloudly() },
		"custody ended": func(r *rig, cloud *wire) { r.DropCustody("relay-node-unknown") },
	} {
		bubble(t, func(t *testing.T) {
			r, cloud, nodes, _ := recalled(t, 10)
			time.Sleep(4*time.Second + time.Millisecond) // 2, 3, 4
			count := func() (open int) {
				synctest.Wait()
				for _, w := range nodes {
					if w.sock.Err() == nil {
						open++
					}
				}
				return open
			}
			if n := count(); n != 7 {
				t.Fatalf("%d sockets are open after 4 s", n)
			}
			end(r, cloud)
			want, after := 7, time.Minute
			switch name {
			case "custody ended":
				want = 0
			case "drained":
				want, after = 0, 3*time.Second
			case "return anew":
				after = 2 * time.Second
				time.Sleep(after - time.Millisecond)
				after = 0
			}
			time.Sleep(after)
			if n := count(); n != want {
				t.Errorf("%s: %d sockets are open", name, n)
			}
			if len(r.Bindings()) != want {
				t.Errorf("%s: %d bindings", name, len(r.Bindings()))
			}
		})
	}
}

// TestO9_NothingIsClosedOnceTheSessionIsOver, although its turn has come.
func TestO9_NothingIsClosedOnceTheSessionIsOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, cloud, nodes, _ := recalled(t, 1)
		stop, stopped := make(chan struct{}), make(chan struct{})
		close(stopped)
		if _, done := r.recallOne(cloud.sock, stopped, true); !done || nodes[0].sock.Err() != nil {
			t.Error("a socket was closed after the stop")
		}
		cloud.hangUp()
		<-cloud.sock.Done()
		if _, done := r.recallOne(cloud.sock, stop, true); !done || nodes[0].sock.Err() != nil {
			t.Error("a socket was closed although the one to Cloudly has ended")
		}
	})
}

// TestO9_RegistrationInFlightSparesItsSocket, as long as that can be waited for.
func TestO9_RegistrationInFlightSparesItsSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, cloud, nodes, back := recalled(t, 2)
		nodes[0].send(register, registrationOf("node-000"))
		f := cloud.recv()
		nodes[1].send(register, registrationOf("node-001"))
		cloud.recv() // never answered
		time.Sleep(5 * time.Second)
		if nodes[0].sock.Err() != nil || nodes[1].sock.Err() != nil {
			t.Fatal("closed while its registration is in flight")
		}
		cloud.answer(f, accepted(sessionOf("node-000", 1)))
		nodes[0].recv()
		nodes[1].closed()
		if since := time.Since(back); since < 11*time.Second || since > 12*time.Second {
			t.Errorf("the other one was closed after %s", since)
		}
		time.Sleep(time.Minute)
		if nodes[0].sock.Err() != nil {
			t.Fatal("a node that registered again was closed")
		}
	})
}

// TestO9_ComingBackLetsTheNextGo: the schedule is only for those who do not.
func TestO9_ComingBackLetsTheNextGo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		go cloud.serveRegistrations()
		r.pallets(5, 0)
		time.Sleep(time.Minute)
		r.lose(cloud)
		cloud = r.cloudly()
		go cloud.serveRegistrations()
		time.Sleep(recallSettle + 5*recallGap)
		if s := r.Status().(Status); len(s.Nodes) != 5 || slices.ContainsFunc(s.Nodes, func(n Node) bool { return !n.Confirmed }) {
			t.Errorf("%+v", s.Nodes)
		}
	})
}

// TestRegistrationsOfALostSession count for nothing: whatever was on its way
// belongs to a Cloudly that is gone.
func TestRegistrationsOfALostSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		old := r.cloudly()
		node := r.dialNode()
		node.send(register, registrationOf("node-a"))
		f := old.recv()
		r.UpstreamLost() // told before the socket is gone
		old.answer(f, accepted(sessionOf("node-a", 1)))
		refused(t, node.recv(), contract.RelayNotReady)
		node.send(register, registrationOf("node-a"))
		refused(t, node.recv(), contract.RelayNotReady)
		cloud := r.cloudly()
		cloud.none()
		if len(r.Bindings()) != 0 {
			t.Fatal("bound")
		}
		// The socket has no role for it, so its time to register goes on.
		if conn := r.conn(node.sock); conn.Role() != RoleUnbound || conn.Bound() != "" {
			t.Errorf("the socket is of role %s, bound to %q", conn.Role(), conn.Bound())
		}
		r.register(cloud, node, "node-b", 2)
		if n := len(r.eventsOf(NodeRegistrationVoid)); n != 1 {
			t.Errorf("%d events", n)
		}
	})
}

// R41: what a node asks during an outage is refused at once, and never sent.
func TestR41_NothingWaitsForAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		node := r.dialNode()
		node.send(register, registrationOf("node-a"))
		refused(t, node.recv(), contract.RelayNotReady)
		cloud := r.cloudly()
		session := r.register(cloud, node, "node-a", 1)
		node.send(report, body(session, `"in":"flight"`))
		cloud.recv()
		start := time.Now()
		cloud.hangUp()
		refused(t, node.recv(), contract.RelayNotReady) // in flight when the socket went
		node.send(report, body(session, `"x":"before the room is told"`))
		refused(t, node.recv(), contract.RelayNotReady)
		r.UpstreamLost()
		for range 10 {
			node.send(report, body(session, `"x":1`))
			refused(t, node.recv(), contract.RelayNotReady)
		}
		if time.Since(start) != 0 {
			t.Errorf("it took %s", time.Since(start))
		}
		cloud = r.cloudly()
		time.Sleep(time.Second)
		cloud.none()
	})
}
