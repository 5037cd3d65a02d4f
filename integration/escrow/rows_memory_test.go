package escrow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// R55: what is held is memory. A relay that ends without Cloudly releases nothing when it
// runs again, before Cloudly is back and after; and it has written nothing anywhere.
func TestR55_MemoryOnly(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*cluster){
		"stopped": func(c *cluster) { c.Restart() },
		"killed":  func(c *cluster) { c.Kill(); c.Start() },
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			a := c.node("node-a")
			handed := c.take(run{node: "node-a", windows: []window{current, opening(margin)}})
			c.lose()
			c.waitPushes(a, 1)
			c.AssertNoMarkers()
			for _, name := range c.OpenFiles() {
				t.Errorf("the relay has %s open", name)
			}

			end(c)
			c.Eventually("the node's way back", func() error {
				for _, m := range a.Frames().Messages() {
					if m.Socket > 1 && m.Refused && strings.HasPrefix(m.ErrorText, "relay-not-ready: ") {
						return nil
					}
				}
				return errors.New("it was refused by nobody")
			})
			opened := time.UnixMilli(handed.Renewals[1].Renewal.DNS.NotBefore)
			c.Eventually("the opening of the second window", func() error {
				if left := time.Until(opened); left > 0 {
					return fmt.Errorf("%s are left", left)
				}
				return nil
			})
			if s := c.status(); s.Attached || s.Runs != 0 || s.HeldBytes != 0 {
				t.Errorf("the status shows %+v", s)
			}
			c.wantPushes(a, 1)
			c.AssertNoMarkers()

			b := c.StartNode("node-b")
			c.back()
			for _, p := range []*simulate.Pallet{a, b} {
				if _, err := p.WaitRegistered(c.Soon(), 0); err != nil {
					t.Fatal(err)
				}
			}
			c.admits(b, "node-b", 1)
			if s := c.status(); s.Runs != 0 || s.HeldBytes != 0 {
				t.Errorf("the status shows %+v", s)
			}
			c.take(run{node: "node-b", windows: grid(2)})
			c.lose()
			c.waitPushes(b, 1)
			c.wantPushes(a, 1)
			c.wantPushed(1)
		})
	}
}

// R48, contract §9.6: a session of another scope ends what is held for the node, which is
// then held for the new one alone.
func TestR48_AnotherScopeOfTheSessionDropsTheRun(t *testing.T) {
	c := start(t)
	h := c.byHand()
	h.register("node-a")
	b := c.node("node-b")
	for _, id := range []string{"node-a", "node-b"} {
		c.take(run{node: id, windows: grid(3)})
	}
	from := c.NextSeq()
	session := strings.Replace(string(h.session), `"default"`, `"other"`, 1)
	c.Cloudly.Script(registration, simulate.Step{Unjudged: true, Response: []byte(`{"session":` + session + `,"protocol":{}}`)})
	if _, err := h.ask(registration, c.registering("node-a")); err != nil {
		t.Fatal(err)
	}
	if told := c.WaitEvent("renewals-dropped", from); told.Text("node") != "node-a" {
		t.Errorf("the event says %v", told.Fields)
	}
	if s, n := c.status(), c.shown("node-a"); s.Runs != 1 || n.Held != 0 || !n.Reachable {
		t.Errorf("the status shows %+v", s)
	}
	c.refused("a run of the scope before", c.compose(run{node: "node-a", windows: grid(2)}).AppendJSON(nil), foreignSession, "")
	handed := c.take(run{node: "node-a", namespace: "other", first: 7, windows: grid(2)})
	c.lose()
	m := h.next()
	if want := `{"session":` + session + `,"signed":` + string(handed.Renewals[0].AppendJSON(nil)) + `}`; m.Method != contract.MethodApplyDNSLeaseRenewal || string(m.Body) != want {
		t.Errorf("pushed was %s\n%s, want\n%s", m.Method, m.Body, want)
	}
	c.waitPushes(b, 1)
	c.wantPushed(2)
}
