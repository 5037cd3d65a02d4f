package forward

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"serve.zone/relay/contract"
)

func sessionNamed(text string) contract.SessionBinding {
	return contract.SessionBinding{Received: contract.Raw(text)}
}

// TestTableAcceptance: how each acceptance changes what is held.
func TestTableAcceptance(t *testing.T) {
	tb := newTable[int]()
	tb.attach()
	accept := func(s int, session string, want acceptance, wantOlder int) {
		t.Helper()
		k, ok := tb.claim(s, "a")
		if !ok {
			t.Fatalf("socket %d may not register", s)
		}
		how, older, ok := tb.accept(k, sessionNamed(session), time.Time{})
		tb.settle(k)
		if !ok || how != want || older != wantOlder || tb.bindings["a"].socket != s || !tb.bindings["a"].confirmed {
			t.Fatalf("%s, older %d, %v, %+v", how, older, ok, tb.bindings["a"])
		}
	}
	accept(1, "x", acceptedFirst, 0)
	accept(1, "x", acceptedReplay, 0)
	accept(1, "y", acceptedRotation, 0)
	tb.attach()
	accept(1, "y", acceptedConfirmed, 0)
	tb.attach()
	accept(1, "x", acceptedRotation, 0)
	accept(2, "y", acceptedNewer, 1)
	if _, ok := tb.claim(1, "a"); ok {
		t.Error("a superseded socket registers")
	}
	if tb.bindings["a"].moves != 1 {
		t.Errorf("%d moves", tb.bindings["a"].moves)
	}
	accept(3, "z", acceptedNewer, 2)
	if node := tb.end(2); node != "" || tb.bindings["a"].socket != 3 {
		t.Errorf("the end of an older socket unbound %q", node)
	}
	if node := tb.end(3); node != "a" || tb.bindings["a"] != nil {
		t.Errorf("the end of the socket unbound %q", node)
	}
}

// happening is one event of a history, and what the table said to it.
type happening struct {
	kind   string // attach, detach, claim, accept, refuse, leave, drop
	socket int
	node   string
	nth    int // of the history: the claim that is answered
	ok     bool
	text   string
}

// history is a slow oracle: what is held follows from everything that happened,
// looked through from the start each time.
type history []happening

// alive reports whether a socket is not about to end after all of h.
func (h history) alive(socket int) bool {
	for i, e := range h {
		switch {
		case e.kind == "leave" && e.socket == socket:
			return false
		case e.kind == "drop" && slices.ContainsFunc(h[:i], func(x happening) bool { return x.kind == "claim" && x.socket == socket }):
			return false
		case e.kind == "accept" && e.ok && e.socket != socket && h[:i].boundTo(e.node) == socket:
			return false // superseded
		}
	}
	return true
}

// boundTo returns the socket that a node is bound to after all of h, -1 for none.
func (h history) boundTo(node string) int {
	for i := len(h) - 1; i >= 0; i-- {
		if e := h[i]; e.kind == "accept" && e.ok && e.node == node {
			if h.alive(e.socket) {
				return e.socket
			}
			return -1
		}
	}
	return -1
}

// sessionOf returns the session that was last accepted for a node.
func (h history) sessionOf(node string) (text string, at int) {
	for i := len(h) - 1; i >= 0; i-- {
		if e := h[i]; e.kind == "accept" && e.ok && e.node == node {
			return e.text, i
		}
	}
	return "", -1
}

// since reports whether something of these kinds happened after the nth.
func (h history) since(n int, kinds ...string) bool {
	return slices.ContainsFunc(h[n+1:], func(e happening) bool { return slices.Contains(kinds, e.kind) })
}

// attached reports whether a Cloudly session stands.
func (h history) attached() bool {
	for i := len(h) - 1; i >= 0; i-- {
		switch h[i].kind {
		case "attach":
			return true
		case "detach", "drop":
			return false
		}
	}
	return false
}

// owner returns the node that a socket belongs to.
func (h history) owner(socket int) string {
	for i := len(h) - 1; i >= 0; i-- {
		e := h[i]
		if e.socket != socket {
			continue
		}
		if e.kind == "accept" && e.ok && h.boundTo(e.node) == socket {
			return e.node
		}
		if e.kind == "claim" && e.ok && !slices.ContainsFunc(h[i:], func(x happening) bool {
			return (x.kind == "accept" || x.kind == "refuse") && x.nth == i
		}) {
			return e.node
		}
	}
	return ""
}

// TestTableAgainstItsHistory: whatever happens in whatever order.
func TestTableAgainstItsHistory(t *testing.T) {
	nodes := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		tb := newTable[int]()
		var h history
		tickets := map[int]ticket[int]{} // claims in flight, by their place in the history
		draw := func(t *rapid.T) (int, ticket[int]) {
			if len(tickets) == 0 {
				t.Skip()
			}
			at := rapid.SampledFrom(slices.Sorted(maps.Keys(tickets))).Draw(t, "claim")
			return at, tickets[at]
		}
		t.Repeat(map[string]func(*rapid.T){
			"attach": func(*rapid.T) { tb.attach(); h = append(h, happening{kind: "attach"}) },
			"detach": func(*rapid.T) { tb.detach(); h = append(h, happening{kind: "detach"}) },
			"claim": func(t *rapid.T) {
				s, node := rapid.IntRange(0, 4).Draw(t, "socket"), rapid.SampledFrom(nodes).Draw(t, "node")
				owner := h.owner(s)
				want := h.alive(s) && (owner == "" || owner == node)
				k, ok := tb.claim(s, node)
				if ok != want {
					t.Fatalf("claim of %s on %d: %v, want %v", node, s, ok, want)
				}
				h = append(h, happening{kind: "claim", socket: s, node: node, ok: ok})
				if ok {
					tickets[len(h)-1] = k
				}
			},
			"accept": func(t *rapid.T) {
				at, k := draw(t)
				text := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "session")
				want := h.attached() && h[:at].attached() && !h.since(at, "attach", "detach", "drop") && h.alive(k.socket)
				before := h.boundTo(k.node)
				_, older, ok := tb.accept(k, sessionNamed(text), time.Time{})
				if ok != want {
					t.Fatalf("acceptance of claim %d: %v, want %v", at, ok, want)
				}
				if moved := ok && before >= 0 && before != k.socket; moved && older != before {
					t.Fatalf("older socket %d, want %d", older, before)
				}
				tb.settle(k)
				delete(tickets, at)
				h = append(h, happening{kind: "accept", socket: k.socket, node: k.node, nth: at, ok: ok, text: text})
			},
			"refuse": func(t *rapid.T) {
				at, k := draw(t)
				tb.settle(k)
				delete(tickets, at)
				h = append(h, happening{kind: "refuse", socket: -1, nth: at})
			},
			"leave": func(t *rapid.T) {
				s := rapid.IntRange(0, 4).Draw(t, "socket")
				if tb.seats[s] == nil {
					t.Skip() // nobody knows it
				}
				want := ""
				for _, node := range nodes {
					if h.boundTo(node) == s {
						want = node
					}
				}
				if got := tb.leave(s); got != want {
					t.Fatalf("the end of %d unbound %q, want %q", s, got, want)
				}
				h = append(h, happening{kind: "leave", socket: s})
			},
			"drop": func(t *rapid.T) {
				want := len(tb.bindings)
				if got := len(tb.drop()); got != want {
					t.Fatalf("%d of %d were dropped", got, want)
				}
				h = append(h, happening{kind: "drop"})
			},
			"": func(t *rapid.T) { compare(t, tb, h, nodes) },
		})
	})
}

// compare holds the table to its history.
func compare(t *rapid.T, tb *table[int], h history, nodes []string) {
	unconfirmed, least := 0, ""
	for _, node := range nodes {
		socket := h.boundTo(node)
		b := tb.bindings[node]
		if (b != nil) != (socket >= 0) {
			t.Fatalf("%s: bound %v, want socket %d", node, b != nil, socket)
		}
		if b == nil {
			continue
		}
		text, at := h.sessionOf(node)
		confirmed := !h.since(at, "attach")
		if b.socket != socket || string(b.session.Received) != text || b.confirmed != confirmed || b.node != node {
			t.Fatalf("%s: %+v, want socket %d, session %s, confirmed %v", node, b, socket, text, confirmed)
		}
		if !confirmed {
			unconfirmed++
			if least == "" {
				least = node
			}
		}
	}
	if tb.unconfirmed() != unconfirmed || tb.attached != h.attached() {
		t.Fatalf("%d unconfirmed, attached %v", tb.unconfirmed(), tb.attached)
	}
	if b := tb.recallable(true); (b != nil) != (least != "") || b != nil && b.node != least {
		t.Fatalf("recallable %+v, want %q", b, least)
	}
	for s := range 5 {
		if got, want := tb.belongs(s), h.owner(s); h.alive(s) && got != want {
			t.Fatalf("socket %d belongs to %q, want %q", s, got, want)
		}
		b := tb.bound(s)
		if b != nil && b.socket != s {
			t.Fatalf("socket %d is said to hold the binding of %d", s, b.socket)
		}
	}
}

// TestRecall: when the next socket is due.
func TestRecall(t *testing.T) {
	const second = time.Second
	for _, c := range []struct {
		r    recall
		back bool
		want time.Duration
	}{
		{recall{total: 3}, false, 2 * second},
		{recall{total: 3}, true, 2 * second},
		{recall{total: 3, closed: 1, last: 2 * second}, false, 4 * second},
		{recall{total: 3, closed: 1, last: 2 * second}, true, 2*second + recallGap},
		{recall{total: 10, closed: 9, last: 10 * second}, false, 11 * second},
		{recall{total: 256, closed: 255}, false, 2*second + 255*(10*second/256)},
		{recall{total: 256, closed: 1, last: 2 * second}, true, 2*second + recallGap},
		{recall{total: 1000, closed: 1, last: 2 * second}, true, 2*second + 10*time.Millisecond},
		{recall{}, false, 2 * second},
	} {
		if got := c.r.next(c.back); got != c.want {
			t.Errorf("%+v, back %v: %s, want %s", c.r, c.back, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 1024).Draw(t, "total")
		r := recall{total: total}
		for r.closed < total {
			due := r.next(rapid.Bool().Draw(t, "back"))
			if due < recallSettle || due >= recallSettle+recallSpread {
				t.Fatalf("socket %d of %d is due at %s", r.closed, total, due)
			}
			r.closed, r.last = r.closed+1, max(due, r.last)
		}
	})
	for since, want := range map[time.Duration]bool{0: false, 11 * second: false, 12*second - recallRetry: true, 13 * second: true} {
		if got := overdue(since); got != want {
			t.Errorf("overdue after %s: %v", since, got)
		}
	}
}

// TestEnumsHaveNames, each its own.
func TestEnumsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range []fmt.Stringer{acceptedFirst, acceptedReplay, acceptedConfirmed, acceptedRotation, acceptedNewer} {
		if s.String() == "" || seen[s.String()] {
			t.Errorf("%q", s.String())
		}
		seen[s.String()] = true
	}
}
