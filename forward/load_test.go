package forward

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"serve.zone/relay/contract"
)

// TestLoadAtItsBounds and one past each.
func TestLoadAtItsBounds(t *testing.T) {
	fill := func(t *total, l *load, c cost, n int) {
		for i := range n {
			if r := t.admit(l, c); r != nil {
				panic(fmt.Sprintf("request %d: %s", i, r))
			}
		}
	}
	t.Run("requests in each direction", func(t *testing.T) {
		var all total
		var l load
		for d := range directions {
			fill(&all, &l, cost{direction: d, bytes: 1}, 64)
			if r := all.admit(&l, cost{direction: d, bytes: 1}); r == nil || r.Name != contract.RelayOverloaded {
				t.Errorf("request 65 %s: %v", d, r)
			}
		}
		all.release(&l, cost{direction: up, bytes: 1})
		fill(&all, &l, cost{direction: up, bytes: 1}, 1)
	})
	t.Run("bytes of a node", func(t *testing.T) {
		var all total
		var l load
		fill(&all, &l, cost{direction: up, bytes: 4 << 20}, 1)
		fill(&all, &l, cost{direction: down, bytes: 4 << 20}, 1)
		if r := all.admit(&l, cost{direction: up, bytes: 1}); r == nil || r.Name != contract.RelayOverloaded {
			t.Errorf("byte 8 MiB + 1: %v", r)
		}
	})
	t.Run("bytes of all", func(t *testing.T) {
		var all total
		nodes := make([]load, 33)
		for i := range 32 {
			fill(&all, &nodes[i], cost{direction: up, bytes: 8 << 20}, 1)
		}
		if r := all.admit(&nodes[32], cost{direction: up, bytes: 1}); r == nil || r.Name != contract.RelayOverloaded {
			t.Errorf("byte 256 MiB + 1: %v", r)
		}
		all.release(&nodes[0], cost{direction: up, bytes: 8 << 20})
		fill(&all, &nodes[32], cost{direction: up, bytes: 8 << 20}, 1)
	})
	t.Run("strangers", func(t *testing.T) {
		var all total
		var one load
		c := cost{direction: up, bytes: 64 << 10, stranger: true}
		fill(&all, &one, c, 4)
		if r := all.admit(&one, c); r == nil || r.Name != contract.RelayOverloaded {
			t.Errorf("registration 5 of a stranger: %v", r)
		}
		for i := range 508 {
			var l load
			if r := all.admit(&l, c); r != nil {
				t.Fatalf("stranger %d: %v", i, r)
			}
		}
		var l load
		if r := all.admit(&l, c); r == nil || r.Name != contract.RelayOverloaded {
			t.Errorf("byte 32 MiB + 1 of strangers: %v", r)
		}
		c.stranger = false
		fill(&all, &l, c, 1)
	})
}

// TestLoadAgainstARecount: whatever is admitted and released, the sums are those
// of what is in flight, and no bound is passed.
func TestLoadAgainstARecount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all total
		nodes := make([]load, 5)
		type flight struct {
			node int
			cost cost
		}
		var flights []flight
		t.Repeat(map[string]func(*rapid.T){
			"admit": func(t *rapid.T) {
				f := flight{rapid.IntRange(0, 4).Draw(t, "node"), cost{
					direction: rapid.SampledFrom([]direction{up, down}).Draw(t, "direction"),
					bytes:     rapid.IntRange(0, 5<<20).Draw(t, "bytes"), stranger: rapid.Bool().Draw(t, "stranger")}}
				if all.admit(&nodes[f.node], f.cost) == nil {
					flights = append(flights, f)
				}
			},
			"release": func(t *rapid.T) {
				if len(flights) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(flights)-1).Draw(t, "flight")
				all.release(&nodes[flights[i].node], flights[i].cost)
				flights = append(flights[:i], flights[i+1:]...)
			},
			"": func(t *rapid.T) {
				var sum total
				counted := make([]load, 5)
				for _, f := range flights {
					sum.move(&counted[f.node], f.cost, 1)
				}
				if sum != all {
					t.Fatalf("sums %+v, recounted %+v", all, sum)
				}
				for i, l := range nodes {
					if l != counted[i] || l.count[up] > 64 || l.count[down] > 64 || l.bytes > 8<<20 {
						t.Fatalf("node %d: %+v, recounted %+v", i, l, counted[i])
					}
				}
			},
		})
	})
}

// TestCapsOfANode through the whole room: 64 requests, the 65th is refused by
// name, and others are served as before.
func TestCapsOfANode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		other, otherSession := r.bound(cloud, "node-b")
		var flights []frame
		for range 64 {
			node.send(report, body(session, `"x":1`))
			flights = append(flights, cloud.recv())
		}
		node.send(report, body(session, `"x":65`))
		refused(t, node.recv(), contract.RelayOverloaded)
		node.send(register, registrationOf("node-a"))
		refused(t, node.recv(), contract.RelayOverloaded)
		cloud.none()
		cloud.send("applyRuntimeAssignment", body(session, `"x":1`)) // pushes are counted apart
		node.answer(node.recv(), `"response":{}`)
		cloud.recv()
		other.send(report, body(otherSession, `"x":1`))
		cloud.answer(cloud.recv(), `"response":{}`)
		other.recv()
		cloud.answer(flights[7], `"response":{}`)
		node.recv()
		node.send(report, body(session, `"x":66`))
		cloud.recv()
		node.send(report, body(session, `"x":67`))
		refused(t, node.recv(), contract.RelayOverloaded)

		for range 64 {
			cloud.send("applyRuntimeAssignment", body(session, `"x":1`))
			node.recv()
		}
		cloud.send("applyRuntimeAssignment", body(session, `"x":65`))
		refused(t, cloud.recv(), contract.RelayOverloaded)
		if s := r.Status().(Status); s.Nodes[0].InFlight.NodeRequests != 64 || s.Nodes[0].InFlight.CloudlyRequests != 64 ||
			s.Nodes[0].LastRefusal != contract.RelayOverloaded || s.Nodes[0].Refused != 4 {
			t.Errorf("%+v", s.Nodes[0])
		}
		if n := len(r.eventsOf(NodeOverloaded)); n != 1 {
			t.Errorf("%d events within a minute", n)
		}
	})
}

// TestBytesOfANode through the whole room: what one floods costs the others
// nothing.
func TestBytesOfANode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		other, otherSession := r.bound(cloud, "node-b")
		batch := body(session, `"batch":"`+strings.Repeat("x", 1<<20)+`"`)
		for range 7 {
			node.send("reportRuntimeAssignmentLogs", batch)
			cloud.recv()
		}
		node.send("reportRuntimeAssignmentLogs", batch)
		refused(t, node.recv(), contract.RelayOverloaded)
		cloud.none()
		node.send(report, body(session, `"x":1`)) // a small one still fits
		cloud.recv()
		other.send("reportRuntimeAssignmentLogs", body(otherSession, `"batch":"`+strings.Repeat("x", 1<<20)+`"`))
		cloud.recv()
	})
}

// TestCapOfAllNodes through the whole room: 256 MiB.
func TestCapOfAllNodes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		other, otherSession := r.bound(cloud, "node-b")
		node.send(report, body(session, `"x":1`))
		f := cloud.recv()
		synctest.Wait()
		r.Forward.mu.Lock()
		size := r.total.bytes
		r.total.bytes = allBytes - size // as if other nodes had the rest in flight
		r.Forward.mu.Unlock()
		other.send(report, body(otherSession, `"x":"at the bound"`))
		cloud.recv()
		other.send(report, body(otherSession, `"x":"past it"`))
		refused(t, other.recv(), contract.RelayOverloaded)
		cloud.send("applyRuntimeAssignment", body(session, `"x":1`))
		refused(t, cloud.recv(), contract.RelayOverloaded)
		cloud.answer(f, `"response":{}`)
		node.recv()
		other.send(report, body(otherSession, `"x":"again at it"`))
		cloud.recv()
	})
}

// TestStrangersAreBounded through the whole room.
func TestStrangersAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node := r.dialNode()
		var flights []frame
		for range strangerRequests {
			node.send(register, registrationOf("node-a"))
			flights = append(flights, cloud.recv())
		}
		node.send(register, registrationOf("node-a"))
		refused(t, node.recv(), contract.RelayOverloaded)
		cloud.answer(flights[0], accepted(sessionOf("node-a", 1)))
		node.recv()
		node.send(register, registrationOf("node-a")) // it is no stranger any more
		cloud.recv()
		for _, f := range flights[1:] {
			cloud.answer(f, `"response":null,"error":{"text":"no"}`)
			node.recv()
		}
		synctest.Wait()
		if r.total.strangers != 0 {
			t.Errorf("%d bytes are still counted for strangers", r.total.strangers)
		}
	})
}

// B031: a node that does not read costs itself: its answers fail by the bound of their
// queue, and others are served at once.
func TestB031_NodeThatDoesNotRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		stuck, session := r.bound(cloud, "node-a")
		other, otherSession := r.bound(cloud, "node-b")
		stuck.gate.shut()
		big := `"response":{"pad":"` + strings.Repeat("x", 900<<10) + `"}`
		for range 20 {
			stuck.send(report, body(session, `"x":1`))
			cloud.answer(cloud.recv(), big)
		}
		synctest.Wait()
		if s := stuck.sock.Stats(); s.QueuedFlow > 9<<20 || s.QueuedOwn > 1<<20 || s.QueueFull == 0 {
			t.Errorf("%+v", s)
		}
		start := time.Now()
		other.send(report, body(otherSession, `"x":1`))
		cloud.answer(cloud.recv(), `"response":{}`)
		other.recv()
		if d := time.Since(start); d != 0 {
			t.Errorf("another node waited %s", d)
		}
		stuck.gate.open()
		failures := 0
		for range 20 {
			if f := stuck.recv(); f.Error != nil {
				unnamed(t, f)
				failures++
			}
		}
		if failures == 0 || failures == 20 {
			t.Errorf("%d of 20 answers failed", failures)
		}
		if s := r.Status().(Status); s.InFlight != (InFlight{}) {
			t.Errorf("%+v", s.InFlight)
		}
	})
}

// B034: what is in flight to a Cloudly that never answers is bounded, and each request
// ends by its deadline.
func TestB034_CloudlyThatNeverAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		for range 10 {
			for range 200 {
				node.send(report, body(session, `"x":1`))
			}
			synctest.Wait()
			if s := r.Status().(Status); s.InFlight.NodeRequests != 64 {
				t.Fatalf("%+v", s.InFlight)
			}
			time.Sleep(31 * time.Second)
			if s := r.Status().(Status); s.InFlight != (InFlight{}) {
				t.Fatalf("%+v", s.InFlight)
			}
		}
		if s := cloud.sock.Stats(); s.Pending != 0 || s.FramesOut != 1+640 {
			t.Errorf("%+v", s)
		}
	})
}
