package appliance

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/forward"
	"serve.zone/relay/listener"
	"serve.zone/relay/simulate"
)

// silence is how long nothing may be heard of a peer (contract §14): three pings.
const silence = 60 * time.Second

// pingEvery is how long before the line went silent its peer may have been heard
// last: whoever is to be waiting when the silence ends, asks that much earlier.
const pingEvery = 20 * time.Second

// B007, B010, B023: the line to Cloudly goes silent without a word. Within the
// silence that a peer has, the relay says that it is not ready, who waits for an
// answer is told by name, and then it and its nodes are back by themselves, the
// nodes one by one.
func TestB007_B010_B023_CloudlyGoesSilent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		up := newLines()
		r := newRig(t, long(up))
		r.registered(0)
		f := r.fleet(3)
		time.Sleep(time.Minute)
		up.unplug()
		began := time.Now()
		time.Sleep(silence - pingEvery - 2*time.Second)
		waiting := make(chan error, 1)
		go func() { waiting <- f.report(t, f.nodes[0], f.ids[0]) }()
		if told, after := toldOf(<-waiting), time.Since(began); told != string(contract.RelayNotReady) || after > silence {
			t.Errorf("a report in flight met %q after %s", told, after)
		}
		synctest.Wait()
		if s := r.upwards(); s.Registered || s.LastTrouble != "socket-lost" {
			t.Errorf("the status still tells of a session: %+v", s)
		}
		if status, body := r.get("/readyz"); status != 503 {
			t.Errorf("ready: %d %s", status, body)
		}
		f.wantRegistered(time.Second + allBack)
		if status, body := r.get("/readyz"); status != 200 {
			t.Errorf("back, and ready: %d %s", status, body)
		}
		f.wantBooks(t)
		f.wantPeace()
	})
}

// B010, B023: the line to a node goes silent without a word. The node is not shown as
// carried any longer than the silence that a peer has, and who pushes to it is told by
// name.
func TestB010_B023_ANodeGoesSilent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, long(newLines()))
		r.registered(0)
		f := r.fleet(2)
		lost := newLines()
		f.join("node-lost", func(c *simulate.PalletConfig) {
			c.Dial, c.FirstBackoff, c.LastBackoff = lost.through(r.net.dial), time.Hour, time.Hour
		})
		f.wantRegistered(time.Minute)
		time.Sleep(time.Minute)
		lost.unplug()
		began := time.Now()
		time.Sleep(silence - pingEvery - 2*time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), contract.ForwardTimeout)
		defer cancel()
		_, err := r.cloudly.CallNode(ctx, "node-lost", "applyRuntimeAssignment", []byte(`{}`))
		if told, after := toldOf(err), time.Since(began); told != string(contract.RelayNodeNotCarried) || after > silence {
			t.Errorf("a push in flight met %q after %s", told, after)
		}
		synctest.Wait()
		if _, ok := r.relay.forward.Binding("node-lost"); ok || len(r.carries().Nodes) != 2 {
			t.Errorf("it is still shown: %+v", r.carries().Nodes)
		}
		time.Sleep(10 * time.Second) // the goodbye that nobody hears
		if s := r.relay.listener.Status().(listener.Status); s.Sockets.Open != 2 {
			t.Errorf("%d sockets hold a place", s.Sockets.Open)
		}
		if _, err := r.cloudly.CallNode(r.soon(), "node-lost", "applyRuntimeAssignment", []byte(`{}`)); toldOf(err) != string(contract.RelayNodeNotCarried) {
			t.Errorf("a push after that met %v", err)
		}
	})
}

// B017: a node that was unplugged comes back five seconds later, as another start
// of its process, and wins: it is registered, and pushes reach it. The ghost is
// gone at once.
func TestB017_AGhostDoesNotKeepItsNodeAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, long(newLines()))
		r.registered(0)
		f := r.fleet(1)
		own := newLines()
		p := f.join("node-ghost", func(c *simulate.PalletConfig) {
			c.Dial, c.FirstBackoff = own.through(r.net.dial), 5*time.Second
			c.Random = func() float64 { return 1 - 1e-9 }
		})
		f.wantRegistered(time.Minute)
		time.Sleep(time.Minute)
		ghost, _ := r.relay.forward.Binding("node-ghost")
		own.unplug()
		p.Restart()
		if _, err := p.WaitRegistered(r.soon(), 1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		held, _ := r.relay.forward.Binding("node-ghost")
		if binding, _ := p.Binding(); string(held.Session.Received) != string(binding.Received) || held.Socket == ghost.Socket || ghost.Socket.Err() == nil {
			t.Error("the ghost holds the node's place")
		}
		if err := f.push("node-ghost"); err != nil {
			t.Errorf("a push met %v", err)
		}
		if n := r.carries().Nodes[1]; n.ID != "node-ghost" || n.Moves != 1 {
			t.Errorf("the status does not tell of the move: %+v", n)
		}
		time.Sleep(10 * time.Second) // closing handshakes
		if s := r.relay.listener.Status().(listener.Status); s.Sockets.Open != 2 {
			t.Errorf("%d sockets hold a place", s.Sockets.Open)
		}
		f.wantRegistered(time.Second)
		f.wantPeace()
	})
}

// B008: one node's report takes its time while the relay drains. The others are
// told to go elsewhere meanwhile, and do not wait for it.
func TestB008_OneThatIsBusyKeepsNobodyFromGoing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, long(newLines()))
		r.registered(0)
		f := r.fleet(16)
		r.cloudly.Script(reported, simulate.Late(5*time.Second))
		waiting := make(chan error, 1)
		go func() { waiting <- f.report(t, f.nodes[0], f.ids[0]) }()
		synctest.Wait()
		began := time.Now()
		r.stop()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		gone := r.events(listener.EventSocketClosed)
		if left := r.carries().Nodes; len(gone) != 15 || len(left) != 1 || left[0].ID != f.ids[0] {
			t.Errorf("after 3 s %d sockets were closed; %d nodes are left", len(gone), len(left))
		}
		for _, e := range gone {
			if said := saidBy(e); said["closeCode"] != "1012" {
				t.Errorf("%s was closed with %s", said["node"], said["closeCode"])
			}
		}
		if err := <-waiting; err != nil || time.Since(began) < 5*time.Second {
			t.Errorf("the report met %v after %s", err, time.Since(began))
		}
		if err := r.halt(); err != nil || time.Since(began) > drainWait {
			t.Errorf("the relay ended after %s: %v", time.Since(began), err)
		}
		if all := r.events(forward.NodeUnbound); len(all) != 16 {
			t.Errorf("%d of 16 nodes were let go", len(all))
		}
		f.wantPeace()
	})
}
