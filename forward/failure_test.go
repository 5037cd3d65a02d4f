package forward

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
	"serve.zone/relay/typedsocket/queue"
)

// TestO38_NoAnswerIn30Seconds is an unnamed failure, and the late answer goes
// nowhere, both ways.
func TestO38_NoAnswerIn30Seconds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		for _, c := range []struct {
			from, to *wire
			method   string
		}{{node, cloud, report}, {cloud, node, "applyRuntimeAssignment"}} {
			start := time.Now()
			c.from.send(c.method, body(session, `"x":1`))
			f := c.to.recv()
			unnamed(t, c.from.recv())
			if d := time.Since(start); d != 30*time.Second {
				t.Errorf("%s failed after %s", c.method, d)
			}
			c.to.answer(f, `"response":{"late":1}`)
			c.from.none()
			if n := c.to.sock.Stats().Unmatched; n != 1 {
				t.Errorf("%d unmatched", n)
			}
		}
		node.send(register, registrationOf("node-a"))
		f := cloud.recv()
		unnamed(t, node.recv())
		cloud.answer(f, accepted(sessionOf("node-a", 7)))
		synctest.Wait()
		if b, _ := r.Binding("node-a"); string(b.Session.Received) != session {
			t.Error("a late acceptance was taken over")
		}
		if s := r.Status().(Status); s.InFlight != (InFlight{}) {
			t.Errorf("%+v", s.InFlight)
		}
		if n := r.metrics.ended.Of(up, outcomeTimedOut).Value() + r.metrics.ended.Of(down, outcomeTimedOut).Value(); n != 3 {
			t.Errorf("%d timeouts are counted", n)
		}
	})
}

// TestNodeGoneUnderAPush is told to Cloudly at once.
func TestNodeGoneUnderAPush(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		cloud.send("applyRuntimeAssignment", body(session, `"x":1`))
		node.recv()
		start := time.Now()
		node.hangUp()
		refused(t, cloud.recv(), contract.RelayNodeNotCarried)
		if d := time.Since(start); d != 0 {
			t.Errorf("it took %s", d)
		}
	})
}

// TestRefusalOf: which failure has which name.
func TestRefusalOf(t *testing.T) {
	named := &contract.Refusal{Name: contract.RelayNotReady, Reason: "r"}
	superseded := &typedsocket.EndError{Code: typedsocket.CloseSuperseded}
	for i, c := range []struct {
		err      error
		up, down contract.RefusalName
	}{
		{named, contract.RelayNotReady, contract.RelayNotReady},
		{fmt.Errorf("x: %w", named), contract.RelayNotReady, contract.RelayNotReady},
		{&queue.FullError{}, contract.RelayOverloaded, contract.RelayOverloaded},
		{typedsocket.ErrPendingFull, contract.RelayOverloaded, contract.RelayOverloaded},
		{typedsocket.ErrClosed, contract.RelayNotReady, contract.RelayNodeNotCarried},
		{&typedsocket.EndError{Code: typedsocket.CloseSilent}, contract.RelayNotReady, contract.RelayNodeNotCarried},
		{superseded, contract.RelayNotReady, contract.RelayNodeSessionNotCurrent},
		{&typedsocket.EndError{Code: typedsocket.CloseSuperseded, Remote: true}, contract.RelayNotReady, contract.RelayNodeNotCarried},
		{&typedsocket.TimeoutError{}, "", ""},
		{&typedsocket.TooBigError{}, "", ""},
		{errStreams, "", ""}, {errMismatch, "", ""}, {errors.New("x"), "", ""},
	} {
		for d, want := range [directions]contract.RefusalName{c.up, c.down} {
			var got contract.RefusalName
			if r := refusalOf(direction(d), c.err); r != nil {
				got = r.Name
			}
			if got != want {
				t.Errorf("%d %s: %q, want %q", i, direction(d), got, want)
			}
		}
	}
}

func TestOutcomeOf(t *testing.T) {
	for _, c := range []struct {
		err                    error
		accepted, judged, gone bool
		want                   outcome
	}{
		{nil, true, true, false, outcomeAnswered},
		{nil, false, true, false, outcomeDeclined},
		{&typedsocket.TimeoutError{}, false, false, false, outcomeTimedOut},
		{typedsocket.ErrClosed, false, false, false, outcomeLost},
		{typedsocket.ErrClosed, false, false, true, outcomeAbandoned},
		{&queue.FullError{}, true, true, false, outcomeUndelivered},
		{errStreams, true, false, false, outcomeWithheld},
		{errMismatch, true, false, false, outcomeWithheld},
	} {
		if got := outcomeOf(c.err, c.accepted, c.judged, c.gone); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}

// TestEveryRefusalHasItsLabel, and its reason fits a person.
func TestEveryRefusalHasItsLabel(t *testing.T) {
	for _, name := range []contract.RefusalName{
		contract.RelayNotReady, contract.RelayNodeNotCarried, contract.RelayNodeSessionNotCurrent,
		contract.RelayMethodNotForwarded, contract.RelayCloudlyOnly, contract.EscrowCloudlyOnly, contract.RelayOverloaded,
	} {
		if l := labelOf(name); l == refusedOther || l.String() != string(name) {
			t.Errorf("%s has the label %s", name, l)
		}
	}
	if labelOf("relay-node-unknown") != refusedOther {
		t.Error("a name that this duty never gives has a label")
	}
	for name, reason := range notRouted {
		if reason == "" || strings.Contains(reason, "%") {
			t.Errorf("%s: %q", name, reason)
		}
	}
}
