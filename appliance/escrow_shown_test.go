package appliance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
	"serve.zone/relay/escrow"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// shownEvent is an event as the operator endpoint shows it.
type shownEvent struct {
	Seq    uint64
	Time   time.Time
	Type   string
	Fields map[string]any
}

// text returns what is said under a key, "" for nothing.
func (e shownEvent) text(key string) string {
	if said, ok := e.Fields[key]; ok {
		return fmt.Sprint(said)
	}
	return ""
}

// metric returns the value of a series as the operator endpoint shows it.
func (r *rig) metric(series string) int {
	r.t.Helper()
	_, text := r.get("/metrics")
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				r.t.Fatal(err)
			}
			return int(n)
		}
	}
	r.t.Fatalf("there is no metric %s", series)
	return 0
}

// hear asks the operator endpoint for the events that it has not heard, and returns
// all that it ever heard.
func (l *leases) hear() []shownEvent {
	l.r.t.Helper()
	for {
		var page struct {
			Events []shownEvent
			Lost   uint64
			Next   uint64
		}
		_, text := l.r.get(fmt.Sprintf("/events?limit=4096&fromSeq=%d", l.next))
		if err := json.Unmarshal([]byte(text), &page); err != nil {
			l.r.t.Fatalf("%v: %.200s", err, text)
		}
		if page.Lost > 0 {
			l.r.t.Fatalf("%d events are lost", page.Lost)
		}
		if len(page.Events) == 0 {
			return l.heard
		}
		l.heard, l.next = append(l.heard, page.Events...), page.Next
	}
}

// coverage is the escrow's part of the status document.
func (l *leases) coverage() escrow.Status {
	l.r.t.Helper()
	_, text := l.r.get("/status")
	var document struct {
		Duties struct{ Escrow escrow.Status }
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		l.r.t.Fatalf("%v: %.200s", err, text)
	}
	return document.Duties.Escrow
}

// wantShown checks the coverage of every node early in a slot of an outage, when the
// window of the slot before has not ended: what is held, what was released and
// acknowledged. Nodes that are away had the slot given last.
func (l *leases) wantShown(slot, given int64) {
	t := l.r.t
	t.Helper()
	got := l.coverage()
	end := l.opens(heldTo).Add(simulate.SlotWindow)
	want := escrow.Status{Runs: len(l.ids), Renewals: len(l.ids) * int(heldTo-slot+2), HeldBytes: got.HeldBytes, HeldLimit: got.HeldLimit, Unreachable: len(l.away())}
	for _, id := range l.ids {
		n := escrow.Node{
			ID: id, Held: int(heldTo - slot + 2), ExpiresAt: end.UTC(), NextSlot: l.opens(slot + 1).UTC(),
			Current:   &escrow.Window{Sequence: slot, NotBefore: l.opens(slot).UTC(), ExpiresAt: l.opens(slot).Add(simulate.SlotWindow).UTC()},
			Reachable: true, Confirmed: true, LastOutcome: "acknowledged", Pushes: 1,
		}
		had := slot
		if l.isGone(id) {
			had, n.Reachable, n.Confirmed, n.Pushes, n.UnreachableFrom = given, false, false, 0, l.noticed(got, id)
		}
		n.Released = &escrow.Delivery{Sequence: had, At: l.opens(had).UTC()}
		n.Acknowledged = n.Released
		want.Nodes = append(want.Nodes, n)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%.4000s", diff)
	}
	if got.HeldBytes < 500*want.Renewals {
		t.Errorf("%d bytes are held", got.HeldBytes)
	}
}

// noticed returns since when a node is shown without a socket: that it broke is
// noticed at once, or when its silence has lasted for a while.
func (l *leases) noticed(s escrow.Status, id string) time.Time {
	l.r.t.Helper()
	broke := l.gone[id].from.UTC()
	for _, n := range s.Nodes {
		if n.ID == id && id == silenced && n.UnreachableFrom.After(broke) && n.UnreachableFrom.Sub(broke) <= typedsocket.DeadAfter {
			return n.UnreachableFrom
		}
	}
	return broke
}

// dialled returns how many sockets each node has opened.
func (l *leases) dialled() []int {
	var dials []int
	for _, p := range l.nodes {
		dials = append(dials, p.Dials())
	}
	return dials
}

// wantKept checks that since then no node that is not away has lost its socket, and
// that nothing but renewals was sent to any.
func (l *leases) wantKept(dials []int) {
	t := l.r.t
	t.Helper()
	for i, p := range l.nodes {
		id := l.ids[i]
		for _, m := range p.Frames().Messages() {
			if m.Request && !m.Sent && m.Method != contract.MethodApplyDNSLeaseRenewal {
				t.Errorf("%s was sent %s", id, m.Method)
			}
		}
		if l.isGone(id) {
			continue
		}
		if b, ok := l.r.relay.forward.Binding(id); p.Dials() != dials[i] || !ok || b.Socket.Err() != nil {
			t.Errorf("%s did not keep its socket: %d dials, %d before", id, p.Dials(), dials[i])
		}
	}
	var ended []string
	for _, e := range l.hear() {
		if e.Type == "node-unbound" {
			ended = append(ended, e.text("node"))
		}
	}
	slices.Sort(ended)
	if diff := cmp.Diff(l.away(), ended); diff != "" {
		t.Errorf("sockets that ended (-want +got):\n%s", diff)
	}
}

// wantSaid checks what the operator endpoint tells of an outage, from which on events
// were heard.
func (l *leases) wantSaid(sum outcomes) {
	t := l.r.t
	t.Helper()
	acknowledged, trusted, unreachable := map[string][]int64{}, []string{}, []string{}
	for _, e := range l.hear() {
		switch node := e.text("node"); e.Type {
		case string(escrow.RenewalAcknowledged):
			sequence, _ := strconv.ParseInt(e.text("sequence"), 10, 64)
			acknowledged[node] = append(acknowledged[node], sequence)
		case string(escrow.NodeUnreachable):
			unreachable = append(unreachable, node+" "+e.text("reason")+" "+e.text("expiresAt"))
		case string(escrow.ClockTrusted):
			trusted = append(trusted, e.text("reason"))
		case string(escrow.CoverageEnded), string(escrow.PushStuck), string(escrow.CustodyDropped), string(escrow.RunDropped):
			t.Errorf("%s was published: %v", e.Type, e.Fields)
		}
	}
	for _, id := range l.ids {
		want := slices.DeleteFunc(slices.Clone(l.relayed[id]), func(slot int64) bool { return slot <= outageFrom })
		if !slices.Equal(want, acknowledged[id]) {
			t.Errorf("%s took slots %v from the relay, and events tell of %v", id, want, acknowledged[id])
		}
	}
	end := l.opens(heldTo).Add(simulate.SlotWindow).UTC().Format("2006-01-02T15:04:05.000Z")
	var want []string
	for _, id := range []string{broken, restarted, silenced, later} {
		want = append(want, id+" socket-ended "+end)
	}
	if diff := cmp.Diff(want, unreachable); diff != "" {
		t.Errorf("unreachable nodes (-want +got):\n%s", diff)
	}
	if want := []string{"caught-up", "caught-up", "session-registered"}; !slices.Equal(want, trusted) {
		t.Errorf("the clock was trusted again: %v, want %v", trusted, want)
	}
	for name, want := range map[string]int{
		"relay_escrow_pushed_renewals_total":                              sum.relayed + sum.refused,
		`relay_escrow_ended_pushes_total{outcome="acknowledged"}`:         sum.relayed,
		`relay_escrow_ended_pushes_total{outcome="refused"}`:              sum.refused,
		`relay_escrow_ended_pushes_total{outcome="answer-foreign"}`:       0,
		`relay_escrow_answered_holds_total{outcome="other"}`:              0,
		`relay_escrow_answered_holds_total{outcome="emptied"}`:            0,
		`relay_escrow_answered_holds_total{outcome="escrow-run-invalid"}`: 0,
	} {
		if got := l.r.metric(name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
}
