package escrow

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
)

// begin is the time at which a bubble begins, which is a slot of the grid.
var begin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// judged is one row of what becomes of a hold.
type judged struct {
	body []byte
	want contract.RefusalName // "" for accepted
	says string               // a part of the reason
}

// changed is a run of the grid in which one renewal is changed.
func changed(n, i int, change func(s *contract.SignedDNSLeaseRenewal)) []byte {
	return bodyOf(grid(spec{change: func(at int, s *contract.SignedDNSLeaseRenewal) {
		if at == i {
			change(s)
		}
	}}, begin, n))
}

// R06, R46, R47, R48: a hold is taken at each bound and refused one past it, by the
// name of the rule that it breaks and with a reason that names the place.
func TestR46_R47_R48_EveryRefusalOfAHold(t *testing.T) {
	window := func(issued, from, to time.Duration) contract.DNSWindow {
		return contract.DNSWindow{IssuedAt: begin.Add(issued).UnixMilli(), NotBefore: begin.Add(from).UnixMilli(), ExpiresAt: begin.Add(to).UnixMilli()}
	}
	tight := func(n int) []byte {
		var w []contract.DNSWindow
		for i := range n {
			at := time.Hour + time.Duration(i)*time.Millisecond
			w = append(w, window(at, at, at+time.Millisecond))
		}
		return bodyOf(runOf(spec{}, w))
	}
	two := func(second contract.DNSWindow) []byte {
		return bodyOf(runOf(spec{}, []contract.DNSWindow{window(0, 0, slotWindow), second}))
	}
	plain := bodyOf(grid(spec{}, begin, 5))
	flipped := bytes.Clone(plain)
	flipped[bytes.LastIndex(plain, []byte(`"sequence":5`))+len(`"sequence":`)] = '6'

	invalid, unordered, stale := contract.EscrowRunInvalid, contract.EscrowRunUnordered, contract.EscrowRunStale
	for name, row := range map[string]judged{
		"R06 whole":            {plain, "", ""},
		"R06 one bit flipped":  {flipped, invalid, "digest"},
		"R46 grid of 23":       {bodyOf(grid(spec{}, begin, 23)), "", ""},
		"R46 grid of 24":       {bodyOf(grid(spec{}, begin, 24)), invalid, "14400000"},
		"R46 32 tight windows": {tight(32), "", ""},
		"R46 33 tight windows": {tight(33), invalid, "32"},
		"R46 horizon":          {two(window(4*time.Hour-slotWindow, 4*time.Hour-slotWindow, 4*time.Hour)), "", ""},
		"R46 horizon and 1":    {two(window(4*time.Hour-slotWindow+time.Millisecond, 4*time.Hour-slotWindow+time.Millisecond, 4*time.Hour+time.Millisecond)), invalid, "14400000"},
		"R47 node":             {changed(3, 1, func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.NodeID = "node-b" }), invalid, "nodeId"},
		"R47 projection":       {changed(3, 2, func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.Projection.Generation++ }), invalid, "projection"},
		"R47 authority":        {changed(3, 2, func(s *contract.SignedDNSLeaseRenewal) { s.Authority = contract.Raw(`{"id":"x"}`) }), invalid, "authority"},
		"R47 controller": {changed(3, 2, func(s *contract.SignedDNSLeaseRenewal) {
			s.Renewal.Controller = contract.Raw(`{"kind":"cloudly","id":"c2"}`)
		}), invalid, "controller"},
		"R47 namespace":                {changed(3, 2, func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.RuntimeNamespace = "ns:2" }), invalid, "runtimeNamespace"},
		"R47 window of 900000":         {two(window(slotEvery, slotEvery, slotEvery+slotWindow)), "", ""},
		"R47 window of 900001":         {two(window(slotEvery, slotEvery, slotEvery+slotWindow+time.Millisecond)), invalid, "900000"},
		"R47 opens before its slot":    {two(window(slotEvery, slotEvery-time.Millisecond, slotEvery+slotWindow)), invalid, "notBefore"},
		"R47 never opens":              {two(window(slotEvery, slotEvery+time.Minute, slotEvery+time.Minute)), invalid, "expiresAt"},
		"R47 equal sequence":           {changed(3, 2, func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.Sequence = 2 }), unordered, "sequence"},
		"R47 gap of sequences":         {changed(3, 2, func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.Sequence = 900 }), "", ""},
		"R47 falling issuedAt":         {two(window(-time.Millisecond, -time.Millisecond, slotWindow-time.Millisecond)), unordered, "issuedAt"},
		"R47 equal expiresAt":          {two(window(time.Minute, time.Minute, slotWindow)), unordered, "expiresAt"},
		"R47 gap of windows":           {two(window(3*time.Hour, 3*time.Hour, 3*time.Hour+slotWindow)), "", ""},
		"R47 invalid before unordered": {changed(3, 2, func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.Sequence, s.Renewal.RuntimeNamespace = 1, "ns:2" }), invalid, "runtimeNamespace"},
		"R04 unknown member":           {bytes.Replace(plain, []byte(`{"nodeId"`), []byte(`{"more":1,"nodeId"`), 1), invalid, "more"},
		"R04 unknown member inside":    {bytes.Replace(plain, []byte(`"issuedAt"`), []byte(`"more":1,"issuedAt"`), 1), invalid, "more"},
		"R03 no JSON":                  {[]byte(`{"nodeId":`), invalid, ""},
		"R03 twice":                    {bytes.Replace(plain, []byte(`{"nodeId"`), []byte(`{"nodeId":"node-a","nodeId"`), 1), invalid, "twice"},
		"R01 node id":                  {[]byte(`{"nodeId":"a.b","projection":{"id":"p","generation":1,"digest":"` + markerDigest + `"},"renewals":[]}`), invalid, "nodeId"},
		"R48 unknown node":             {bodyOf(grid(spec{node: "node-x"}, begin, 3)), contract.EscrowNodeNotCarried, "live socket"},
		"R48 other namespace":          {bodyOf(grid(spec{namespace: "ns:2"}, begin, 3)), contract.EscrowRunForeignSession, "scope"},
		"R48 other controller":         {bodyOf(grid(spec{controller: `{"kind":"cloudly","id":"c2"}`}, begin, 3)), contract.EscrowRunForeignSession, "scope"},
		"R48 controller's spelling":    {bodyOf(grid(spec{controller: `{ "id":"c1", "kind":"cloudly"}`}, begin, 3)), "", ""},
		"R48 all windows past":         {bodyOf(grid(spec{}, begin.Add(-2*slotEvery), 1)), stale, "ended"},
		"R48 last ends now":            {bodyOf(grid(spec{}, begin.Add(-slotWindow), 1)), stale, "ended"},
		"R48 last ends in 1 ms":        {bodyOf(grid(spec{}, begin.Add(-slotWindow+time.Millisecond), 1)), "", ""},
		"R48 lower generation":         {bodyOf(grid(spec{projection: projection("projection:0", 6)}, begin, 3)), stale, "generation"},
		"R48 same generation":          {bodyOf(grid(spec{projection: projection("projection:0", 7)}, begin, 1)), "", ""},
		"R48 other projection":         {bodyOf(grid(spec{projection: projection("projection:2", 1)}, begin, 3)), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newIdleRig(t, nil)
				r.attached("node-a")
				r.must(grid(spec{projection: projection("projection:0", 7)}, begin, 2))
				before := r.Status().(Status)
				held, refused := r.hold(row.body)
				if row.want == "" {
					if refused != nil || held == 0 || r.node("node-a").Held == 0 {
						t.Fatalf("held %d: %v", held, refused)
					}
					return
				}
				if refused == nil || refused.Name != row.want || !strings.Contains(refused.Reason, row.says) {
					t.Fatalf("refused with %v, want %s that says %q", refused, row.want, row.says)
				}
				// R49: nothing held has changed.
				if diff := cmp.Diff(before, r.Status().(Status)); diff != "" {
					t.Error(diff)
				}
				if n := r.metrics.holds.Of(refusedBy(row.want)).Value(); n != 1 {
					t.Errorf("%d holds are counted by %s", n, row.want)
				}
			})
		})
	}
}

// R48, contract §9.3: of two things that are wrong the first is named.
func TestR48_OrderOfRefusals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newIdleRig(t, nil)
		past := begin.Add(-time.Hour)
		for _, step := range []struct {
			name   string
			before func()
			body   []byte
			want   contract.RefusalName
		}{
			{"no session, invalid", func() {}, []byte(`{}`), contract.EscrowCloudlyOnly},
			{"no session, empty", func() {}, bodyOf(grid(spec{}, begin, 0)), contract.EscrowCloudlyOnly},
			{"invalid, not carried", r.SessionRegistered, []byte(`{}`), contract.EscrowRunInvalid},
			{"unordered, not carried", func() {}, changed(2, 1, func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.Sequence = 1 }), contract.EscrowRunUnordered},
			{"not carried, foreign, past", func() {}, bodyOf(grid(spec{namespace: "ns:2"}, past, 1)), contract.EscrowNodeNotCarried},
			{"foreign, past", func() { r.Bound(bindingOf("node-a", 1)) }, bodyOf(grid(spec{namespace: "ns:2"}, past, 1)), contract.EscrowRunForeignSession},
			{"past", func() {}, bodyOf(grid(spec{}, past, 1)), contract.EscrowRunStale},
			{"nothing", func() {}, bodyOf(grid(spec{}, begin, 1)), ""},
			{"unbound", func() { r.Unbound("node-a") }, bodyOf(grid(spec{}, begin, 1)), contract.EscrowNodeNotCarried},
			{"lost", r.SessionLost, bodyOf(grid(spec{}, begin, 1)), contract.EscrowCloudlyOnly},
		} {
			step.before()
			_, refused := r.hold(step.body)
			if step.name == "unbound" && (refused == nil || !strings.Contains(refused.Reason, "live socket")) {
				t.Errorf("unbound: %v", refused)
			}
			if refused == nil && step.want != "" || refused != nil && refused.Name != step.want {
				t.Errorf("%s: refused with %v, want %q", step.name, refused, step.want)
			}
		}
	})
}

// R45: counted, replaced, emptied; an empty run is taken whether or not the node is
// carried, and what was emptied is not released.
func TestR45_HoldIsCountedReplacedAndEmptied(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a", "node-b")
		r.must(grid(spec{}, begin, 23))
		if n := r.node("node-a"); n.Held != 23 || !n.ExpiresAt.Equal(begin.Add(22*slotEvery+slotWindow)) || !n.NextSlot.Equal(begin.Add(slotEvery)) {
			t.Errorf("after 23: %+v", n)
		}
		r.must(grid(spec{}, begin, 23)) // again, the same
		r.must(grid(spec{sequence: 40}, begin.Add(slotEvery), 3))
		if s := r.Status().(Status); s.Runs != 1 || s.Renewals != 3 || r.node("node-a").Held != 3 {
			t.Errorf("after 3: %+v", s)
		}
		r.must(grid(spec{node: "node-b"}, begin, 2))
		r.must(grid(spec{}, begin, 0))
		r.must(grid(spec{node: "node-x"}, begin, 0)) // nobody knows it
		r.Unbound("node-b")
		r.must(grid(spec{node: "node-b"}, begin, 0)) // not carried
		if s := r.Status().(Status); s.Runs != 0 || s.Renewals != 0 || s.HeldBytes != 0 || len(s.Nodes) != 1 {
			t.Errorf("after all were emptied: %+v", s)
		}
		r.SessionLost()
		time.Sleep(time.Hour)
		r.wantTaken()
	})
}

// R49: a refused hold changes nothing: the good run is released.
func TestR49_RefusedHoldChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a")
		r.must(grid(spec{}, begin, 3))
		for _, bad := range [][]byte{[]byte(`{}`), bodyOf(grid(spec{namespace: "ns:2"}, begin, 3)), bodyOf(grid(spec{}, begin.Add(-time.Hour), 2)),
			bodyOf(grid(spec{projection: projection("projection:1", 3), sequence: 90}, begin, 3))} {
			if _, refused := r.hold(bad); refused == nil {
				t.Fatal("not refused")
			}
		}
		r.SessionLost()
		time.Sleep(time.Hour)
		r.wantTaken("node-a 1 @00:00:00.000", "node-a 2 @00:10:00.000", "node-a 3 @00:20:00.000")
	})
}

// O9: after a return a binding has to be confirmed before a run is taken for it.
func TestO9_UnconfirmedBindingsAreNotCarried(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a", "node-b")
		r.must(grid(spec{}, begin, 3))
		r.SessionRegistered() // repeated on the same socket: nothing changes
		r.must(grid(spec{}, begin, 3))
		r.SessionLost()
		r.wantTaken("node-a 1 @00:00:00.000")
		// The node may register before the escrow hears of the session.
		r.Bound(bindingOf("node-b", 2))
		r.SessionRegistered()
		if _, refused := r.hold(bodyOf(grid(spec{}, begin, 3))); refused == nil || refused.Name != contract.EscrowNodeNotCarried {
			t.Errorf("refused with %v", refused)
		}
		r.must(grid(spec{node: "node-b"}, begin, 3))
		r.must(grid(spec{node: "node-a"}, begin, 0)) // empty: carried or not
		if n := r.node("node-a"); !n.Reachable || n.Confirmed || n.Held != 0 {
			t.Errorf("%+v", n)
		}
		r.Bound(bindingOf("node-a", 2))
		r.must(grid(spec{}, begin, 3))
	})
}

// O9: what is held stays through a return, and an unconfirmed binding is good for
// release when the session is lost again.
func TestO9_UnconfirmedBindingIsGoodForRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a")
		r.must(grid(spec{}, begin, 3))
		r.SessionLost()
		r.SessionRegistered()
		time.Sleep(slotEvery)
		r.taken()
		r.SessionLost()
		r.wantTaken("node-a 2 @00:10:00.000")
	})
}

// What is beyond the bounds of memory is refused, and changes nothing.
func TestBoundsOfWhatIsHeld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newIdleRig(t, nil)
		r.SessionRegistered()
		id := func(i int) string { return fmt.Sprintf("node-%03d", i) }
		for i := range maximumRuns + 1 {
			r.Bound(bindingOf(id(i), 1))
		}
		for i := range maximumRuns {
			r.must(grid(spec{node: id(i)}, begin, 1))
		}
		over := bodyOf(grid(spec{node: id(maximumRuns)}, begin, 1))
		if _, refused := r.hold(over); refused == nil || refused.Name != contract.RelayOverloaded || !strings.Contains(refused.Reason, "256") {
			t.Errorf("one run too many: %v", refused)
		}
		r.must(grid(spec{node: id(0)}, begin, 2)) // a replacement has its place
		r.must(grid(spec{node: id(0)}, begin, 0))
		if _, refused := r.hold(over); refused != nil {
			t.Errorf("after one was emptied: %v", refused)
		}

		// Records as large as a captured value may be, until the bytes are used up.
		pad := contract.Raw(`{"kind":"cloudly","id":"c1"` + strings.Repeat(" ", 1000<<10) + `}`)
		large := func(i int) []byte {
			return bodyOf(grid(spec{node: id(i), controller: string(pad)}, begin, 1))
		}
		taken := 0
		for i := 1; i < maximumRuns; i++ {
			_, refused := r.hold(large(i))
			if refused == nil {
				taken++
				continue
			}
			if refused.Name != contract.RelayOverloaded || !strings.Contains(refused.Reason, "33554432") {
				t.Errorf("refused with %v", refused)
			}
			break
		}
		s := r.Status().(Status)
		if taken != 32 || s.HeldBytes > maximumHeldBytes || s.HeldBytes < maximumHeldBytes-(2<<20) || s.Runs != maximumRuns {
			t.Errorf("%d large runs, %d bytes, %d runs", taken, s.HeldBytes, s.Runs)
		}
		if _, refused := r.hold(large(1)); refused != nil {
			t.Errorf("in the place of one as large: %v", refused)
		}
		r.must(grid(spec{node: id(1)}, begin, 1)) // smaller than what it replaces
		if _, refused := r.hold(large(taken + 1)); refused != nil {
			t.Errorf("after one was made smaller: %v", refused)
		}
		for i := range maximumRuns + 1 {
			r.must(grid(spec{node: id(i)}, begin, 0))
		}
		if s := r.Status().(Status); s.HeldBytes != 0 {
			t.Errorf("%d bytes are counted of nothing", s.HeldBytes)
		}
	})
}

// A hold that is refused is told of once in a minute by its name, with how many
// there were.
func TestRefusedHoldsAreToldOfFromTimeToTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newIdleRig(t, nil)
		r.SessionRegistered()
		for range 30 {
			r.hold([]byte(`{}`))
			time.Sleep(time.Second)
		}
		r.hold(bodyOf(grid(spec{}, begin, 1)))
		time.Sleep(30 * time.Second)
		r.hold([]byte(`{}`))
		want := []string{"renewals-hold-refused refusal=escrow-run-invalid count=1",
			"renewals-hold-refused refusal=escrow-node-not-carried node=node-a count=1",
			"renewals-hold-refused refusal=escrow-run-invalid count=30"}
		if got := r.eventsOf(HoldRefused); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("events %q", got)
		}
	})
}
