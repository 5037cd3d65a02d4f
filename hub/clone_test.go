package hub

import (
	"strings"
	"testing"
	"time"

	realnode "serve.zone/relay/hub/node"
)

// namedIn is within which time a key is named that two of the relay's own nodes use: each of
// them waits for 30 s at most before it dials again for the first time (docs/tunnel.md,
// section 10).
const namedIn = 65 * time.Second

// up reports whether a node has the place of its member.
func (d *dialler) up() bool {
	return d.client.Status().State == realnode.StateUp && strings.HasPrefix(d.r.member(d.i).Session.Address, d.at+":")
}

// newLoneNode makes a hub whose one member is there for a day, and runs it.
func newLoneNode(t *testing.T) (*rig, *dialler) {
	t.Helper()
	r := newRig(t)
	x := netOf(1, 1)
	x.Nodes[0].ExpiresAt += 24 * time.Hour.Milliseconds()
	r.cloudly().must(x)
	a := r.runs(0)
	a.comesUp(time.Second)
	return r, a
}

// Two machines with one credential that run the relay's own node leave the place to each
// other at a slow pace, with tunnels that stand for long between. The key is named all the
// same, once, and for as long as both run; when one stops the other one has the place.
func TestACloneOfTheRelaysOwnNodeIsNamed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, a := newLoneNode(t)
		b := r.runsAt(0, "198.51.100.200")
		r.until("the key is named", namedIn, func() bool { return len(r.eventsOf(DuplicateKey)) == 1 })
		if m := r.member(0); !m.Alternating || m.Sessions != 1+mostChanges {
			t.Errorf("named at %+v", m)
		}
		time.Sleep(time.Hour)
		// Each waits for 2.5 min at least, once it has waited some times.
		if m := r.member(0); m.Sessions > 60 || !m.Alternating || len(r.eventsOf(DuplicateKey)) != 1 {
			t.Errorf("an hour later %+v, events %q", m, r.eventsOf(DuplicateKey))
		}
		a.stop()
		r.until("the other one has the place", 5*time.Minute+5*time.Second, func() bool { return r.member(0).Session != nil && b.up() })
		before := r.member(0).Sessions
		time.Sleep(time.Hour)
		if m := r.member(0); !b.up() || m.Sessions != before || m.Alternating {
			t.Errorf("an hour behind the end of one: %+v", m)
		}
	})
}

// Whoever has stolen a key, and dials again at once whenever it loses the place, is named,
// and does not keep the honest node out.
func TestAThiefInHasteKeepsNobodyOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, a := newLoneNode(t)
		time.Sleep(time.Hour)
		dial := func() *node {
			n, err := r.dialIt(0, func(d *dialling) { d.from = "198.51.100.250:0" })
			if err != nil {
				return nil
			}
			return n
		}
		thief := dial()
		const looks = 6 * 60 * 4
		up := 0
		for range looks {
			if thief == nil || !thief.open() {
				thief = dial()
			}
			time.Sleep(15 * time.Second)
			if a.up() {
				up++
			}
		}
		if n := len(r.eventsOf(DuplicateKey)); n == 0 || up < looks/50 {
			t.Errorf("named %d times; the honest node was up at %d of %d looks", n, up, looks)
		}
	})
}

// A node that is killed without a word and started again, quickly or slowly, from one address
// or from others, is one node: each start gets the place, and the key is not named.
func TestARestartLoopIsNoClone(t *testing.T) {
	for name, each := range map[string]time.Duration{"every three seconds": 3 * time.Second, "every 25 seconds": 25 * time.Second} {
		for place, from := range map[string]func(n int) string{
			"one address": func(int) string { return "198.51.100.9:0" },
			"another":     func(n int) string { return packetAddress(n) },
		} {
			t.Run(name+", "+place, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					r := newRig(t)
					r.cloudly().must(netOf(1, 2, 0, 1, 1, 0))
					peer := r.dial(1)
					const starts = 30
					for start := range starts {
						begun := time.Now()
						n := r.dial(0, func(d *dialling) { d.from = from(start) })
						if took := time.Since(begun); took > answerWait+time.Second {
							t.Errorf("start %d took %v", start, took)
						}
						peer.send(packetOf(ip(1), ip(0), 100, start))
						settle()
						if len(n.take()) != 1 {
							t.Errorf("start %d gets no packets", start)
						}
						n.socket.Close() // nothing is heard of it any more
						time.Sleep(each - time.Since(begun))
					}
					m := r.member(0)
					if m.Sessions != starts || m.Alternating || len(r.eventsOf(DuplicateKey)) != 0 || r.handshakes(endHeld) != 0 {
						t.Errorf("%+v, events %q, %d were held", m, r.eventsOf(DuplicateKey), r.handshakes(endHeld))
					}
				})
			})
		}
	}
}

func packetAddress(n int) string { return "198.51.101." + string(rune('1'+n%9)) + ":0" }

// A node that is killed while the hub asks the one before, and started again, gets the place:
// the newest one does.
func TestTheNewestOfThoseThatAskGetsThePlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cloudly().must(netOf(1, 1))
		for range 2 {
			n := r.dial(0)
			n.socket.Close()
			time.Sleep(11 * time.Second)
		}
		n := r.dial(0) // the second change
		n.socket.Close()
		asks, err := r.dialIt(0)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		select {
		case <-asks.ready:
			t.Fatal("the one before was not asked: a wrong test")
		default:
		}
		asks.socket.Close()
		newest, err := r.dialIt(0)
		if err != nil {
			t.Fatal(err)
		}
		settle()
		if n := r.handshakes(endHeld); n != 1 {
			t.Errorf("%d wait no more when a newer one asks", n)
		}
		select {
		case <-newest.ready:
		case <-time.After(answerWait):
			t.Error("the newest one has not got the place")
		}
		if m := r.member(0); m.Sessions != 4 || r.handshakes(endHeld) != 1 || len(r.eventsOf(DuplicateKey)) != 0 {
			t.Errorf("%+v, %d were held", m, r.handshakes(endHeld))
		}
	})
}

// A node that is set up on another machine while the one before still runs for a while has
// moved: the key is not named, and the new one keeps the place.
func TestANodeThatMovesIsNoClone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cloudly().must(netOf(1, 1))
		a := r.runs(0)
		a.comesUp(time.Second)
		b := r.runsAt(0, "198.51.100.200")
		r.until("the older one has come back once", 35*time.Second, func() bool { return r.member(0).Sessions == 3 })
		a.stop()
		r.until("the new one has the place", 35*time.Second, func() bool { return r.member(0).Session != nil && b.up() })
		time.Sleep(30 * time.Minute)
		if m := r.member(0); m.Sessions != 4 || m.Alternating || len(r.eventsOf(DuplicateKey)) != 0 || !b.up() {
			t.Errorf("%+v, events %q", m, r.eventsOf(DuplicateKey))
		}
	})
}
