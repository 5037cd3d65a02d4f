package escrow_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"serve.zone/relay/simulate"
)

// R50: nothing is released while Cloudly is there, also when a window opens; once the
// socket is cut, the release comes within a second.
func TestR50_ReleasedOnlyWithoutCloudly(t *testing.T) {
	c := start(t)
	a := c.node("node-a")
	c.take(run{node: "node-a", windows: []window{current, opening(time.Second)}})
	c.waitCurrent("node-a", 2)
	c.reaches("node-a")
	c.wantPushes(a)
	c.wantPushed(0)
	if s := c.status(); !s.Attached || s.Nodes[0].Released != nil {
		t.Errorf("the status shows %+v", s)
	}
	from := c.NextSeq()
	cut := time.Now()
	c.lose()
	c.waitPushes(a, 2)
	if took := c.pushes(a)[0].At.Sub(cut); took > releaseWait {
		t.Errorf("the release took %s", took)
	}
	c.waitAcknowledged("node-a", 2)
	if s := c.status(); s.Attached || s.Nodes[0].Released == nil || s.Nodes[0].Released.Sequence != 2 {
		t.Errorf("the status shows %+v", s)
	}
	for _, event := range []string{"renewals-release-begun", "renewal-released", "renewal-acknowledged"} {
		c.WaitEvent(event, from)
	}
	c.wantPushed(1)
}

// R50, O8: a socket to Cloudly is no session before the registration on it was accepted: the
// release goes on meanwhile, over the opening of a window.
func TestR50_O8_ASocketIsNoSession(t *testing.T) {
	c := start(t)
	a := c.node("node-a")
	c.Cloudly.ScriptAlways("registerClusterRelay", simulate.Ignore())
	c.take(run{node: "node-a", windows: []window{current, opening(margin)}})
	c.Upstream.Cut()
	c.waitPushes(a, 1)
	c.Eventually("a socket that waits for its registration", func() error {
		sockets := c.Cloudly.Sockets()
		if len(sockets) != 1 || sockets[0].Number == c.socket || !sockets[0].Authenticated {
			return fmt.Errorf("cloudly has %+v", sockets)
		}
		return nil
	})
	c.waitPushes(a, 1, 2)
	if sockets := c.Cloudly.Sockets(); len(sockets) != 1 || !sockets[0].Authenticated || sockets[0].Registered {
		t.Errorf("cloudly has %+v", sockets)
	}
	c.waitAcknowledged("node-a", 2)
	c.Cloudly.ClearScript("registerClusterRelay")
}

// R51: of each window one push, not before it opens, of those that are open the one with
// the highest sequence, and none of what opens later.
func TestR51_EachWindowOnceAndInTime(t *testing.T) {
	// The relay looks around every second from the loss on; a window that opens between two
	// such looks shows one that is counted as open too early.
	const between = 500 * time.Millisecond
	c := start(t)
	a := c.node("node-a")
	c.take(run{node: "node-a", windows: []window{
		{-10 * time.Minute, -10 * time.Minute, 4 * time.Minute}, {-5 * time.Minute, -5 * time.Minute, 9 * time.Minute}, // both are open
		opening(margin + between), opening(margin + between + 2*time.Second), opening(10 * time.Minute), opening(20 * time.Minute),
	}})
	if n := c.shown("node-a"); n.Current == nil || n.Current.Sequence != 2 || n.NextSlot.Before(time.Now()) {
		t.Errorf("the status shows %+v", n)
	}
	c.lose()
	c.waitPushes(a, 2)
	c.waitPushes(a, 2, 3, 4)
	c.waitAcknowledged("node-a", 4)
	c.wantPushes(a, 2, 3, 4)
	c.wantPushed(3)
	for _, j := range a.Judgements() {
		if j.Admission != simulate.Admitted {
			t.Errorf("the node judged renewal %d: %v", j.Renewal.Sequence, j.Refusal)
		}
	}
	if n := c.shown("node-a"); n.Held != 6 || n.Current.Sequence != 4 {
		t.Errorf("the status shows %+v", n)
	}
}

// R51: windows open in the order of their notBefore, which need not be that of their
// sequences: a lower one that opens behind a higher one is not pushed.
func TestR51_TheHighestThatIsOpen(t *testing.T) {
	c := start(t)
	a := c.node("node-a")
	c.take(run{node: "node-a", windows: []window{current, {0, margin + time.Second, 11 * time.Minute}, {0, margin, 12 * time.Minute}, opening(margin + 2*time.Second)}})
	c.lose()
	c.waitPushes(a, 1)
	c.waitPushes(a, 1, 3, 4)
	c.wantPushed(3)
}

// R51: what has ended is not pushed: neither what ended before the session was lost, nor
// what a node refused and is due again behind its end.
func TestR51_NeverAfterItsEnd(t *testing.T) {
	c := start(t)
	a, b := c.node("node-a"), c.node("node-b")
	a.Script(applying, simulate.Refuse("not-today: x", nil))
	soon := window{-time.Minute, -time.Minute, time.Second}
	c.take(run{node: "node-b", windows: []window{soon, opening(margin + time.Second)}})
	c.Eventually("the end of a window", func() error {
		if n := c.shown("node-b"); n.Held != 1 || n.Current != nil {
			return fmt.Errorf("the status shows %+v", n)
		}
		return nil
	})
	c.take(run{node: "node-a", windows: []window{{-time.Minute, -time.Minute, margin}, opening(firstRetry + time.Second)}})
	c.lose()
	c.waitPushes(a, 1)
	c.wantPushes(b)
	c.waitPushes(b, 2)
	c.waitPushes(a, 1, 2)
	c.wantPushed(3)
}

// R51, contract §9.6: a run goes with its last window, and leaves nothing to release.
func TestR51_ARunGoesWithItsLastWindow(t *testing.T) {
	c := start(t)
	a, b := c.node("node-a"), c.node("node-b")
	c.take(run{node: "node-a", windows: []window{{-time.Minute, -time.Minute, time.Second}}})
	if s := c.status(); s.Runs != 1 || s.HeldBytes == 0 {
		t.Errorf("the status shows %+v", s)
	}
	c.Eventually("the end of the run", func() error {
		if s := c.status(); s.Runs != 0 || s.Renewals != 0 || s.HeldBytes != 0 || c.shown("node-a").Held != 0 {
			return fmt.Errorf("the status shows %+v", s)
		}
		return nil
	})
	c.take(run{node: "node-b", windows: []window{current}})
	c.lose()
	c.waitPushes(b, 1)
	c.wantPushes(a)
	c.wantPushed(1)
}

// R54: once Cloudly is back nothing is pushed, neither what a node did not take, nor what
// opens meanwhile; lost again, the release goes on with what is open then.
func TestR54_ReattachStopsTheRelease(t *testing.T) {
	c := start(t)
	a := c.node("node-a")
	a.Script(applying, simulate.Refuse("not-today: x", nil))
	c.take(run{node: "node-a", windows: []window{current, opening(firstRetry)}})
	from := c.NextSeq()
	c.lose()
	first := c.waitPushes(a, 1)
	c.back(a)
	c.WaitEvent("renewals-release-ended", from)
	c.waitCurrent("node-a", 2)
	c.Eventually("the time of the second push to pass", func() error {
		if left := time.Until(first[0].At.Add(firstRetry + 500*time.Millisecond)); left > 0 {
			return fmt.Errorf("%s are left", left)
		}
		return nil
	})
	c.reaches("node-a")
	c.wantPushes(a, 1)
	c.wantPushed(1)
	if s := c.status(); !s.Attached || s.PushesRunning != 0 {
		t.Errorf("the status shows %+v", s)
	}

	c.lose()
	c.waitPushes(a, 1, 2)
	c.wantPushed(2)
}

// R54: a push that is under way when Cloudly returns is withdrawn: one that the node did
// not answer stands in the way of none, and the next outage begins anew, under the session
// that the node has by then.
func TestR54_APushUnderWayIsWithdrawn(t *testing.T) {
	c := start(t)
	a := c.node("node-a")
	a.Script(applying, simulate.Ignore())
	c.take(run{node: "node-a", windows: []window{current}})
	c.lose()
	c.waitPushes(a, 1)
	if n := c.shown("node-a"); !n.Pushing {
		t.Errorf("the status shows %+v", n)
	}
	c.back(a)
	c.reaches("node-a")
	c.wantPushes(a, 1)
	c.lose()
	c.waitPushes(a, 1, 1)
	c.waitAcknowledged("node-a", 1)
	if n, _ := c.Metrics().Value("relay_escrow_ended_pushes_total", "outcome", "withdrawn"); n != 1 {
		t.Errorf("the relay counts %v pushes that were withdrawn", n)
	}
}

// R53, R54: what a node acknowledges when Cloudly is back counts: the next outage does not
// give it the slot again.
func TestR53_R54_ALateAcknowledgementCounts(t *testing.T) {
	c := start(t)
	var says gate
	a := c.node("node-a", says.before)
	first := c.take(run{node: "node-a", windows: []window{current}})
	from := c.NextSeq()
	says.shut()
	c.lose()
	c.waitPushes(a, 1)
	c.back()
	if n := c.shown("node-a"); n.Acknowledged != nil {
		t.Fatalf("the node's answer has passed: %+v", n)
	}
	says.open()
	c.waitAcknowledged("node-a", 1)
	if s := c.status(); !s.Attached {
		t.Error("the relay is without Cloudly again")
	}
	ended, late := c.WaitEvent("renewals-release-ended", from), c.WaitEvent("renewal-acknowledged", from)
	if late.Seq < ended.Seq {
		t.Errorf("the acknowledgement is event %d, before the end of the release, %d", late.Seq, ended.Seq)
	}
	c.Eventually("the node's registration", func() error { return a.Register(c.Soon()) })
	longer := c.compose(run{node: "node-a", first: 2, windows: []window{opening(margin)}})
	longer.Renewals = append(first.Renewals, longer.Renewals...)
	c.taken("the same slot, and one more", longer.AppendJSON(nil), 2)
	c.lose()
	c.waitPushes(a, 1, 2)
	c.waitAcknowledged("node-a", 2)
	c.wantPushed(2)
}

// R54, O9: what is held stays through returns in which the node has not registered again,
// and its session is good for the release when Cloudly is lost once more; what it has taken
// is not pushed a second time.
func TestR54_O9_LostAgainAtOnce(t *testing.T) {
	c := start(t)
	a := c.node("node-a")
	c.take(run{node: "node-a", windows: []window{current, opening(2 * margin)}})
	for range 2 {
		c.lose()
		c.waitPushes(a, 1)
		c.waitAcknowledged("node-a", 1)
		c.back()
	}
	c.lose()
	c.waitPushes(a, 1, 2)
	c.wantPushed(2)
}

// waitGone waits until the relay knows that a node has no session.
func (c *cluster) waitGone(id string) {
	c.t.Helper()
	c.Eventually("the end of "+id, func() error {
		if c.shown(id).Reachable {
			return errors.New("it is still carried")
		}
		return nil
	})
}
