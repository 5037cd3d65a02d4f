package forward

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// stalled has Cloudly read nothing more, with the writer of its socket in a frame
// of the relay's own.
func (r *rig) stalled(cloud *wire) {
	r.t.Helper()
	cloud.gate.shut()
	cloud.send("nobodyServesThis", `{}`)
	refused(r.t, cloud.recv(), contract.RelayMethodNotForwarded) // a read was under way
	cloud.send("nobodyServesThis", `{}`)
	synctest.Wait()
	if s := cloud.sock.Stats(); s.FramesOut == 0 || s.QueuedOwn+s.QueuedFlow != 0 {
		r.t.Fatalf("%+v", s)
	}
}

// R20: nothing that nodes had queued reaches Cloudly after the drop, when its socket
// stays open, as after relay-cluster-not-enabled (design §4, O19): neither their
// requests nor their answers. What is the relay's own does.
func TestR20_NothingThatNodesHadQueuedReachesCloudly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		a, sessionA := r.bound(cloud, "node-a")
		b, sessionB := r.bound(cloud, "node-b")
		stranger := r.dialNode()
		a.send(report, body(sessionA, `"x":"before"`))
		before := cloud.recv()
		cloud.send("applyRuntimeAssignment", body(sessionB, `"x":1`))
		push := b.recv()
		synctest.Wait()

		r.seen.mu.Lock()
		r.seen.keep = true
		r.seen.mu.Unlock()
		r.stalled(cloud)
		for range 3 {
			a.send(report, body(sessionA, `"x":"`+strings.Repeat("queued", 20<<10)+`"`))
		}
		b.answer(push, `"response":{"x":"queued"}`)
		stranger.send(register, registrationOf("node-c"))
		synctest.Wait()
		if s := cloud.sock.Stats(); s.QueuedFlow < 300<<10 || s.Pending != 5 {
			t.Fatalf("%+v", s)
		}
		start := time.Now()
		r.DropCustody("relay-cluster-not-enabled")
		if s := cloud.sock.Stats(); s.QueuedFlow != 0 || s.Dropped != 5 || time.Since(start) != 0 {
			t.Errorf("after %s: %+v", time.Since(start), s)
		}
		synctest.Wait()
		if s := cloud.sock.Stats(); s.Pending != 0 {
			t.Errorf("%+v", s)
		}
		r.seen.mu.Lock()
		for _, memory := range r.seen.all {
			if bytes.Contains(memory, []byte("bearer-of-")) {
				t.Error("the registration that was dropped is still in memory")
			}
		}
		r.seen.mu.Unlock()

		cloud.gate.open()
		refused(t, cloud.recv(), contract.RelayMethodNotForwarded)
		unnamed(t, cloud.recv()) // in the place of the answer to the push
		cloud.none()
		cloud.answer(before, `"response":{"late":1}`)
		cloud.none()
		if s := cloud.sock.Stats(); s.Unmatched != 1 || cloud.sock.Err() != nil {
			t.Errorf("%+v, %v", s, cloud.sock.Err())
		}
		if s := r.Status().(Status); s.InFlight != (InFlight{}) || len(s.Nodes) != 0 {
			t.Errorf("%+v", s)
		}

		// Cloudly takes the relay again on that very socket.
		r.UpstreamRegistered(cloud.sock)
		again, session := r.bound(cloud, "node-a")
		again.send(report, body(session, `"x":"after"`))
		if f := cloud.recv(); !strings.Contains(f.text, "after") {
			t.Errorf("%s", f.text)
		}
	})
}

// R20: a node's frame that is half written when custody ends costs Cloudly's socket:
// nothing else keeps it from arriving.
func TestR20_ANodesFrameInAStalledWriteCostsTheSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		synctest.Wait()
		cloud.gate.shut()
		for range 2 {
			node.send(report, body(session, `"x":"`+strings.Repeat("queued", 20<<10)+`"`))
		}
		synctest.Wait()
		start := time.Now()
		r.DropCustody("relay-cluster-not-enabled")
		if d := time.Since(start); d > time.Second || cloud.sock.Err() == nil {
			t.Errorf("after %s the socket ended with %v", d, cloud.sock.Err())
		}
		var end *typedsocket.EndError
		if !errors.As(cloud.sock.Err(), &end) || end.Code != typedsocket.CloseCustodyEnded {
			t.Errorf("ended with %v", cloud.sock.Err())
		}
		cloud.gate.open()
		<-cloud.ended
		cloud.none()
	})
}

// TestCustodyDropReachesACloudlySocketThatIsClosing: the session was given up, and
// what nodes had queued is still being sent, when a refusal is heard that came
// before.
func TestCustodyDropReachesACloudlySocketThatIsClosing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		synctest.Wait()
		r.stalled(cloud)
		node.send(report, body(session, `"x":"queued"`))
		synctest.Wait()
		cloud.sock.Close(typedsocket.CloseNormal, "the relay leaves this socket")
		r.UpstreamLost()
		r.DropCustody("relay-node-unknown")
		cloud.gate.open()
		refused(t, cloud.recv(), contract.RelayMethodNotForwarded)
		if code := cloud.closed(); code != typedsocket.CloseNormal {
			t.Errorf("closed with %d", code)
		}
		cloud.none()
	})
}
