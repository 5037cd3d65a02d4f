package escrow

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"serve.zone/relay/contract"
)

// world is a machine and its history. Time is what the test says.
type world struct {
	t       *rapid.T
	m       *machine
	h       oracle
	mono    time.Duration
	offset  time.Duration // of the wall clock
	stepped bool          // since the machine last read it
	ticked  bool          // since the last event
	flying  []*push
	nodes   []string
}

func (w *world) at() instant { return instant{begin.Add(w.mono + w.offset), w.mono} }

// note adds to the history. It is called before the machine is told or asked, so
// that the oracle knows the same.
func (w *world) note(x happened) *happened {
	at := w.at()
	x.wall, x.mono = at.wall, at.mono
	w.h = append(w.h, x)
	w.stepped, w.ticked = false, false
	return &w.h[len(w.h)-1]
}

// check compares what the machine withdrew with what it has to.
func (w *world) check() {
	for _, p := range w.flying {
		if want, over := w.h.withdrawn(p); p.withdrawn != want || p.over != over {
			w.t.Fatalf("push %d of %s withdrawn: %v, over: %v, want %v, %v, after %s",
				p.target.renewal.Sequence, p.node, p.withdrawn, p.over, want, over, w.history())
		}
	}
}

// tick lets the machine push, and compares with what is due.
func (w *world) tick() {
	w.note(happened{what: "tick"})
	pushed := map[string]*push{}
	for _, p := range w.m.tick(w.at()) {
		if pushed[p.node] != nil {
			w.t.Fatalf("two pushes to %s at once", p.node)
		}
		pushed[p.node] = p
	}
	before := w.h
	for _, node := range w.nodes {
		r, b, due := before.due(node)
		p := pushed[node]
		switch {
		case p == nil && due:
			w.t.Fatalf("sequence %d of %s is due and was not pushed, after %s", r.Renewal.Sequence, node, w.history())
		case p != nil && !due:
			w.t.Fatalf("sequence %d of %s was pushed and is not due, after %s", p.target.renewal.Sequence, node, w.history())
		case p == nil:
			continue
		}
		if p.target.renewal != r.Renewal.Reference() || string(p.signed) != string(r.Received) ||
			string(p.binding.Session.Received) != string(sessionOf(node, before[b].namespace, b).Received) {
			w.t.Fatalf("pushed %+v to %s, want %d under binding %d", p.target, node, r.Renewal.Sequence, b)
		}
		w.note(happened{what: "tick", node: node, push: p})
		w.flying = append(w.flying, p)
	}
	w.check()
	w.ticked = true
}

// sleep passes time without a look at the clocks, but not beyond a wake, and checks
// that nothing becomes due, and nothing is to be withdrawn, before the machine
// wakes.
func (w *world) sleep() {
	if !w.ticked {
		w.tick() // every event wakes the loop
	}
	wake, ok := w.m.wake()
	if !w.h.attached() && (len(w.h.held("node-a"))+len(w.h.held("node-b")) > 0) && (!ok || wake > w.m.at.mono+clockCheck) {
		w.t.Fatalf("the machine wakes at %s, %v, and would not see a step, after %s", wake, ok, w.history())
	}
	if !ok {
		wake = w.mono + time.Duration(rapid.Int64Range(1, int64(30*time.Minute)).Draw(w.t, "idle"))
	}
	if wake <= w.mono {
		w.t.Fatalf("the machine wakes at once, after %s", w.history())
	}
	start := w.mono
	w.mono = wake - 1
	if rapid.Bool().Draw(w.t, "earlier") {
		w.mono = start + time.Duration(rapid.Int64Range(0, int64(wake-start-1)).Draw(w.t, "until"))
	}
	if !w.stepped { // the machine could not know of a step
		was := w.h
		w.note(happened{what: "tick"})
		for _, node := range w.nodes {
			if r, _, due := w.h.due(node); due {
				w.t.Fatalf("sequence %d of %s is due at %s and the machine wakes at %s, after %s", r.Renewal.Sequence, node, w.mono, wake, w.history())
			}
		}
		for _, p := range w.flying {
			if withdrawn, over := w.h.withdrawn(p); withdrawn && !p.withdrawn || over && !p.over {
				w.t.Fatalf("a push is to be withdrawn at %s and the machine wakes at %s, after %s", w.mono, wake, w.history())
			}
		}
		w.h, w.ticked = was, true // nobody looked
	}
	switch rapid.IntRange(0, 3).Draw(w.t, "wakes") {
	case 0: // something else happens first
	case 1: // the timer is late
		w.mono = wake + time.Duration(rapid.Int64Range(0, int64(10*time.Minute)).Draw(w.t, "late"))
		w.tick()
	default:
		w.mono = wake
		w.tick()
	}
}

func (w *world) history() string {
	text := ""
	for _, x := range w.h {
		text += fmt.Sprintf("\n  %-10s %s mono %s node %s", x.what, x.wall.Format("15:04:05.000"), x.mono, x.node)
		switch {
		case x.push != nil:
			text += fmt.Sprintf(" sequence %d %s", x.push.target.renewal.Sequence, x.how)
		case x.what == "hold" || x.what == "empty":
			text += fmt.Sprintf(" accepted %v", x.accepted)
			for _, r := range x.run.Renewals {
				text += fmt.Sprintf(" %d[%s,%s)", r.Renewal.Sequence, time.UnixMilli(r.Renewal.DNS.NotBefore).UTC().Format("15:04:05"),
					time.UnixMilli(r.Renewal.DNS.ExpiresAt).UTC().Format("15:04:05"))
			}
		case x.what == "bound":
			text += fmt.Sprintf(" %s confirmed %v", x.namespace, x.confirmed)
		}
	}
	return text
}

func (w *world) drawNamespace() string {
	if rapid.IntRange(0, 9).Draw(w.t, "namespace") == 9 {
		return "ns:2"
	}
	return "ns:1"
}

// drawRun draws a run in order around the wall clock.
func (w *world) drawRun(node string) contract.HoldDNSLeaseRenewalsRequest {
	s := spec{node: node, unsealed: true, namespace: w.drawNamespace(),
		projection: projection(rapid.SampledFrom([]string{"p:1", "p:1", "p:1", "p:2"}).Draw(w.t, "projection"), rapid.Int64Range(1, 2).Draw(w.t, "generation")),
		sequence:   rapid.Int64Range(1, 6).Draw(w.t, "sequence")}
	seconds := rapid.SampledFrom([]int64{20, 60, 600}).Draw(w.t, "every") * 1000
	issued := w.at().wall.UnixMilli() - rapid.Int64Range(-seconds/2, 2*seconds).Draw(w.t, "ago")
	var windows []contract.DNSWindow
	for range rapid.IntRange(1, 12).Draw(w.t, "renewals") {
		opens := issued + rapid.Int64Range(0, seconds/2).Draw(w.t, "opens")*int64(rapid.IntRange(0, 1).Draw(w.t, "later"))
		windows = append(windows, contract.DNSWindow{IssuedAt: issued, NotBefore: opens, ExpiresAt: issued + seconds*3/2})
		issued += seconds
	}
	return runOf(s, windows)
}

// act lets one thing happen.
func (w *world) act() {
	node := rapid.SampledFrom(w.nodes).Draw(w.t, "node")
	// What stands first is drawn most often.
	often := []string{"lost", "hold", "bound", "hold", "lost", "step", "ended", "unbound", "registered", "empty", "suspend", "drop"}
	if !w.h.attached() {
		often = []string{"ended", "tries", "returns", "ended", "step", "nothing", "registered", "bound", "unbound", "hold", "lost", "suspend", "drop", "flaps"}
	}
	switch what := rapid.SampledFrom(often).Draw(w.t, "what"); what {
	case "tries": // nodes that refuse, or do not answer, time after time
		for wait := firstRetry; wait < lastRetry*4 && len(w.flying) > 0; wait *= 2 {
			for len(w.flying) > 0 {
				w.endedAs(0, rapid.SampledFrom([]outcome{outcomeRefused, outcomeFailed, outcomeForeign}).Draw(w.t, "how"))
			}
			w.mono += min(wait, lastRetry) - 1
			w.tick()
			w.mono++
			w.tick()
		}
	case "returns": // as Cloudly does
		w.do("registered", node)
		for _, node := range w.nodes {
			w.do("bound", node)
			w.do("hold", node)
		}
	case "flaps": // and nodes acknowledge meanwhile, or behind it
		w.do("registered", node)
		for _, answer := range rapid.Permutation([]bool{true, false}).Draw(w.t, "answer") {
			if !answer {
				w.do("lost", node)
			} else if len(w.flying) > 0 {
				w.endedAs(rapid.IntRange(0, len(w.flying)-1).Draw(w.t, "which"), outcomeAcknowledged)
			}
			w.tick()
		}
	default:
		w.do(what, node)
	}
}

// do lets a thing happen to a node.
func (w *world) do(what, node string) {
	switch what {
	case "hold", "empty":
		x := w.drawRun(node)
		if what == "empty" {
			x.Renewals = x.Renewals[:0]
		}
		noted := w.note(happened{what: what, node: node, run: x})
		want := w.h.refusal(node, x)
		held, refused := w.m.hold(w.at(), x, nil)
		if refused == nil && (want != "" || held != len(x.Renewals)) || refused != nil && refused.Name != want {
			w.t.Fatalf("held %d, refused %v, want %q, after %s", held, refused, want, w.history())
		}
		noted.accepted = refused == nil
	case "bound":
		ns := w.drawNamespace()
		confirmed := rapid.IntRange(0, 4).Draw(w.t, "confirmed") > 0
		w.note(happened{what: "bound", node: node, namespace: ns, confirmed: confirmed})
		// The session's epoch is its place in the history, so that each is another one.
		w.m.bound(w.at(), Binding{NodeID: node, Session: sessionOf(node, ns, len(w.h)-1), Confirmed: confirmed})
	case "unbound":
		w.note(happened{what: "unbound", node: node})
		w.m.unbound(w.at(), node)
	case "registered":
		w.note(happened{what: "registered"})
		w.m.registered(w.at())
	case "lost":
		w.note(happened{what: "lost"})
		w.m.lost(w.at())
	case "suspend":
		w.note(happened{what: "suspend"})
		w.m.suspend(w.at())
	case "drop":
		if rapid.IntRange(0, 4).Draw(w.t, "rarely") > 0 {
			return
		}
		w.note(happened{what: "drop"})
		w.m.drop(w.at(), "relay-node-unknown")
	case "step":
		w.offset += time.Duration(rapid.SampledFrom([]int64{-600, -60, -31, -30, -29, -1, 1, 31, 60, 600}).Draw(w.t, "step")) * time.Second
		w.stepped = true
	case "ended":
		w.ended()
	}
	w.check()
}

// ended ends a push that is in flight.
func (w *world) ended() {
	if len(w.flying) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.flying)-1).Draw(w.t, "which")
	w.endedAs(i, outcome(rapid.IntRange(0, int(outcomeSocketEnded)).Draw(w.t, "how")))
}

func (w *world) endedAs(i int, how outcome) {
	p := w.flying[i]
	w.flying = append(w.flying[:i:i], w.flying[i+1:]...)
	current := w.h.flying(p.node) == p
	noted := w.note(happened{what: "ended", node: p.node, push: p, how: how, accepted: current})
	if how == outcomeFailed && p.withdrawn {
		noted.how = outcomeWithdrawn
	}
	if got := w.m.ended(w.at(), p, how); got != noted.how {
		w.t.Fatalf("ended %s counts as %s", how, got)
	}
	if !current {
		noted.how = outcomeWithdrawn // of an older custody
	}
}

// TestModel drives the machine through random holds, registrations, outages, flaps
// and clock steps. Whatever it pushes, an oracle allows that derives from the whole
// history what may be pushed now; and what has to be pushed is, at the very moment
// the machine says it wakes.
func TestModel(t *testing.T) {
	seen := map[string]int{}
	for range 5 { // of a hundred runs
		rapid.Check(t, func(t *rapid.T) { runModel(t).count(seen) })
	}
	// Runs in which nothing happens would prove nothing.
	for what, least := range map[string]int{"pushed": 200, "third push": 50, "acknowledged": 20, "acknowledged late": 20, "waited for": 20, "withdrawn": 20, "suspect": 50, "held": 200, "refused": 200} {
		if seen[what] < least {
			t.Errorf("%s: %d times, want %d: %v", what, seen[what], least, seen)
		}
	}
}

// count counts what happened in a run.
func (w *world) count(seen map[string]int) {
	for i, x := range w.h {
		switch {
		case x.push != nil && x.what == "tick":
			seen["pushed"]++
			if x.push.pushed == 3 {
				seen["third push"]++
			}
		case x.what == "ended" && x.accepted:
			seen[x.how.String()]++
			if x.how == outcomeAcknowledged && w.h[:i].attached() {
				seen["acknowledged late"]++
			}
		case x.what == "hold" && x.accepted:
			seen["held"]++
		case x.what == "hold":
			seen["refused"]++
		case x.what == "tick" && w.h[:i+1].suspect():
			seen["suspect"]++
		case x.what == "lost" && w.h[:i].attached():
			then := w.h[:i+1]
			for _, node := range w.nodes { // pushed in an outage before, and asked for by this one
				if r, b, ok := then.allowed(node); ok && then.flying(node) != nil &&
					then.flying(node).target.renewal == r.Renewal.Reference() && then.boundFor(then.flying(node)) == b {
					seen["waited for"]++
				}
			}
		}
	}
}

// runModel drives one machine.
func runModel(t *rapid.T) *world {
	w := &world{t: t, m: newMachine(instant{wall: begin}), nodes: []string{"node-a", "node-b"}}
	w.note(happened{what: "tick"})
	if rapid.IntRange(0, 9).Draw(t, "detached") < 9 { // most of what is of interest is behind it
		w.do("registered", "")
		for _, node := range w.nodes {
			w.do("bound", node)
			w.do("hold", node)
		}
	}
	for range rapid.IntRange(10, 60).Draw(t, "length") {
		w.act()
		if rapid.Bool().Draw(t, "passes") {
			w.sleep()
		} else if rapid.Bool().Draw(t, "ticks") {
			w.tick()
		}
	}
	return w
}
