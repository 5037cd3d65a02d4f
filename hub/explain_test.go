package hub

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/hub/policy"
)

func TestExplainSpeaksOfTheNetworkInForce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		explain := func(from, to int) Explanation {
			return r.Explain(netip.MustParseAddr(ip(from)), netip.MustParseAddr(ip(to)))
		}
		if x := explain(0, 1); x.Action != policy.Drop || x.Reason != policy.SenderUnknown || x.Revision != 0 || x.FromConnected || x.ToConnected {
			t.Errorf("without a network: %+v", x)
		}
		r.cloudly().must(netOf(1, 2, 0, 1))
		if x := explain(0, 1); x.Action != policy.Relay || x.Revision != 1 {
			t.Errorf("%+v", x)
		}
		if x := explain(1, 0); x.Reason != policy.NoGrant {
			t.Errorf("%+v", x)
		}
	})
}

// What a rule lets pass may be lost all the same, and the sentence says so.
func TestExplainSaysWhatStandsInTheWay(t *testing.T) {
	const noSender, noReceiver, suspended = "At present none can come: node ", "(destination-offline)", "(custody-suspended)"
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		c.must(netOf(1, 2, 0, 1))
		from, to := netip.MustParseAddr(ip(0)), netip.MustParseAddr(ip(1))
		check := func(what string, a, b, held bool, ending string) {
			t.Helper()
			x := r.Explain(from, to)
			if x.Action != policy.Relay || x.FromConnected != a || x.ToConnected != b || x.Suspended != held {
				t.Errorf("%s: %+v", what, x)
			}
			for _, text := range []string{noSender, noReceiver, suspended} {
				if strings.Contains(x.Sentence, text) != (text == ending) {
					t.Errorf("%s: %s", what, x.Sentence)
				}
			}
			if back := r.Explain(to, from); strings.Contains(back.Sentence, "present") {
				t.Errorf("%s: what no rule lets pass: %s", what, back.Sentence)
			}
		}
		check("nobody is there", false, false, false, noSender)
		r.dial(0)
		check("the sender is there", true, false, false, noReceiver)
		r.dial(1)
		check("both are there", true, true, false, "")
		r.Suspend(c.relay)
		check("suspended", true, true, true, suspended)
		time.Sleep(suspendWait)
		check("suspended no more", true, true, false, "")
	})
}
