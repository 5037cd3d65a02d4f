package appliance

import (
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// others are refusals that are none of the five, as near to them as they come.
var others = map[string]simulate.Step{
	"no name":                 simulate.Refuse("the relay could not be verified", nil),
	"an unknown name":         simulate.Refuse("relay-cluster-suspended: soon", []byte(`{"code":"relay-cluster-suspended"}`)),
	"a longer name":           simulate.Refuse("relay-node-unknown-yet: soon", nil),
	"behind a space":          simulate.Refuse(" relay-node-foreign: no", nil),
	"in another case":         simulate.Refuse("Relay-Node-Foreign: no", []byte(`{"code":"RELAY-NODE-FOREIGN"}`)),
	"inside other words":      simulate.Refuse("heard relay-credential-generation-stale: no", nil),
	"as reason":               simulate.Refuse("no", []byte(`{"reason":"relay-node-foreign"}`)),
	"deeper":                  simulate.Refuse("no", []byte(`{"error":{"code":"relay-node-foreign"}}`)),
	"twice":                   simulate.Refuse("no", []byte(`{"code":"relay-node-foreign","code":"relay-node-foreign"}`)),
	"not as text":             simulate.Refuse("no", []byte(`{"code":["relay-node-foreign"]}`)),
	"a name of other answers": simulate.Refuse("relay-not-enabled: ask the operator", []byte(`{"code":"relay-not-enabled"}`)),
	"major-mismatch":          simulate.RefuseProtocol(contract.MajorMismatch),
	"peer-below-minimum":      simulate.RefuseProtocol(contract.PeerBelowMinimum),
	"self-below-peer-minimum": simulate.RefuseProtocol(contract.SelfBelowPeerMinimum),
}

// R25: a repeated registration that is refused by an unknown name or by protocol
// changes nothing. The session stands, both ways, and the registration is tried again.
func TestR25_ARepeatedRegistrationRefusedOtherwise(t *testing.T) {
	for how, step := range others {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, a, b := holding(t, change{})
				r.cloudly.Script(relayCall, step)
				r.again()
				after(0)
				socket, registered := r.cloudly.Registered()
				if !registered {
					t.Fatal("the session does not stand")
				}
				a.wantOpen()
				b.wantOpen()
				if err := a.report(); err != nil {
					t.Errorf("a report: %v", err)
				}
				if err := r.sentTo(b, socket); err != nil {
					t.Errorf("a push: %v", err)
				}
				r.wantStillHeld()
				again := time.Second
				if step.Protocol != "" {
					again = hold
				}
				after(again)
				r.wantSequences(0, 1, 1)
				r.wantDials(1)
				r.wantStillHeld()
				a.wantOpen()
				r.wantAgainst()
				r.wantNoViolations()
			})
		})
	}
}

// R25: after a loss, where the relay has no session, a first registration that is
// refused by an unknown name or by protocol changes nothing either: what is held stays
// held, the nodes' sockets stay, for escrow.
func TestR25_AFirstRegistrationRefusedOtherwise(t *testing.T) {
	for how, step := range others {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, a, b := holding(t, change{})
				r.cloudly.ScriptAlways(relayCall, step)
				r.cloudly.CutSockets()
				after(6 * time.Minute)
				if sent := len(r.upstream(relayCall)); sent < 3 {
					t.Errorf("%d registrations were sent in 6 minutes", sent)
				}
				r.wantHeard("lost")
				r.wantStillHeld()
				for _, w := range []*wire{a, b} {
					w.wantOpen()
					if err := w.report(); nameOf(err) != contract.RelayNotReady {
						t.Errorf("a report: %v", err)
					}
				}
				if n := len(r.section("forward")["nodes"].([]any)); n != 2 {
					t.Errorf("%d nodes are shown", n)
				}
				r.cloudly.ClearScript(relayCall)
				after(hold)
				r.wantAgainst()
				r.wantStillHeld()
				// None of them used a number.
				if s := r.sequences(); len(s) != 2 || s[1] != 1 {
					t.Errorf("accepted %v", s)
				}
				r.wantNoViolations()
			})
		})
	}
}

// R25: neither an outage of any kind nor a wrong answer of Cloudly ends custody: what
// is held stays, and the nodes' sockets do.
func TestR25_OtherTroublesKeepCustody(t *testing.T) {
	for name, trouble := range map[string]func(*simulate.Cloudly){
		"unreachable":     (*simulate.Cloudly).Outage,
		"answers 503":     func(c *simulate.Cloudly) { c.SetReachability(simulate.Unavailable); c.CutSockets() },
		"hangs":           func(c *simulate.Cloudly) { c.SetReachability(simulate.Hanging); c.CutSockets() },
		"dies at once":    func(c *simulate.Cloudly) { c.SetReachability(simulate.Dying); c.CutSockets() },
		"answers nothing": func(c *simulate.Cloudly) { c.SetReachability(simulate.Mute); c.CutSockets() },
		"closes with our code": func(c *simulate.Cloudly) {
			c.SetReachability(simulate.Unreachable)
			c.CloseSockets(typedsocket.CloseCustodyEnded)
		},
		"reads nothing":          func(c *simulate.Cloudly) { c.SetReachability(simulate.Unreachable); c.StopReading() },
		"loses the registration": func(c *simulate.Cloudly) { c.ScriptAlways(relayCall, simulate.Ignore()); c.CutSockets() },
		"knows no bearer": func(c *simulate.Cloudly) {
			c.ScriptAlways(exchangeCall, simulate.Refuse("unknown", nil))
			c.CutSockets()
		},
		"answers no JSON":       func(c *simulate.Cloudly) { c.ScriptAlways(relayCall, simulate.Respond([]byte("{"))); c.CutSockets() },
		"answers another shape": func(c *simulate.Cloudly) { c.ScriptAlways(relayCall, simulate.Respond([]byte("{}"))); c.CutSockets() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, a, b := holding(t, change{})
				trouble(r.cloudly)
				after(10 * time.Minute)
				if _, registered := r.cloudly.Registered(); r.section("cloudly")["registered"] == true {
					t.Errorf("a session stands; cloudly thinks so: %v", registered)
				}
				a.wantOpen()
				b.wantOpen()
				r.wantHeard("lost")
				r.wantStillHeld()
				r.cloudly.ResumeReading()
			})
		})
	}
}
