package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network"
	"serve.zone/relay/hub/policy"
	"serve.zone/relay/hub/tunnel"
)

// R56: a hub starts empty and refuses every key; what it pulls is in force.
func TestR56_TheHubStartsEmptyAndPulls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		n, err := r.dialIt(0)
		if err == nil {
			t.Fatal("an empty hub took a node")
		}
		if code := n.closed(); code != tunnel.CloseNotAdmitted || r.handshakes(endNoNetwork) != 1 {
			t.Errorf("closed with %v, %d handshakes without a network", code, r.handshakes(endNoNetwork))
		}
		c := r.cloudly()
		if err := r.Pull(context.Background(), c.relay); err != nil || r.status().Network != nil {
			t.Fatalf("pull of none: %v, %+v", err, r.status().Network)
		}
		x := netOf(7, 2, 0, 1)
		c.answers(&x)
		if err := r.Pull(context.Background(), c.relay); err != nil {
			t.Fatal(err)
		}
		if s := r.status().Network; s == nil || s.Revision != 7 || s.AppliedRevision != 7 || s.State != "idle" || s.Origin != "pulled" {
			t.Fatalf("the status shows %+v", s)
		}
		a := r.dial(0)
		// O23: null is more recent than anything held.
		c.answers(nil)
		if err := r.Pull(context.Background(), c.relay); err != nil || r.status().Network != nil {
			t.Fatalf("pull of none: %v, %+v", err, r.status().Network)
		}
		if code := a.closed(); code != tunnel.CloseNotAdmitted {
			t.Errorf("closed with %v", code)
		}
		want := []string{"hub-network-applied outcome=pulled count=2 revision=7", "hub-network-emptied count=1 revision=7"}
		if got := r.eventsOf(NetworkApplied, NetworkEmptied); !equalSets(got, want) {
			t.Errorf("events %q", got)
		}
	})
}

// equalSets compares events whose fields may come in any order.
func equalSets(got, want []string) bool {
	norm := func(all []string) (out []string) {
		for _, s := range all {
			f := strings.Fields(s)
			slices.Sort(f)
			out = append(out, strings.Join(f, " "))
		}
		return out
	}
	return slices.Equal(norm(got), norm(want))
}

// R59, R60: a first network, a replay and a higher revision are answered idle; a lower
// or reused revision, another authority, a moved prefix and an invalid network are
// refused by name and change nothing.
func TestR59_R60_NetworksAreDecidedAndAnswered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		foreign := netOf(9, 2)
		foreign.AuthorityID = "authority:2"
		moved := netOf(9, 2)
		moved.ControlPrefix = "192.168.0.0/23"
		steps := []struct {
			name string
			x    contract.VPNNetwork
			want string
		}{
			{"the first", netOf(5, 2, 0, 1), "idle 5"},
			{"replay", netOf(5, 2, 0, 1), "idle 5"},
			{"lower", netOf(4, 2), "vpn-network-revision-stale"},
			{"reused", netOf(5, 2), "vpn-network-revision-stale"},
			{"foreign", foreign, "vpn-network-authority-foreign"},
			{"moved", moved, "vpn-network-authority-foreign"},
			{"next", netOf(6, 2), "idle 6"},
		}
		for _, step := range steps {
			if got := c.apply(step.x); !strings.Contains(got, step.want) {
				t.Errorf("%s: %s, want %s", step.name, got, step.want)
			}
		}
		if got := r.status().Network.Revision; got != 6 {
			t.Errorf("revision %d is in force", got)
		}
		body, err := c.ask([]byte(`{"network":{"authorityId":"a","controlPrefix":"192.168.0.0/31","revision":1,"nodes":[],"grants":[]}}`))
		if err == nil || !strings.Contains(err.Error(), "network.controlPrefix") || !strings.Contains(err.Error(), string(VPNNetworkInvalid)) {
			t.Errorf("an invalid network: %s, %v", body, err)
		}
	})
}

// R60: a network that cannot be taken over is answered failed, and the one before
// still relays.
func TestR60_AFailedApplyKeepsTheOldNetwork(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		c.must(netOf(1, 2, 0, 1))
		a, b := r.dial(0), r.dial(1)
		compile := r.compile
		r.compile = func(prev *policy.Table, next contract.VPNNetwork, at network.Instant) (*policy.Table, error) {
			if next.Revision == 2 {
				return nil, errors.New("forced")
			}
			return compile(prev, next, at)
		}
		if got := c.apply(netOf(2, 2)); got != "failed 1" {
			t.Errorf("answered %s", got)
		}
		if got := r.status().Network; got.State != "failed" || got.Revision != 1 {
			t.Errorf("shown %+v", got)
		}
		a.send(packetOf(ip(0), ip(1), 200, 1))
		settle()
		if got := numbers(b.take()); !slices.Equal(got, []int{1}) {
			t.Errorf("b got %v", got)
		}
		c.must(netOf(3, 2))
	})
}

// A request on another socket than the session's, and one after the session ended,
// change nothing.
func TestNetworksComeOverTheRegisteredSocketAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		other := r.connect()
		if got := other.apply(netOf(1, 1)); !strings.Contains(got, string(contract.RelayNotReady)) {
			t.Errorf("another socket: %s", got)
		}
		r.SessionLost()
		if got := c.apply(netOf(1, 1)); !strings.Contains(got, string(contract.RelayNotReady)) {
			t.Errorf("after the loss: %s", got)
		}
		r.SessionRegistered(c.relay)
		r.Quiesce()
		if got := c.apply(netOf(1, 1)); !strings.Contains(got, string(contract.RelayNotReady)) || r.status().Network != nil {
			t.Errorf("in a drain: %s", got)
		}
	})
}

// R66: twenty revisions under traffic lose no granted packet and no connection.
func TestR66_TwentyRevisionsLoseNoGrantedPacket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		c.must(netOf(1, 4, 0, 1))
		a, b := r.dial(0), r.dial(1)
		stop, sent := make(chan struct{}), make(chan int)
		go func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					sent <- n
					return
				case <-time.After(time.Millisecond):
					a.send(packetOf(ip(0), ip(1), 300+n%1100, n))
				}
			}
		}()
		for revision := int64(2); revision <= 21; revision++ {
			time.Sleep(7 * time.Millisecond)
			x := netOf(revision, 4, 0, 1, 2, 3, int(revision%2), 2)
			for i := range x.Nodes {
				x.Nodes[i].ExpiresAt += revision * 1000
			}
			c.must(x)
		}
		close(stop)
		n := <-sent
		settle()
		got := numbers(b.take())
		slices.Sort(got)
		want := make([]int, n)
		for i := range want {
			want[i] = i
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d of %d packets arrived", len(got), n)
		}
		if m := r.member(0); m.Sessions != 1 || len(m.Dropped) != 0 || !a.open() || !b.open() {
			t.Errorf("%+v", m)
		}
	})
}

// B092, B095: a grant taken and given a hundred times ends as it began, and without
// grants everything is denied.
func TestB092_B095_GrantsToggle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		c.must(netOf(1, 2))
		a, b := r.dial(0), r.dial(1)
		for i := range 100 {
			x := netOf(int64(2+i), 2)
			if i%2 == 0 {
				x = netOf(int64(2+i), 2, 0, 1)
			}
			if got := c.apply(x); got != fmt.Sprintf("idle %d", 2+i) {
				t.Fatalf("revision %d: %s", 2+i, got)
			}
			a.send(packetOf(ip(0), ip(1), 100, i))
			settle()
			if got := len(b.take()); got != 1-i%2 {
				t.Fatalf("revision %d: %d packets", 2+i, got)
			}
		}
	})
}

// R60: what QUIC still holds of a grant that was taken away leaves before the answer
// idle, never after; until then the answer is applying (design §5.4).
func TestR60_IdleIsAnsweredWhenNothingForbiddenCanLeave(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		c.must(netOf(1, 3, 0, 1, 2, 1))
		a, b, other := r.dial(0), r.dial(1), r.dial(2)
		deaf := filled(r, a, b)
		if r.drops(policy.QueueFull) == 0 {
			t.Fatal("the queue never filled: QUIC is not held back")
		}
		b.take()
		if got := c.apply(netOf(2, 3, 2, 1)); got != "applying 1" {
			t.Fatalf("answered %s", got)
		}
		if got := c.apply(netOf(2, 3, 2, 1)); got != "applying 1" {
			t.Errorf("a replay is answered %s", got)
		}
		deaf.heal()
		for r.status().Network.State != "idle" {
			time.Sleep(time.Millisecond)
		}
		settle()
		if got := deaf.lateOnes(); got != 0 {
			t.Errorf("%d forbidden datagrams left after idle", got)
		}
		other.send(packetOf(ip(2), ip(1), 1000, 1000))
		settle()
		if got := deaf.lateOnes(); got != 1 {
			t.Errorf("%d granted datagrams left", got)
		}
		if got := c.apply(netOf(2, 3, 2, 1)); got != "idle 2" {
			t.Errorf("answered %s in the end", got)
		}
		if !b.open() {
			t.Error("the connection did not survive")
		}
	})
}

// R60: where QUIC sends what it holds of a grant that was taken away a few datagrams at
// a time, idle is answered after the last of them, never before.
func TestR60_IdleIsNotAnsweredWhileForbiddenDatagramsDrip(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		c.must(netOf(1, 3, 0, 1, 2, 1))
		a, b := r.dial(0), r.dial(1)
		deaf := filled(r, a, b)
		if got := c.apply(netOf(2, 3, 2, 1)); got != "applying 1" {
			t.Fatalf("answered %s", got)
		}
		deaf.drip()
		before := deaf.all()
		for begun := time.Now(); r.status().Network.State != "idle"; {
			time.Sleep(10 * time.Millisecond)
			if time.Since(begun) > time.Minute {
				t.Fatal("it never became idle")
			}
		}
		time.Sleep(time.Minute)
		if dripped := deaf.all() - before; dripped < 30 || deaf.lateOnes() != 0 || !b.open() {
			t.Errorf("%d datagrams dripped, %d of them after idle; open: %v", dripped, deaf.lateOnes(), b.open())
		}
	})
}

// A member that does not take what QUIC holds for it keeps an apply at applying for
// so long, and no longer.
func TestApplyingEndsWithAMemberThatTakesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		c.must(netOf(1, 2, 0, 1))
		a, b := r.dial(0), r.dial(1)
		filled(r, a, b)
		if got := c.apply(netOf(2, 2)); got != "applying 1" {
			t.Fatalf("answered %s", got)
		}
		time.Sleep(fenceWait - time.Second)
		if got := c.apply(netOf(2, 2)); got != "applying 1" {
			t.Errorf("answered %s too early", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := c.apply(netOf(2, 2)); got != "idle 2" || r.metrics.ended.Of(endedStuck).Value() != 1 || r.member(1).Session != nil {
			t.Errorf("answered %s, %d stuck", got, r.metrics.ended.Of(endedStuck).Value())
		}
	})
}
