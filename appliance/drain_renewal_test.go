package appliance

import (
	"strings"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/escrow"
	"serve.zone/relay/simulate"
)

// R97, R50: a relay that is told to stop in an outage waits for the renewal that is
// on its way to a node, begins no other one, and calls nobody unreachable whose
// socket it closes itself.
func TestR97_R50_DrainWaitsForARenewal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{})
		r.registered(0)
		nodes := r.projected(2)
		time.Sleep(12 * time.Minute)
		r.cloudly.Outage()
		nodes[0].Script(contract.MethodApplyDNSLeaseRenewal, simulate.Late(2*time.Second))
		nodes[1].Script(contract.MethodApplyDNSLeaseRenewal, simulate.Refuse("not now", nil))
		next := simulate.SlotStart(simulate.SlotOf(r.clock.now()) + 1)
		time.Sleep(next.Sub(r.clock.now()) + time.Second)
		r.stop()
		time.Sleep(3 * time.Second)
		if err := r.halt(); err != nil {
			t.Errorf("run: %v", err)
		}
		shown := map[string]escrow.Node{}
		for _, p := range r.relay.later {
			if s, ok := p.duty.Status().(escrow.Status); ok {
				for _, n := range s.Nodes {
					shown[n.ID] = n
				}
			}
		}
		if a := shown["node-0"].Acknowledged; a == nil || shown["node-0"].Released.Sequence != a.Sequence {
			t.Errorf("the renewal in flight was not waited for: %+v", shown["node-0"])
		}
		if n := shown["node-1"]; n.Released == nil || n.Acknowledged != nil && n.Acknowledged.Sequence == n.Released.Sequence {
			t.Errorf("the refused renewal was pushed again: %+v", n)
		}
		if text := r.log.String(); strings.Contains(text, string(escrow.NodeUnreachable)) {
			t.Errorf("a node counts as unreachable since its relay stops:\n%s", text)
		}
	})
}
