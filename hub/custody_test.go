package hub

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network"
	"serve.zone/relay/hub/policy"
	"serve.zone/relay/hub/tunnel"
)

// R20: under load from three members, nothing of the old custody leaves after the
// drop has returned: not a packet, not a part of a handshake.
func TestR20_NothingLeavesAfterTheDrop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		c.must(netOf(1, 4, 0, 1, 1, 2, 2, 0, 0, 2))
		nodes := []*node{r.dial(0), r.dial(1), r.dial(2)}
		half, _ := r.dialIt(3, func(d *dialling) { d.stop = func(*node) bool { return false } })
		var dropped atomic.Bool
		var large, before atomic.Int64
		r.net.watch(func(from, _ netip.AddrPort, b []byte) bool {
			if from == r.Addr() && len(b) > largeDatagram {
				if dropped.Load() {
					large.Add(1)
				} else {
					before.Add(1)
				}
			}
			return false
		})
		stop := make(chan struct{})
		for i, n := range nodes {
			n.running.Go(func() {
				for k := 0; ; k++ {
					select {
					case <-stop:
						return
					default:
					}
					if n.conn.SendDatagram(packetOf(ip(i), ip((i+1)%3), 1000, k)) != nil {
						return
					}
					if k%20 == 0 {
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
		time.Sleep(200 * time.Millisecond)
		epoch := r.table.Load().Epoch()
		r.DropCustody(string(contract.RelayNodeForeign))
		dropped.Store(true)
		for i, n := range append(nodes, half) {
			if code := n.closed(); code != tunnel.CloseNotAdmitted {
				t.Errorf("node %d: closed with %v", i, code)
			}
		}
		close(stop)
		settle()
		if before.Load() < 100 || large.Load() != 0 {
			t.Errorf("%d datagrams before the drop, %d after it", before.Load(), large.Load())
		}
		if r.table.Load().Epoch() <= epoch {
			t.Error("the names of memberships are used again")
		}
		if s := r.status(); s.Network != nil || len(s.Members) != 0 || s.Attached || s.HalfOpen != 0 {
			t.Errorf("shown %+v", s)
		}
		if got := r.eventsOf(CustodyEnded); len(got) != 1 || !strings.Contains(got[0], "reason=relay-node-foreign") || !strings.Contains(got[0], "count=3") {
			t.Errorf("events %q", got)
		}
		if n, err := r.dialIt(0); err == nil || n.closed() != tunnel.CloseNotAdmitted {
			t.Errorf("a handshake after the drop: %v", err)
		}
		// O22b: an empty hub takes any authority.
		other := netOf(1, 1)
		other.AuthorityID = "authority:2"
		r.SessionRegistered(c.relay)
		c.must(other)
		r.dial(0, func(d *dialling) { d.authority = "authority:2" })
	})
}

// A network that is being taken over when custody ends is not, and its answer says
// that there is no session.
func TestANetworkUnderWayIsDroppedWithCustody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		compile, arrived, goOn := r.compile, make(chan struct{}), make(chan struct{})
		r.compile = func(prev *policy.Table, next contract.VPNNetwork, at network.Instant) (*policy.Table, error) {
			close(arrived)
			<-goOn
			return compile(prev, next, at)
		}
		answers := make(chan string, 2)
		go func() { answers <- c.apply(netOf(1, 1)) }()
		<-arrived
		go func() { answers <- c.apply(netOf(2, 1)) }() // waits to be judged
		synctest.Wait()
		dropped := make(chan struct{})
		go func() { r.DropCustody("relay-node-unknown"); close(dropped) }()
		for !r.dropping() {
			runtime.Gosched() // it waits for a lock, which fake time does not see
		}
		close(goOn)
		<-dropped
		for range 2 {
			if got := <-answers; !strings.Contains(got, string(contract.RelayNotReady)) {
				t.Errorf("answered %s", got)
			}
		}
		if r.status().Network != nil {
			t.Error("a network of the old custody is held")
		}
	})
}

// Networks that wait to be judged are bounded: the next one is refused by name, and
// those that wait are taken over in the order in which they came.
func TestNetworksThatWaitAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		compile, goOn := r.compile, make(chan struct{})
		r.compile = func(prev *policy.Table, next contract.VPNNetwork, at network.Instant) (*policy.Table, error) {
			<-goOn
			return compile(prev, next, at)
		}
		const under = 1 // is being judged
		answers := make(chan string, under+maxPushes)
		for n := range under + maxPushes {
			go func() { answers <- c.apply(netOf(int64(n+1), 1)) }()
			synctest.Wait() // so that they come in this order
		}
		if got := c.apply(netOf(100, 1)); !strings.Contains(got, string(contract.RelayOverloaded)) {
			t.Errorf("one too many was answered %s", got)
		}
		close(goOn)
		for range under + maxPushes { // a revision that was judged behind a higher one is stale
			if got := <-answers; !strings.HasPrefix(got, "idle") {
				t.Errorf("answered %s", got)
			}
		}
	})
}

// A pull whose answer comes after the end of custody takes nothing over.
func TestAPullThatEndsAfterCustodyTakesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		x := netOf(1, 1)
		c.answers(&x)
		c.hold = make(chan struct{}) // Cloudly does not answer yet
		pulled := make(chan error)
		go func() { pulled <- r.Pull(context.Background(), c.relay) }()
		synctest.Wait()
		r.DropCustody("relay-node-unknown")
		close(c.hold)
		if err := <-pulled; !errors.Is(err, errOver) || r.status().Network != nil {
			t.Errorf("pull: %v, %+v", err, r.status().Network)
		}
	})
}

// O23: where a network was pushed while a pull was on its way, null does not say whether
// Cloudly had none before that push or has none since. The pull is made again, and its
// second answer counts.
func TestAPullOfNoneAgainstAPush(t *testing.T) {
	for name, test := range map[string]struct {
		held  int64 // revision that the hub has before
		then  *contract.VPNNetwork
		calls int32
	}{
		"none before the push":   {1, new(netOf(2, 1)), 2},
		"none behind the push":   {1, nil, 2},
		"a push of what is held": {2, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				c := r.cloudly()
				c.must(netOf(test.held, 1))
				c.hold = make(chan struct{})
				pulled := make(chan error)
				go func() { pulled <- r.Pull(context.Background(), c.relay) }()
				synctest.Wait()
				applied := make(chan struct{}) // whose answer Cloudly reads behind its own
				go func() { defer close(applied); c.must(netOf(2, 1)) }()
				synctest.Wait()
				if s := r.status().Network; s == nil || s.Revision != 2 {
					t.Errorf("pushed: %+v", s)
				}
				c.answers(nil, test.then)
				close(c.hold)
				<-applied
				err := <-pulled
				if now := r.status().Network; err != nil || (now == nil) != (test.then == nil) {
					t.Errorf("pull: %v, %+v", err, now)
				}
				if n := c.pulls.Load(); n != test.calls {
					t.Errorf("asked %d times", n)
				}
			})
		})
	}
}

// R21: a pull that is made again takes nothing over in a custody that it was not made in.
func TestR21_APullThatIsMadeAgainKeepsToItsCustody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		c.hold = make(chan struct{})
		pulled := make(chan error)
		go func() { pulled <- r.Pull(context.Background(), c.relay) }()
		synctest.Wait()
		go c.ask(contract.ApplyVPNNetworkRequest{Network: netOf(2, 1)}.AppendJSON(nil))
		synctest.Wait()
		r.DropCustody("test")
		r.SessionRegistered(c.relay)
		c.answers(nil, new(netOf(2, 1)))
		close(c.hold)
		if err := <-pulled; !errors.Is(err, errOver) || r.status().Network != nil {
			t.Errorf("%v, %+v", err, r.status().Network)
		}
		settle()
	})
}

// From when Suspend returns nothing is carried, until the session stands again or
// nothing has followed.
func TestSuspendKeepsPacketsBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		c.must(netOf(1, 2, 0, 1))
		other := r.connect()
		a, b := r.dial(0), r.dial(1)
		passes := func() bool {
			a.send(packetOf(ip(0), ip(1), 100, 1))
			settle()
			return len(b.take()) == 1
		}
		r.Suspend(other.relay)
		if !passes() {
			t.Error("a foreign socket suspended the hub")
		}
		r.Suspend(c.relay)
		if passes() || r.drops(policy.CustodySuspended) != 1 || !r.status().Suspended {
			t.Error("a packet passed a hub that was suspended")
		}
		r.SessionRegistered(c.relay)
		if !passes() {
			t.Error("a registration did not lift it")
		}
		r.Suspend(c.relay)
		time.Sleep(suspendWait)
		if !passes() {
			t.Error("it did not end by itself")
		}
		r.SessionLost()
		r.Suspend(other.relay)
		if passes() {
			t.Error("in an outage any socket may end custody")
		}
	})
}

// R25, B094: for a day without Cloudly everything goes on.
func TestB094_ADayWithoutCloudly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		x := netOf(1, 2, 0, 1)
		for i := range x.Nodes {
			x.Nodes[i].ExpiresAt += 48 * time.Hour.Milliseconds()
		}
		c.must(x)
		a, b := r.dial(0), r.dial(1)
		r.SessionLost()
		for hour := range 24 {
			time.Sleep(time.Hour)
			a.send(packetOf(ip(0), ip(1), 100, hour))
			settle()
			if got := numbers(b.take()); len(got) != 1 || got[0] != hour {
				t.Fatalf("hour %d: %v", hour, got)
			}
		}
	})
}

// A drain tells every member when to dial again, refuses new ones, and ends within a
// second.
func TestDrainSaysGoodbye(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cloudly().must(netOf(1, 3, 0, 1))
		a, b := r.dial(0), r.dial(1)
		r.Quiesce()
		a.send(packetOf(ip(0), ip(1), 100, 1))
		settle()
		if len(b.take()) != 1 {
			t.Error("a hub that is quiet carries nothing")
		}
		if _, err := r.dialIt(2); err == nil {
			t.Error("a handshake succeeded in a drain")
		}
		begun := time.Now()
		if err := r.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it took %v", took)
		}
		for _, n := range []*node{a, b} {
			if code := n.closed(); code != tunnel.CloseDraining {
				t.Errorf("closed with %v", code)
			}
			n.mu.Lock()
			last, ok := n.messages[len(n.messages)-1].(tunnel.Close)
			n.mu.Unlock()
			if !ok || last.Code != tunnel.CloseDraining || last.RetryAfter != retryAfter {
				t.Errorf("told %+v", last)
			}
		}
		r.stop()
	})
}
