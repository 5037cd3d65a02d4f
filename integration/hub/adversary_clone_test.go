package hub_test

import (
	"fmt"
	"testing"
	"time"

	"serve.zone/relay/hub/tunnel"
)

const (
	// heldTo is how long the connection of a member stands at least whose key two ends
	// use (design §5.1). Of it the events may be told late on a busy machine.
	heldTo   = 5 * time.Second
	toldLate = time.Second
)

// Two ends with one key are named, once, and shown; one is changed for the other every five
// seconds at most, whoever is turned away is told why, and the one that stands is served.
func TestAClonedKeyIsNamedAndHeld(t *testing.T) {
	c := start(t)
	c.admit()
	c.admit()
	c.grant([2]int{1, 0})
	c.push()
	from := c.NextSeq()
	c.sends(c.dial(1), 2*time.Millisecond, stamped(1, 0))
	tallies := map[*peer]*tally{}
	clone := func() (*peer, error) {
		tally := newTally()
		p, err := c.dialIt(0, func(d *dialling) { d.got = tally.got })
		tallies[p] = tally
		if err == nil {
			err = p.waitSeated(c.Soon())
		}
		return p, err
	}
	stands, err := clone()
	if err != nil {
		t.Fatal(err)
	}
	const changes = 3
	turnedAway := 0
	for changed := 0; changed < changes; {
		p, err := clone()
		if err != nil {
			turnedAway++
			c.wantClosed("the end that was turned away", p, tunnel.CloseDuplicateKey)
			if !stands.open() {
				t.Fatal("the end that stands was closed")
			}
			c.wantMore("packets that reach the end that stands", tallies[stands], 1, 10)
			continue
		}
		changed++
		c.wantClosed("the end whose place was taken", stands, tunnel.CloseSuperseded)
		c.wantMore("packets that reach the end that took the place", tallies[p], 1, 10)
		stands = p
	}
	var at []time.Time
	named := 0
	for _, e := range c.Events(from) {
		switch {
		case e.Type == "hub-member-superseded" && e.Text("node") == name(0):
			at = append(at, e.Time)
		case e.Type == "hub-duplicate-key":
			if named++; e.Text("node") != name(0) || e.Text("address") == "" {
				t.Errorf("the event says %v", e.Fields)
			}
		}
	}
	if len(at) != changes || named != 1 {
		t.Fatalf("%d changes are told, the key is named %d times", len(at), named)
	}
	// The second change within ten seconds gives it away; from then on they are held.
	for n := 2; n < changes; n++ {
		if apart := at[n].Sub(at[n-1]); apart < heldTo-toldLate {
			t.Errorf("change %d came %s behind the one before", n+1, apart)
		}
	}
	if m := c.shownOf(0); !m.Alternating || m.Sessions != changes+1 || m.Session == nil {
		t.Errorf("shown %+v", m)
	}
	if n := c.handshakes("duplicate-key"); turnedAway == 0 || n != float64(turnedAway) {
		t.Errorf("%d were turned away, %s", turnedAway, fmt.Sprint(n, " are counted"))
	}
	if n := c.counted("relay_hub_ended_sessions_total", "reason", "superseded"); n != changes {
		t.Errorf("%v sessions are counted as superseded", n)
	}
}
