package appliance

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network/networktest"
	"serve.zone/relay/operator"
)

// An operator is told what the hub's network in force says, and of no hub where there
// is none.
func TestExplainIsTheHubs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := withHub(t)
		c.idle = true
		r := newRig(t, c)
		network := networktest.Grid(2, 1)
		network.Grants = []contract.VPNGrant{{SourceDomain: "d0.0", DestinationDomain: "d1.0"}}
		for i := range network.Nodes {
			network.Nodes[i].ExpiresAt = r.clock.now().Add(time.Hour).UnixMilli()
		}
		r.cloudly.SetNetwork(&network)
		r.start()
		explain := r.relay.operatorConfig().Explain
		a, b, away := netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.1.0.7"), netip.MustParseAddr("fd00::1")
		from := operator.End{Address: "10.0.0.7", Node: "node-000", Prefix: "10.0.0.0/24", Domain: "d0.0"}
		to := operator.End{Address: "10.1.0.7", Node: "node-001", Prefix: "10.1.0.0/24", Domain: "d1.0"}
		check := func(got operator.Explanation, want operator.Explanation, says string) {
			t.Helper()
			sentence := got.Sentence
			got.Sentence = ""
			if diff := cmp.Diff(want, got); diff != "" || !strings.Contains(sentence, says) {
				t.Errorf("%s\n%s", sentence, diff)
			}
		}
		check(explain(a, b), operator.Explanation{
			Action: "drop", Reason: "sender-unknown", From: operator.End{Address: "10.0.0.7"}, To: operator.End{Address: "10.1.0.7"},
		}, "the hub holds no network")
		r.registered(0)
		synctest.Wait()
		check(explain(a, b), operator.Explanation{Admitted: true, Action: "relay", Revision: 1, From: from, To: to}, `grants "d0.0" to "d1.0"`)
		check(explain(b, a), operator.Explanation{Action: "drop", Reason: "no-grant", Revision: 1, From: to, To: from}, "no grant joins")
		check(explain(a, away), operator.Explanation{
			Action: "drop", Reason: "packet-ipv6", Revision: 1, From: from, To: operator.End{Address: "fd00::1"},
		}, "IPv4 alone")
		check(explain(netip.MustParseAddr("192.168.0.2"), netip.MustParseAddr("192.168.0.1")), operator.Explanation{
			Admitted: true, Action: "echo", Revision: 1, From: operator.End{Address: "192.168.0.2", Node: "node-000"}, To: operator.End{Address: "192.168.0.1"},
		}, "is answered")
		if status, body := r.get("/explain?from=10.0.0.7&to=10.1.0.7"); status != 403 {
			t.Errorf("a peer from elsewhere is told: %d %s", status, body)
		}
	})
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{})
		if r.relay.operatorConfig().Explain != nil {
			t.Error("a relay without a hub explains")
		}
	})
}
