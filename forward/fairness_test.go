package forward

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"serve.zone/relay/contract"
)

// TestFloodOfOneNodeIsPassedByOthers: what waits for Cloudly waits by node, and
// the relay's own answers go before all of it.
func TestFloodOfOneNodeIsPassedByOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		a, sessionA := r.bound(cloud, "node-a")
		b, sessionB := r.bound(cloud, "node-b")
		cloud.gate.shut()
		for range 7 {
			a.send(report, body(sessionA, `"pad":"`+strings.Repeat("x", 1<<20)+`"`))
		}
		synctest.Wait()
		b.send(report, body(sessionB, `"of":"node-b"`))
		cloud.ws.Write(t.Context(), 1, []byte(`{"method":"nope","request":{},"requestInstanceId":"i","correlation":{"id":"own","phase":"request"}}`))
		synctest.Wait()
		cloud.gate.open()
		at := map[string]int{}
		for i := range 9 {
			f := cloud.recv()
			switch {
			case f.Correlation.ID == "own":
				refused(t, f, contract.RelayMethodNotForwarded)
				at["own"] = i
			case strings.Contains(string(f.Request), "node-b"):
				at["b"] = i
			}
		}
		// The frame that was on its way is not cut short.
		if at["own"] != 1 || at["b"] != 2 {
			t.Errorf("the relay's own answer came as frame %d, another node's as %d of 9", at["own"], at["b"])
		}
	})
}

// TestAnswersOfANodeKeepTheirPlaceAmongItsRequests on the way to Cloudly.
func TestAnswersOfANodeKeepTheirPlaceAmongItsRequests(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		var pushes []frame
		for range 5 {
			cloud.send("applyRuntimeAssignment", body(session, `"x":1`))
			pushes = append(pushes, node.recv())
		}
		cloud.gate.shut()
		for i, push := range pushes {
			node.send(report, body(session, fmt.Sprintf(`"n":"%d","pad":%q`, 2*i, strings.Repeat("x", 300<<10))))
			node.answer(push, fmt.Sprintf(`"response":{"n":"%d"}`, 2*i+1))
		}
		synctest.Wait()
		cloud.gate.open()
		for i := range 10 {
			f := cloud.recv()
			if want := fmt.Sprintf(`"n":"%d"`, i); !strings.Contains(string(f.Request)+string(f.Response), want) {
				t.Fatalf("frame %d is %.300s", i, f.text)
			}
		}
	})
}

// TestStrangersShareOneFlow: a socket that holds no binding may name any node, so
// what it names decides neither whose flow it fills nor how many shares of the
// socket to Cloudly strangers have.
func TestStrangersShareOneFlow(t *testing.T) {
	for name, named := range map[string]func(i int) string{
		"the node itself":       func(int) string { return "node-a" },
		"another node":          func(int) string { return "node-z" },
		"each a node of itself": func(i int) string { return fmt.Sprintf("node-%d", i) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				cloud := r.cloudly()
				a, session := r.bound(cloud, "node-a")
				r.stalled(cloud)
				for i := range 60 {
					stranger := r.dialNode()
					for range strangerRequests {
						stranger.send(register, fmt.Sprintf(`{"nodeId":%q,"pad":%q}`, named(i), strings.Repeat("x", 63<<10)))
					}
				}
				synctest.Wait()
				a.send(report, body(session, fmt.Sprintf(`"pad":%q`, strings.Repeat("x", 256<<10))))
				a.none() // it is not refused either
				cloud.gate.open()
				refused(t, cloud.recv(), contract.RelayMethodNotForwarded)
				at := 0
				for cloud.recv().Method != report {
					at++
				}
				// Equal shares: as many bytes of strangers as of the node, and the
				// frame that was on its way.
				if want := 256/64 + 1; at > want {
					t.Errorf("%d frames of strangers went before a node's report, want at most %d", at, want)
				}
			})
		})
	}
	if contract.IsNodeID(flowOfStrangers) {
		t.Errorf("%q may be a node's flow", flowOfStrangers)
	}
}

// TestOrderOfANodeThatRegistersTwice before it is bound: what it sends after an
// acceptance does not overtake a registration that waits among strangers'. When
// that has left, the node has its own flow.
func TestOrderOfANodeThatRegistersTwice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node := r.dialNode()
		strangers := func() {
			for i := range 3 {
				r.dialNode().send(register, fmt.Sprintf(`{"nodeId":"stranger-%d","pad":%q}`, i, strings.Repeat("x", 63<<10)))
			}
			synctest.Wait()
		}
		session := sessionOf("node-a", 1)
		node.send(register, registrationOf("node-a"))
		first := cloud.recv()
		r.stalled(cloud)
		strangers()
		node.send(register, registrationOf("node-a"))
		synctest.Wait()
		cloud.answer(first, accepted(session))
		if f := node.recv(); f.Error != nil {
			t.Fatalf("registration answered %s", f.text)
		}
		node.send(report, body(session, `"n":1`))
		node.send(register, registrationOf("node-a"))
		node.send(report, body(session, `"n":2`))
		synctest.Wait()
		cloud.gate.open()
		refused(t, cloud.recv(), contract.RelayMethodNotForwarded)
		order := ""
		for range 3 + 4 {
			if f := cloud.recv(); !strings.Contains(string(f.Request), "stranger-") {
				order += f.Method + " "
			}
		}
		if want := strings.Repeat(register+" "+report+" ", 2); order != want {
			t.Errorf("sent on in the order %s, want %s", order, want)
		}

		r.stalled(cloud)
		strangers()
		node.send(report, body(session, `"n":3`))
		synctest.Wait()
		cloud.gate.open()
		refused(t, cloud.recv(), contract.RelayMethodNotForwarded)
		if f := cloud.recv(); f.Method != report { // one may have been on its way
			if f = cloud.recv(); f.Method != report {
				t.Errorf("a node's report waits behind strangers: %.100s", f.text)
			}
		}
	})
}
