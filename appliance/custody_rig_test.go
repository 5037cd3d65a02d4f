package appliance

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// holding returns a registered relay that carries two nodes and to which Cloudly
// has handed everything that a duty can hold.
func holding(t *testing.T, c change) (r *rig, a, b *wire) {
	t.Helper()
	r = newRig(t, c)
	r.registered(0)
	a, b = r.wired("node-a"), r.wired("node-b")
	for _, method := range recorded {
		if _, err := r.cloudly.Call(r.soon(), method, []byte(`{}`)); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
	}
	r.rec.take()
	r.wantStillHeld()
	return r, a, b
}

// wantStillHeld checks that nothing was dropped.
func (r *rig) wantStillHeld() {
	r.t.Helper()
	if diff := cmp.Diff(recorded, r.rec.holds()); diff != "" {
		r.t.Errorf("held (-want +got):\n%s", diff)
	}
	if n := r.section("recorder")["held"]; n != float64(len(recorded)) {
		r.t.Errorf("%v are shown as held", n)
	}
	for _, heard := range r.rec.take() {
		if len(heard) > 7 && heard[:7] == "dropped" {
			r.t.Errorf("the duties were told %s", heard)
		}
	}
	if said := r.says("cloudly-custody-ended", "refusal"); len(said) != 0 {
		r.t.Errorf("custody ended: %v", said)
	}
}

// end is an end of custody that a test makes and looks at.
type end struct {
	r             *rig
	a, b          *wire
	at            time.Time
	socket        int        // of Cloudly, that carried the relay
	report, place chan error // how a node's report and a push fared that were under way
	answered      bool       // node-a may have been answered what ended custody
}

// beginEnd puts a report of node-a and a push to node-b under way, then lets the
// test end custody.
func beginEnd(r *rig, a, b *wire, cause func()) *end {
	r.t.Helper()
	e := &end{r: r, a: a, b: b, report: make(chan error, 1), place: make(chan error, 1)}
	e.socket, _ = r.cloudly.Registered()
	r.cloudly.Script(protection, simulate.Late(10*time.Second))
	b.mu.Lock()
	b.stalls = true
	b.mu.Unlock()
	go func() { e.report <- a.report() }()
	go func() { e.place <- r.sentTo(b, e.socket) }()
	after(2 * time.Second)
	b.wantPushed(assignment)
	e.at = time.Now()
	cause()
	after(0)
	return e
}

// wantEnded checks that everything was dropped by the name, within the drop:
// no fake time has passed since its cause.
func (e *end) wantEnded(name contract.RefusalName, against ...string) {
	r := e.r
	r.t.Helper()
	if passed := time.Since(e.at); passed > 0 {
		r.t.Errorf("looked at only %s after the end", passed)
	}
	e.a.wantEnds(e.answered)
	e.b.wantEnds(false)
	heard := slices.DeleteFunc(r.rec.take(), func(s string) bool { return s == "configured stated" }) // of the cause
	slices.Sort(heard[:min(2, len(heard))])                                                           // nodes go in no order
	if want := []string{"unbound node-a", "unbound node-b", "dropped " + string(name), "lost"}; !slices.Equal(heard, want) {
		r.t.Errorf("the duties were told %v, want %v", heard, want)
	}
	r.wantNothingHeld()
	if len(against) == 0 {
		against = []string{"cloudly-session: custody-ended"}
	}
	r.wantAgainst(append(against, "cloudly-refusal: "+string(name), "origin: origin-unknown")...)
	want := map[string]any{"name": string(name), "standing": true}
	if diff := cmp.Diff(want, refusalShown(r)); diff != "" {
		r.t.Errorf("status (-want +got):\n%s", diff)
	}
	if said := r.says("cloudly-custody-ended", "refusal"); !slices.Equal(said, []string{string(name)}) {
		r.t.Errorf("custody ended: %v", said)
	}
	if codes := r.says("listener-socket-closed", "closeCode"); !slices.Equal(codes, []string{"4002", "4002"}) {
		r.t.Errorf("sockets were closed with %v", codes)
	}
}

// wantEnds checks that custody ended on the socket. A write that was under way is
// cut in the middle, and then no close code can follow it.
func (w *wire) wantEnds(written bool) {
	w.r.t.Helper()
	synctest.Wait()
	var ended *typedsocket.EndError
	if written && errors.As(w.sock.Err(), &ended) && ended.Remote && ended.Code == 1006 {
		return
	}
	w.wantClosed(typedsocket.CloseCustodyEnded)
}

// wantQuiet lets a while pass in which the late answer comes, and checks that
// nothing of the old custody left on any socket.
func (e *end) wantQuiet() {
	e.r.t.Helper()
	after(20 * time.Second)
	if !e.answered {
		e.a.wantNothingSince(e.at)
	}
	e.a.wantNothingSince(e.at.Add(1))
	e.b.wantNothingSince(e.at)
	if err := <-e.report; err == nil {
		e.r.t.Error("a report under way was answered after custody had ended")
	}
	if err := <-e.place; err == nil {
		e.r.t.Error("a push under way was answered after custody had ended")
	}
	e.r.wantHeard()
	e.r.wantNothingHeld()
	e.r.wantNoViolations()
}

// wantNothingHeld checks what /status shows.
func (r *rig) wantNothingHeld() {
	r.t.Helper()
	if held := r.rec.holds(); len(held) != 0 {
		r.t.Errorf("still held: %v", held)
	}
	got := map[string]any{}
	for path, name := range map[string]string{"nodes": "forward", "attached": "forward", "bound": "listener", "held": "recorder"} {
		got[path] = r.section(name)[path]
	}
	for _, member := range []string{"origin", "credential", "acceptedRegistration"} {
		got[member] = r.section("cloudly")[member]
	}
	got["compared origin"] = r.section("origin")["origin"]
	want := map[string]any{
		"nodes": []any{}, "attached": false, "bound": []any{}, "held": 0.0,
		"origin": nil, "credential": nil, "acceptedRegistration": nil, "compared origin": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Errorf("status (-want +got):\n%s", diff)
	}
}

// wantNotServed checks that neither Cloudly on this socket nor a node that dials
// now is served.
func (r *rig) wantNotServed(w *wire, socket int) {
	r.t.Helper()
	if err := r.sentTo(w, socket); nameOf(err) != contract.RelayNotReady {
		r.t.Errorf("a push for a node: %v", err)
	}
	for _, method := range recorded {
		if _, err := r.cloudly.CallSocket(r.soon(), socket, method, []byte(`{}`)); nameOf(err) != contract.RelayNotReady {
			r.t.Errorf("%s: %v", method, err)
		}
	}
	if err := r.dialled("node-new").register(); nameOf(err) != contract.RelayNotReady {
		r.t.Errorf("a node that registers: %v", err)
	}
}

// wantCarriesAgain checks that a new custody began, and began empty: the nodes
// have to register, and nothing is held before Cloudly hands it over.
func (r *rig) wantCarriesAgain(a, b *wire) {
	r.t.Helper()
	r.wantAgainst()
	r.wantHeard("registered first", "configured stated")
	if held := r.rec.holds(); len(held) != 0 {
		r.t.Errorf("a new custody began with %v", held)
	}
	socket, _ := r.cloudly.Registered()
	if err := r.sentTo(a, socket); nameOf(err) != contract.RelayNodeNotCarried {
		r.t.Errorf("a push for a node of the custody before: %v", err)
	}
	again := []*wire{r.wired(a.id), r.wired(b.id)}
	for _, w := range again {
		if err := w.report(); err != nil {
			r.t.Errorf("%s reports: %v", w.id, err)
		}
		if err := r.sentTo(w, socket); err != nil {
			r.t.Errorf("a push for %s: %v", w.id, err)
		}
	}
	r.wantNoViolations()
}
