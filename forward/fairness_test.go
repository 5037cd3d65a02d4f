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
