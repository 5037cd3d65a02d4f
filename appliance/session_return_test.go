package appliance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// R41: while there is no session a node's request is refused at once, and
// Cloudly never sees it.
func TestR41_NoQueueing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, a, b := holding(t, change{})
		r.cloudly.Script(protection, simulate.Ignore())
		flying := make(chan error, 1)
		go func() { flying <- a.report() }()
		after(time.Second)
		began := time.Now()
		r.cloudly.Outage()
		if err := <-flying; nameOf(err) != contract.RelayNotReady {
			t.Errorf("a request under way: %v", err)
		}
		for range 5 {
			for _, w := range []*wire{a, b} {
				if err := w.report(); nameOf(err) != contract.RelayNotReady {
					t.Errorf("a request: %v", err)
				}
			}
			if err := a.register(); nameOf(err) != contract.RelayNotReady {
				t.Errorf("a registration: %v", err)
			}
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("refused after %s", waited)
		}
		before := len(r.upstream(protection)) + len(r.upstream(contract.MethodRegisterPalletRuntimeSession))
		after(time.Minute)
		r.cloudly.Return()
		after(2 * time.Minute)
		if n := len(r.upstream(protection)) + len(r.upstream(contract.MethodRegisterPalletRuntimeSession)); n != before {
			t.Errorf("cloudly saw %d requests of the outage", n-before)
		}
		r.wantAgainst()
		r.wantNoViolations()
	})
}

// nodeIDs returns n names.
func nodeIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("node-%02d", i)
	}
	return ids
}

// R42: after a return of Cloudly every node registers again with its unchanged
// nonce, and so with its session, within 15 s. Nothing that is held is dropped.
func TestR42_NodesRegisterAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{})
		r.registered(0)
		nodes := map[string]*simulate.Pallet{}
		was := map[string]simulate.NodeState{}
		for _, id := range nodeIDs(30) {
			nodes[id] = r.node(id)
			was[id], _ = r.cloudly.Node(id)
		}
		if _, err := r.cloudly.Call(r.soon(), recorded[0], []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			after(time.Minute)
			r.cloudly.Outage()
			after(10 * time.Minute)
			for id, p := range nodes {
				if p.Dials() > 2 {
					t.Errorf("%s dialled %d times", id, p.Dials())
				}
			}
			r.cloudly.Return()
			r.registered(0)
			after(15 * time.Second)
			for id, p := range nodes {
				now, _ := r.cloudly.Node(id)
				if !now.Connected || now.Nonce != was[id].Nonce || now.Epoch != was[id].Epoch || string(now.Session) != string(was[id].Session) {
					t.Errorf("%s: %+v, before %+v", id, now, was[id])
				}
				if _, err := p.Send(r.soon(), protection, []byte(`{}`)); err != nil {
					t.Errorf("%s reports: %v", id, err)
				}
				if _, err := r.cloudly.CallNode(r.soon(), id, assignment, []byte(`{}`)); err != nil {
					t.Errorf("a push for %s: %v", id, err)
				}
				r.wantNoViolations(p)
			}
			r.wantAdvice("node-sessions", "ok")
		}
		if held := r.rec.holds(); len(held) != 1 {
			t.Errorf("held: %v", held)
		}
	})
}

// standing returns r's nodes as /status shows them: id to confirmed.
func (r *rig) standing() map[string]bool {
	r.t.Helper()
	shown := map[string]bool{}
	nodes, _ := r.section("forward")["nodes"].([]any)
	for _, n := range nodes {
		node := n.(map[string]any)
		shown[node["id"].(string)] = node["confirmed"].(bool)
	}
	return shown
}

// returned cuts the session and waits until the next one stands.
func (r *rig) returned() (socket int) {
	r.t.Helper()
	before, _ := r.cloudly.Registered()
	r.cloudly.CutSockets()
	return r.registered(before)
}

// O9: another registration on the same socket is no return. Every binding stays
// as it is, and no socket is closed.
func TestO9_RegistrationOnTheSameSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, a, b := holding(t, change{})
		r.again()
		r.wantSequences(0, 1)
		if shown := r.standing(); len(shown) != 2 || !shown["node-a"] || !shown["node-b"] {
			t.Errorf("nodes %v", shown)
		}
		socket, _ := r.cloudly.Registered()
		if err := a.report(); err != nil {
			t.Errorf("a report: %v", err)
		}
		if err := r.sentTo(b, socket); err != nil {
			t.Errorf("a push: %v", err)
		}
		after(20 * time.Second)
		a.wantOpen()
		b.wantOpen()
		r.wantHeard("configured stated", "registered again", "configured stated")
		r.wantNoViolations()
	})
}

// O9: after a return a binding is unconfirmed: nothing of its node passes either
// way but a registration, and nothing that is held is dropped.
func TestO9_Unconfirmed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, a, b := holding(t, change{})
		socket := r.returned()
		for _, w := range []*wire{a, b} {
			if err := w.report(); nameOf(err) != contract.RelayNotReady {
				t.Errorf("a report of %s: %v", w.id, err)
			}
			if err := r.sentTo(w, socket); nameOf(err) != contract.RelayNodeSessionNotCurrent {
				t.Errorf("a push for %s: %v", w.id, err)
			}
		}
		if shown := r.standing(); len(shown) != 2 || shown["node-a"] || shown["node-b"] {
			t.Errorf("nodes %v", shown)
		}
		r.wantAdvice("node-sessions", "pending nodes-returning")
		r.wantAgainst()
		r.wantStillHeld()
		// node-a registers again on the socket it has: it is as before.
		if err := a.register(); err != nil {
			t.Fatal(err)
		}
		if shown := r.standing(); !shown["node-a"] || shown["node-b"] {
			t.Errorf("nodes %v", shown)
		}
		if err := a.report(); err != nil {
			t.Errorf("a report: %v", err)
		}
		if err := r.sentTo(a, socket); err != nil {
			t.Errorf("a push: %v", err)
		}
		after(2 * time.Second)
		b.wantClosed(typedsocket.CloseRegisterAgain)
		after(20 * time.Second)
		a.wantOpen()
		r.wantStillHeld()
		r.wantNoViolations()
	})
}

// O9: sockets are closed only after the session has stood two seconds without a
// break, one by one, and all within ten more.
func TestO9_OneByOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{})
		r.registered(0)
		var wires []*wire
		for _, id := range nodeIDs(8) {
			wires = append(wires, r.wired(id))
		}
		for range 3 { // breaks
			r.returned()
			after(2*time.Second - time.Millisecond)
			for _, w := range wires {
				w.wantOpen()
			}
		}
		r.returned()
		began := time.Now()
		after(12 * time.Second)
		var closed []time.Duration
		for _, w := range wires {
			w.wantClosed(typedsocket.CloseRegisterAgain)
			closed = append(closed, w.closedAt.Sub(began))
		}
		slices.Sort(closed)
		if closed[0] != 2*time.Second {
			t.Errorf("the first was closed after %s", closed[0])
		}
		for i := range closed[1:] {
			if gap := closed[i+1] - closed[i]; gap < time.Second || gap > 2*time.Second {
				t.Errorf("two were closed %s apart", gap)
			}
		}
		r.wantNoViolations()
	})
}

// O9: the closing stops at once when the session is lost. A binding that is left
// is held for as long as the outage lasts, and is asked for again after it.
func TestO9_LostAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{})
		r.registered(0)
		var wires []*wire
		for _, id := range nodeIDs(8) {
			wires = append(wires, r.wired(id))
		}
		r.returned()
		after(3*time.Second + 500*time.Millisecond) // two of them
		r.cloudly.Outage()
		after(30 * time.Minute)
		open := 0
		for _, w := range wires {
			if w.sock.Err() == nil {
				open++
			}
		}
		if shown := r.standing(); open != 6 || len(shown) != 6 {
			t.Errorf("%d sockets are open; nodes %v", open, shown)
		}
		r.wantAdvice("node-sessions", "pending cloudly-away")
		if n := len(r.events("nodes-recall-interrupted")); n != 1 {
			t.Errorf("%d events", n)
		}
		r.cloudly.Return()
		r.registered(0)
		after(12 * time.Second)
		for _, w := range wires {
			w.wantClosed(typedsocket.CloseRegisterAgain)
		}
		r.wantNoViolations()
	})
}
