package escrow_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

// register is the relay's own registration.
const register = "registerClusterRelay"

// wantNothingHeld waits until the relay holds nothing for any node.
func (c *cluster) wantNothingHeld() {
	c.t.Helper()
	c.Within(releaseWait, "a status that shows nothing held", func() error {
		if s := c.status(); s.Attached || s.Runs+s.Renewals+s.HeldBytes+s.PushesRunning+len(s.Nodes) != 0 {
			return fmt.Errorf("it shows %+v", s)
		}
		return nil
	})
}

// R20 to R24: each of the five refusals drops what is held, at once and unreleased, though
// its windows are open and the session is over. What is held afterwards is held anew.
func TestR20_R24_HeldRunsGoWithCustody(t *testing.T) {
	t.Parallel()
	for _, row := range rig.CustodyEnds() {
		t.Run(string(row.Name), func(t *testing.T) {
			c := start(t)
			a, b := c.node("node-a"), c.node("node-b")
			socket, _ := a.Registered()
			c.take(run{node: "node-a", windows: grid(23)})
			c.take(run{node: "node-b", windows: grid(2)})
			from := c.NextSeq()
			row.Give(c.Rig)
			if row.Fenced {
				// What the node is told is not looked at: its answer and the end of its
				// socket race.
				a.Send(c.Soon(), report, []byte(`{}`))
			} else {
				c.RegisterAgain()
			}
			if row.Brief {
				// The session is back within moments: what the events say is what there is.
				c.waitBack()
			} else {
				c.wantNothingHeld()
			}
			if told := c.WaitEvent("renewals-custody-ended", from); told.Text("reason") != string(row.Name) || fmt.Sprint(told.Fields["count"]) != "2" {
				t.Errorf("the event says %v", told.Fields)
			}
			c.wantPushes(a)
			c.wantPushes(b)
			c.wantPushed(0)

			row.Restore(c.Rig)
			if !row.Brief {
				c.Eventually("a session to cloudly", func() error {
					if !c.status().Attached {
						return errors.New("there is none")
					}
					return nil
				})
			}
			for _, p := range []*simulate.Pallet{a, b} {
				if _, err := p.WaitRegistered(c.Soon(), socket); err != nil {
					t.Fatal(err)
				}
			}
			if s := c.status(); s.Runs != 0 || s.Renewals != 0 || s.HeldBytes != 0 {
				t.Errorf("after the return the status shows %+v", s)
			}
			c.take(run{node: "node-b", first: 7, windows: grid(2)})
			c.lose()
			c.waitPushes(b, 7)
			c.wantPushes(a)
			c.wantPushed(1)
		})
	}
}

// R21: custody ends without Cloudly as well, by the refusal of the registration with which
// it returns: what is held goes, with what is due to be pushed again.
func TestR21_CustodyEndsOnTheWayBack(t *testing.T) {
	c := start(t)
	a := c.node("node-a")
	a.ScriptAlways(applying, simulate.Refuse("not-today: x", nil))
	c.take(run{node: "node-a", windows: grid(3)})
	from := c.NextSeq()
	c.lose()
	c.waitPushes(a, 1)
	c.Cloudly.Script(register, simulate.RefuseNamed(contract.RelayNodeForeign, "it moved"))
	if err := c.Upstream.Resume(); err != nil {
		t.Fatal(err)
	}
	c.Signal(syscall.SIGHUP)
	if told := c.WaitEvent("renewals-custody-ended", from); told.Text("reason") != "relay-node-foreign" {
		t.Errorf("the event says %v", told.Fields)
	}
	c.wantNothingHeld()
	c.wantPushes(a, 1)
	c.wantPushed(1)
}

// R25: any other refusal keeps what is held. On a session that stands nothing is released;
// without one the release goes on, over the opening of a window.
func TestR25_AnotherRefusalKeepsTheRun(t *testing.T) {
	t.Parallel()
	unknown := simulate.Refuse("relay-not-verified: it could not be verified", []byte(`{"code":"relay-not-verified"}`))
	for name, step := range map[string]simulate.Step{
		"unknown name":     unknown,
		"within a text":    simulate.Refuse("refused: relay-node-foreign", nil),
		"protocol refusal": simulate.RefuseProtocol(contract.PeerBelowMinimum),
	} {
		t.Run(name+" on a session", func(t *testing.T) {
			c := start(t)
			a := c.node("node-a")
			c.take(run{node: "node-a", windows: grid(3)})
			c.Cloudly.Script(register, step)
			c.RegisterAgain()
			if err := c.Cloudly.WaitReceived(c.Soon(), register, 2); err != nil {
				t.Fatal(err)
			}
			c.reaches("node-a")
			if n := c.shown("node-a"); n.Held != 3 || !c.status().Attached {
				t.Errorf("the status shows %+v", n)
			}
			c.wantPushes(a)
			c.lose()
			c.waitPushes(a, 1)
			c.wantPushed(1)
		})
		t.Run(name+" without one", func(t *testing.T) {
			c := start(t)
			a := c.node("node-a")
			c.take(run{node: "node-a", windows: []window{current, opening(margin)}})
			c.Cloudly.ScriptAlways(register, step)
			c.Upstream.Cut()
			if err := c.Cloudly.WaitReceived(c.Soon(), register, 2); err != nil {
				t.Fatal(err)
			}
			c.waitPushes(a, 1, 2)
			c.waitAcknowledged("node-a", 2)
			if s := c.status(); s.Attached || s.Runs != 1 || s.Renewals != 2 {
				t.Errorf("the status shows %+v", s)
			}
			if dials := a.Dials(); dials != 1 {
				t.Errorf("the node dialled %d times", dials)
			}
			c.wantPushed(2)
		})
	}
}

// R48, contract §9.3: a hold on a socket of Cloudly's on which no registration of this
// relay stands is refused as one of any other connection is.
func TestR48_OnASocketThatIsNotRegistered(t *testing.T) {
	c := start(t)
	c.node("node-a")
	c.Cloudly.DisableRelay()
	c.RegisterAgain()
	c.wantNothingHeld()
	for what, x := range map[string]run{"a run": {node: "node-a", windows: grid(2)}, "nothing": {node: "node-a"}} {
		_, err := c.Cloudly.CallSocket(c.Soon(), c.socket, holding, c.compose(x).AppendJSON(nil))
		c.wantRefused(what, err, cloudlyOnly, "")
	}
	c.wantNothingHeld()
}
