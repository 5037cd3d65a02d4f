package escrow

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
)

var _ duty.Duty = (*Escrow)(nil)

// The status is one document that can be encoded, and shows no record.
func TestStatusIsEncoded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a", "node-b")
		r.must(grid(spec{}, begin, 2))
		r.answering(refusing)
		r.SessionLost()
		time.Sleep(time.Second)
		synctest.Wait()
		text, err := json.MarshalIndent(r.Status(), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		want := `{
 "attached": false,
 "clockSuspect": false,
 "draining": false,
 "runs": 1,
 "renewals": 2,
 "heldBytes": 1018,
 "heldLimitBytes": 33554432,
 "unreachable": 0,
 "pushesRunning": 0,
 "nodes": [
  {
   "id": "node-a",
   "held": 2,
   "expiresAt": "2000-01-01T00:25:00Z",
   "nextSlotAt": "2000-01-01T00:10:00Z",
   "current": {
    "sequence": 1,
    "notBefore": "2000-01-01T00:00:00Z",
    "expiresAt": "2000-01-01T00:15:00Z"
   },
   "reachable": true,
   "confirmed": true,
   "released": {
    "sequence": 1,
    "at": "2000-01-01T00:00:00Z"
   },
   "lastOutcome": "refused",
   "pushing": false,
   "pushes": 1,
   "retryAt": "2000-01-01T00:00:05Z"
  },
  {
   "id": "node-b",
   "held": 0,
   "reachable": true,
   "confirmed": true,
   "pushing": false,
   "pushes": 0
  }
 ]
}`
		if string(text) != want {
			t.Errorf("got %s", text)
		}
	})
}

// What the checks say, and that nothing of it makes the relay not ready.
func TestChecks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		want := func(what string, coverage, clock string) {
			t.Helper()
			synctest.Wait()
			for i, want := range []string{coverage, clock} {
				c := r.Checks(time.Now())[i]
				got := c.State.String() + " " + c.Reason
				for _, f := range c.Facts {
					got += " " + f.Key().String() + "=" + f.String()
				}
				if got = strings.ReplaceAll(got, "  ", " "); got != want || !c.Advice || (c.Hint == "") != (c.State == duty.OK) {
					t.Errorf("%s: %q, want %q, %+v", what, got, want, c)
				}
			}
		}
		const fine = "ok "
		want("at the start", "pending nothing-held", fine)
		r.attached("node-a", "node-b")
		want("nothing is held", "pending nodes-without-run count=2", fine)
		r.must(grid(spec{}, begin, 3))
		want("one is bare", "pending nodes-without-run count=1", fine)
		r.must(grid(spec{node: "node-b"}, begin, 2))
		want("all are covered", "ok count=2 expiresAt=2000-01-01T00:25:00.000Z", fine)
		since := r.Checks(time.Now())[0].Since
		time.Sleep(time.Minute)
		if again := r.Checks(time.Now())[0].Since; !again.Equal(since) {
			t.Errorf("changed at %s, which was %s", again, since)
		}
		r.SessionLost()
		want("away", "ok count=2 expiresAt=2000-01-01T00:25:00.000Z", fine)
		r.clock.step(-time.Minute)
		time.Sleep(time.Second)
		want("the clock stepped back", "ok count=2 expiresAt=2000-01-01T00:25:00.000Z", "failing clock-suspect expiresAt=2000-01-01T00:01:01.000Z")
		r.clock.step(time.Minute)
		time.Sleep(time.Second)
		r.Unbound("node-b")
		want("one is unreachable", "failing nodes-unreachable count=1", fine)
		time.Sleep(time.Hour)
		want("the end", "failing coverage-ended count=1", fine)
		r.SessionRegistered()
		want("back", "pending nodes-without-run count=1", fine)
		r.DropCustody("relay-node-unknown")
		want("custody ended", "pending nothing-held", fine)
	})
}

// The age of a check is that of the change, whoever asks first and however late.
func TestChecks_Ages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		want := func(coverage, clock time.Duration) {
			t.Helper()
			synctest.Wait()
			checks := r.Checks(time.Now())
			for i, want := range []time.Duration{coverage, clock} {
				if got := checks[i].Since.Sub(begin); got != want {
					t.Errorf("%s %s since %s, want %s", checks[i].Name, checks[i].State, got, want)
				}
			}
		}
		time.Sleep(time.Hour)
		want(0, 0)
		r.attached("node-a")
		time.Sleep(time.Hour)
		want(time.Hour, 0)
		r.must(grid(spec{}, time.Now(), 3))
		time.Sleep(5 * time.Minute)
		want(2*time.Hour, 0)
		r.SessionLost()
		r.Unbound("node-a")
		time.Sleep(time.Minute)
		want(2*time.Hour+5*time.Minute, 0)
		r.DropCustody("relay-node-unknown")
		time.Sleep(time.Minute)
		want(2*time.Hour+6*time.Minute, 0)
	})
}

// What is counted and gauged.
func TestMetrics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a", "node-b", "node-c")
		r.must(grid(spec{}, begin, 3))
		r.must(grid(spec{}, begin, 0))
		r.must(grid(spec{}, begin, 3))
		r.must(grid(spec{node: "node-b"}, begin, 2))
		r.hold([]byte(`{}`))
		r.SessionLost()
		synctest.Wait()
		r.Unbound("node-b")
		time.Sleep(10 * time.Second)
		r.clock.step(-time.Minute)
		time.Sleep(time.Second)
		synctest.Wait()
		for name, want := range map[string]float64{
			"relay_escrow_held_runs": 2, "relay_escrow_held_bytes": 5 * 509, "relay_escrow_unreachable_nodes": 1,
			"relay_escrow_uncovered_nodes": 1, "relay_escrow_coverage_seconds": 35*60 + 49, "relay_escrow_suspect_clocks": 1,
			"relay_escrow_answered_holds_total replaced": 3, "relay_escrow_answered_holds_total emptied": 1,
			"relay_escrow_answered_holds_total escrow-run-invalid": 1, "relay_escrow_answered_holds_total other": 0,
			"relay_escrow_pushed_renewals_total": 2, "relay_escrow_ended_pushes_total acknowledged": 2,
		} {
			if got, ok := r.metric(name); got != want || !ok {
				t.Errorf("%s is %v %v, want %v", name, got, ok, want)
			}
		}
	})
}

// metric returns one series, named by its metric and its labels.
func (r *rig) metric(name string) (float64, bool) {
	for _, f := range r.Metrics().Snapshot() {
		for _, s := range f.Samples {
			full := f.Name
			for _, l := range s.Labels {
				full += " " + l.Value
			}
			if full == name {
				return s.Value, true
			}
		}
	}
	return 0, false
}

// Every refusal of a hold has a label of its own.
func TestRefusalsHaveLabels(t *testing.T) {
	for _, name := range contract.HoldRefusals().Names() {
		if by := refusedBy(name); by == holdOther || by.String() != string(name) {
			t.Errorf("%s is counted as %s", name, by)
		}
	}
	if refusedBy("another") != holdOther {
		t.Error("an unknown name is counted as a known one")
	}
}

// A node for which nothing is held loses its socket in an outage: it is shown by
// name all the same until Cloudly is back, since only then can it come back.
func TestANodeWithoutARunIsShownWhenItIsLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a", "node-b", "node-c")
		r.Unbound("node-c") // while Cloudly is there, which shows it itself
		r.SessionLost()
		time.Sleep(time.Minute)
		r.Unbound("node-b")
		shown := func(want ...string) {
			t.Helper()
			var got []string
			for _, n := range r.Status().(Status).Nodes {
				if n.ID == "node-b" && (n.Reachable || !n.UnreachableFrom.Equal(begin.Add(time.Minute))) {
					t.Errorf("%+v", n)
				}
				got = append(got, n.ID)
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("shown %v, want %v", got, want)
			}
		}
		shown("node-a", "node-b")
		if got := r.eventsOf(NodeUnreachable); len(got) != 1 || got[0] != "renewals-node-unreachable node=node-b reason=socket-ended" {
			t.Errorf("events %q", got)
		}
		r.SessionRegistered()
		shown("node-a")
		r.SessionLost()
		r.Unbound("node-a")
		shown("node-a")
		r.DropCustody("relay-node-foreign")
		shown()
	})
}
