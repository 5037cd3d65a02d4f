package appliance

import (
	"errors"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// R20: nobody enables this cluster's relay any more. Everything goes at once; the
// authenticated socket stays, and a push that carries the relay block brings a
// registration on it at once.
func TestR20_ClusterNotEnabled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, a, b := holding(t, change{})
		e := beginEnd(r, a, b, func() { r.cloudly.DisableRelay(); r.again() })
		e.wantEnded(contract.RelayClusterNotEnabled)
		r.wantNotServed(a, e.socket)
		e.wantQuiet()
		r.wantSequences(0, 1)
		// Neither of these carries the block.
		for _, relay := range []string{"", "null", `{"origin":"http://elsewhere.serve.zone"}`} {
			if err := r.push(documentOf(relay)); err != nil {
				t.Errorf("push of %q: %v", relay, err)
			}
		}
		r.wantSequences(0, 1)
		if err := r.cloudly.EnableRelay(originText); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := r.push(documentOf(blockOf(originText))); err != nil {
			t.Fatal(err)
		}
		r.wantSequences(0, 1, 1)
		if passed := time.Since(began); passed > 0 {
			t.Errorf("registered %s after the push", passed)
		}
		r.wantDials(1)
		r.wantCarriesAgain(a, b)
	})
}

// R20: what nodes had said, and Cloudly has not taken yet, goes with custody too:
// of the reports that wait in the relay none leaves, although the socket stays.
func TestR20_WhatNodesHadQueuedDoesNotLeave(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, a, b := holding(t, change{})
		r.cloudly.StopReading()
		body := strings.Replace(a.under(), `"entry":1`, `"entry":"`+strings.Repeat("x", 40<<10)+`"`, 1)
		reported := make(chan error, 8)
		for range cap(reported) {
			go func() { _, err := a.call(protection, body); reported <- err }()
		}
		pushed := make(chan error, 1)
		after(time.Second)
		go func() { pushed <- r.push(documentOf("null")) }()
		after(time.Second)
		a.wantClosed(typedsocket.CloseCustodyEnded)
		b.wantClosed(typedsocket.CloseCustodyEnded)
		r.wantNothingHeld()
		r.cloudly.ResumeReading()
		<-pushed
		after(time.Minute)
		for range cap(reported) {
			if err := <-reported; !errors.Is(err, typedsocket.ErrClosed) {
				t.Errorf("a report: %v", err)
			}
		}
		// One is what fits into the connection itself.
		if n := len(r.upstream(protection)); n > 1 {
			t.Errorf("cloudly received %d reports", n)
		}
		r.wantSequences(0)
		r.wantNothingHeld()
	})
}

// R20: a relay whose cluster was never enabled waits on its socket in the same
// way, and asks for the configuration on every new one, since the push may have
// gone to none (design §4, O19).
func TestR20_NotEnabledFromTheStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{cloudly: func(c *simulate.CloudlyConfig) { c.Origin = "" }})
		after(0)
		r.wantAgainst("cloudly-session: custody-ended", "cloudly-refusal: relay-cluster-not-enabled", "origin: origin-unknown")
		r.wantHeard("dropped relay-cluster-not-enabled")
		after(time.Minute)
		r.cloudly.CutSockets()
		after(time.Second)
		r.wantDials(2)
		r.wantSequences(0)
		if got := r.methodsOn(2); len(got) != 3 || got[2] != configPull {
			t.Errorf("on a new socket: %v", got)
		}
		if err := r.cloudly.EnableRelay(originText); err != nil {
			t.Fatal(err)
		}
		r.cloudly.CutSockets()
		after(2 * time.Second)
		r.wantDials(3)
		r.wantSequences(0, 0)
		r.wantAgainst()
	})
}

// R21, R22: the records name the relay's node otherwise. The registration is
// repeated 300 000 ms later, on the socket that stayed and with the same number,
// for as long as it takes.
func TestR21_R22_NodeOfTheRelay(t *testing.T) {
	records := map[contract.RefusalName]func(*rig) error{
		contract.RelayNodeForeign: func(r *rig) error { return r.cloudly.EnrollForeignNode("node-relay") },
		contract.RelayNodeUnknown: func(r *rig) error { return r.cloudly.RemoveNode("node-relay") },
	}
	eachName(t, []contract.RefusalName{contract.RelayNodeForeign, contract.RelayNodeUnknown}, func(t *testing.T, name contract.RefusalName) {
		bubble(t, func(t *testing.T) {
			r, a, b := holding(t, change{})
			e := beginEnd(r, a, b, func() {
				if err := records[name](r); err != nil {
					t.Error(err)
				}
				r.again()
			})
			e.wantEnded(name)
			r.wantNotServed(a, e.socket)
			e.wantQuiet()
			r.relay.Reload() // neither this nor the wall clock shortens anything
			r.clock.step(time.Hour)
			after(hold - 20*time.Second - time.Millisecond)
			r.wantSequences(0, 1)
			after(time.Millisecond)
			r.wantSequences(0, 1, 1)
			r.wantHeard("dropped " + string(name))
			if _, err := r.cloudly.EnrollNode("node-relay"); err != nil {
				t.Fatal(err)
			}
			after(hold - time.Millisecond)
			r.wantSequences(0, 1, 1)
			r.cloudly.SetConfigurationBody(nil)
			after(time.Millisecond)
			r.wantSequences(0, 1, 1, 1)
			r.wantDials(1)
			r.wantCarriesAgain(a, b)
		})
	})
}

// R22: a configuration that carries the relay block ends the wait after
// relay-node-unknown sooner.
func TestR22_APushLiftsIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, a, b := holding(t, change{})
		e := beginEnd(r, a, b, func() { r.cloudly.RemoveNode("node-relay"); r.again() })
		e.wantEnded(contract.RelayNodeUnknown)
		e.wantQuiet()
		if _, err := r.cloudly.EnrollNode("node-relay"); err != nil {
			t.Fatal(err)
		}
		if err := r.push(documentOf(blockOf(originText))); err != nil {
			t.Fatal(err)
		}
		r.wantSequences(0, 1, 1)
		r.wantCarriesAgain(a, b)
	})
}

// R23: the number did not advance. The socket goes with everything on it, and the
// next registration comes on a new one, soon and with a higher number.
func TestR23_SequenceNotAdvancing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, a, b := holding(t, change{})
		r.cloudly.Script(relayCall, simulate.RefuseNamed(contract.RelaySequenceNotAdvancing, "5 is not above 5"))
		e := beginEnd(r, a, b, func() { r.again(); r.cloudly.SetConfigurationBody(nil) })
		e.wantEnded(contract.RelaySequenceNotAdvancing)
		if sockets := r.cloudly.Sockets(); len(sockets) != 0 {
			t.Errorf("sockets stand: %v", sockets)
		}
		after(time.Second)
		r.wantSequences(0, 1, 2)
		r.wantDials(2)
		e.a.wantNothingSince(e.at)
		e.b.wantNothingSince(e.at)
		if <-e.report == nil || <-e.place == nil {
			t.Error("what was under way was answered after custody had ended")
		}
		r.wantCarriesAgain(a, b)
	})
}

// carriages are the ways in which a name counts on the relay's own calls (design
// §4, O10).
var carriages = map[string]func(contract.RefusalName) simulate.Step{
	"text":            func(n contract.RefusalName) simulate.Step { return simulate.Refuse(string(n), nil) },
	"text and reason": func(n contract.RefusalName) simulate.Step { return simulate.Refuse(string(n)+": as recorded", nil) },
	"code": func(n contract.RefusalName) simulate.Step {
		return simulate.Refuse("no", []byte(`{"code":"`+string(n)+`"}`))
	},
}

// R20 to R24: each name counts in each carriage, also on the first registration
// after a loss, when what is held is held for nodes that wait.
func TestR20_R24_EachNameInEachCarriage(t *testing.T) {
	for how, carry := range carriages {
		for _, name := range contract.UndispatchedRefusals().Names() {
			t.Run(how+"/"+string(name), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					r, a, b := holding(t, change{})
					r.cloudly.Script(relayCall, carry(name))
					r.cloudly.CutSockets()
					after(0)
					r.wantHeard("lost")
					a.wantOpen()
					after(time.Second)
					a.wantClosed(4002)
					b.wantClosed(4002)
					if said := r.says("cloudly-custody-ended", "refusal"); len(said) != 1 || said[0] != string(name) {
						t.Errorf("custody ended: %v", said)
					}
					if heard := r.rec.take(); len(heard) < 3 || heard[2] != "dropped "+string(name) {
						t.Errorf("the duties were told %v", heard)
					}
					if held := r.rec.holds(); len(held) != 0 {
						t.Errorf("still held: %v", held)
					}
					r.wantNoViolations()
				})
			})
		}
	}
}
