package hub

import (
	"context"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network/networktest"
	"serve.zone/relay/hub/tunnel"
)

// R65, R66: however often networks come, sessions whose time is over are closed, by the
// clock or by such a network, and the others are tended.
func TestR65_R66_RevisionsKeepTheWatchFromNothing(t *testing.T) {
	for name, test := range map[string]struct {
		over  func(r *rig)
		until int64
		most  time.Duration
	}{
		"by the clock":  {func(r *rig) { r.step(24 * time.Hour) }, networktest.Lifetime, lookEvery},
		"by a revision": {func(*rig) {}, 0, lookEvery / 4},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				c := r.cloudly()
				c.must(netOf(1, 2, 0, 1))
				a := r.dial(0)
				time.Sleep(lookEvery * 3 / 2)
				test.over(r)
				begun := time.Now()
				for rev := int64(2); a.open() && time.Since(begun) < 30*time.Second; rev++ {
					x := netOf(rev, 2, 0, 1)
					x.Nodes[0].ExpiresAt = networktest.Admitted + test.until
					c.must(x)
					settle()
					time.Sleep(50 * time.Millisecond)
				}
				if took := time.Since(begun); took > test.most+100*time.Millisecond {
					t.Errorf("the session stood for %v", took)
				}
			})
		})
	}
	t.Run("tended", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			c := r.cloudly()
			c.must(netOf(1, 2, 0, 1))
			b := r.dial(1)
			b.conn.SendDatagram([]byte{1, 0, 0, 1, 0, 100, 0, 0, 9}) // the first part of two
			settle()
			for rev := int64(2); rev < 10; rev++ {
				time.Sleep(lookEvery / 2)
				c.must(netOf(rev, 2, 0, 1))
			}
			if s := r.member(1).Session; s.LostParts != 1 {
				t.Errorf("a part waits for ever: %+v", s)
			}
		})
	})
}

// R65: the wall clock is set back an hour, and a member's time ends. Neither a network that
// renews it by seconds, nor one that leaves it out and one that names it again, lets it
// relay beyond the last expiresAt.
func TestR65_AClockThatIsSetBackExtendsNothing(t *testing.T) {
	const first, last = 2000, 5000
	for name, between := range map[string]func(r *rig, c *cloud){
		"renewed after its end": func(*rig, *cloud) { time.Sleep((first + 1000) * time.Millisecond) },
		"left out, named again": func(_ *rig, c *cloud) { c.must(without(netOf(2, 2), 0)) },
		"none, and one again":   func(r *rig, c *cloud) { c.answers(nil); r.Pull(context.Background(), c.relay) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				c := r.cloudly()
				x := netOf(1, 2, 0, 1)
				x.Nodes[0].ExpiresAt = networktest.Admitted + first
				c.must(x)
				r.step(-time.Hour)
				between(r, c)
				x = netOf(3, 2, 0, 1)
				x.Nodes[0].ExpiresAt = networktest.Admitted + last
				c.must(x)
				a, b := r.dial(0), r.dial(1)
				passes := func() bool {
					a.send(packetOf(ip(0), ip(1), 100, 1))
					settle()
					return len(b.take()) == 1
				}
				if !passes() {
					t.Error("nothing passes before its end")
				}
				time.Sleep(last * time.Millisecond)
				if passes() || !r.member(0).Expired {
					t.Errorf("it relays beyond its end: %+v", r.member(0))
				}
			})
		})
	}
}

// R65: a registration takes the wall clock for right, as it is then (O36). A clock that had
// run ahead shortens no membership from then on.
func TestR65_ARegistrationTrustsTheClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		x := netOf(1, 2, 0, 1)
		x.Nodes[1].ExpiresAt += time.Hour.Milliseconds()
		r.step(time.Hour / 2)
		c.must(x)
		r.step(-time.Hour / 2)
		for rev, want := range []float64{0.5, 1} { // hours
			if rev > 0 {
				r.SessionRegistered(c.relay)
			}
			x.Revision++
			x.Nodes[0].NodeID = []string{"node-0", "node-00"}[rev] // a member that is new
			c.must(x)
			got := r.table.Load().MemberByKey(contract.NoiseKey(keyOf(0).Public())).Deadline.Remaining(r.now())
			if want := time.Duration(want * float64(time.Hour)); (got - want).Abs() > time.Second {
				t.Errorf("registered again %d times: %v are left, want %v", rev, got, want)
			}
		}
	})
}

// R65: a clock that ran ahead while one network came, and was put right, keeps nobody out
// whom Cloudly renews, whatever it has granted to others.
func TestR65_AClockThatRanAheadKeepsNobodyOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		grants := func(rev, until int64) {
			x := netOf(rev, 2, 0, 1)
			x.Nodes[0].ExpiresAt = networktest.Admitted + until
			x.Nodes[1].ExpiresAt = networktest.Admitted + 24*time.Hour.Milliseconds()
			c.must(x)
		}
		grants(1, time.Hour.Milliseconds())
		r.step(2 * time.Hour)
		grants(2, time.Hour.Milliseconds())
		time.Sleep(2 * time.Second)
		r.step(-2 * time.Hour)
		time.Sleep(30 * time.Minute)
		grants(3, 2*time.Hour.Milliseconds())
		if r.member(0).Expired {
			t.Error("it is kept out though Cloudly has renewed it")
		}
	})
}

// Who is a member says the network in force when its message has come, not the one when it
// began to come.
func TestAMemberThatIsNamedWhileItsMessageComes(t *testing.T) {
	foreign := netOf(1, 1)
	foreign.AuthorityID = "authority:2"
	for name, test := range map[string]struct {
		next contract.VPNNetwork
		want tunnel.CloseCode
	}{
		"named":               {netOf(2, 2), 0},
		"left out":            {without(netOf(2, 2), 0), tunnel.CloseNotAdmitted},
		"another authority's": {foreign, tunnel.CloseNotAdmitted},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				c := r.cloudly()
				who := 1
				if test.want != 0 {
					who = 0
				}
				c.must(netOf(1, 1))
				n, _ := r.dialIt(who, func(d *dialling) { d.stop = func(*node) bool { return false } })
				in := tunnel.Initiator{Static: keyOf(who), Hub: r.key.Public(), AuthorityID: "authority:1",
					Offer: tunnel.Offer{Versions: []uint8{tunnel.Version}, InnerMTU: 1500, Lanes: []tunnel.Lane{tunnel.LaneDatagram}}}
				_, err := in.Handshake(&slow{n.stream, func() {
					settle()
					if test.next.AuthorityID != "authority:1" {
						c.answers(nil)
						r.Pull(context.Background(), c.relay)
					}
					c.must(test.next)
				}}, tunnel.ExporterOf(n.conn))
				if (err == nil) != (test.want == 0) {
					t.Errorf("%v", err)
				}
				if test.want != 0 && n.closed() != test.want {
					t.Errorf("closed with %v", n.closed())
				}
			})
		})
	}
}

// slow is a stream on which something happens behind the first byte.
type slow struct {
	*quic.Stream
	between func()
}

func (s *slow) Write(b []byte) (int, error) {
	if s.between == nil {
		return s.Stream.Write(b)
	}
	n, err := s.Stream.Write(b[:1])
	if err == nil {
		s.between()
		s.between = nil
		var rest int
		rest, err = s.Stream.Write(b[1:])
		n += rest
	}
	return n, err
}

// docs/tunnel.md §8: close is the last frame of its sender, in a drain too, whatever is due
// to be told meanwhile.
func TestNothingIsToldBehindClose(t *testing.T) {
	for shift := range 10 {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			r.cloudly().must(netOf(1, 2, 0, 1))
			b := r.dial(1)
			s := r.routes[r.table.Load().MemberByKey(contract.NoiseKey(keyOf(1).Public())).ID.Slot()].Load()
			time.Sleep(time.Duration(shift) * lookEvery / 10)
			s.size++ // as when its path has another size since the last look
			r.Drain(context.Background())
			settle()
			b.mu.Lock()
			defer b.mu.Unlock()
			last, _ := b.messages[len(b.messages)-1].(tunnel.Close)
			if last.Code != tunnel.CloseDraining || tunnel.CloseCodeFor(b.broken) == tunnel.CloseProtocol {
				t.Errorf("%v, then %v", b.messages, b.broken)
			}
		})
	}
}
