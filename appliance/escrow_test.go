package appliance

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// projected starts nodes that hold a projection, with a Cloudly that renews it.
func (r *rig) projected(n int) []*simulate.Pallet {
	r.t.Helper()
	var nodes []*simulate.Pallet
	for i := range n {
		id := fmt.Sprintf("node-%d", i)
		p := r.node(id)
		projection, err := r.cloudly.Project(id)
		if err != nil {
			r.t.Fatal(err)
		}
		p.AdmitProjection(projection)
		nodes = append(nodes, p)
	}
	if err := r.cloudly.KeepRenewed(); err != nil {
		r.t.Fatal(err)
	}
	synctest.Wait()
	return nodes
}

// wantEachSlotOnce checks that a node admitted every slot from the first to the
// last once, in its first minute, and judged nothing else but what Cloudly sent
// again when it had returned.
func (r *rig) wantEachSlotOnce(p *simulate.Pallet, first, last int64, returned time.Time) {
	r.t.Helper()
	next := first
	for _, j := range p.Judgements() {
		if j.Admission == simulate.Replay && j.At.After(returned) {
			continue // Cloudly does not know what the relay delivered meanwhile
		}
		slot := simulate.SlotOf(time.UnixMilli(j.Renewal.DNS.IssuedAt))
		late := j.At.Sub(simulate.SlotStart(slot))
		if j.Admission != simulate.Admitted || slot != next || late < 0 || late > time.Minute {
			r.t.Errorf("slot %d (want %d) came %s after its begin: %q, %v", slot-first, next-first, late, j.Admission, j.Refusal)
			return
		}
		next++
	}
	if next != last+1 {
		r.t.Errorf("%d slots came, want %d", next-first, last+1-first)
	}
}

// R50–R53: two hours without Cloudly between two with it. Every slot reaches every
// node once, from Cloudly or from the relay, none early and none late.
func TestR50_R53_RenewalsGoOnThroughAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{})
		r.registered(0)
		nodes := r.projected(4)
		first := simulate.SlotOf(r.clock.now()) + 1
		time.Sleep(25 * time.Minute)
		r.cloudly.Outage()
		time.Sleep(2 * time.Hour)
		if s := r.section("escrow"); s["attached"] != false || s["runs"] != 4.0 {
			t.Errorf("in the outage: %v", s)
		}
		returned := r.clock.now()
		r.cloudly.Return()
		time.Sleep(26 * time.Minute)
		last := simulate.SlotOf(r.clock.now())
		for _, p := range nodes {
			r.wantEachSlotOnce(p, first, last, returned)
			if p.Dials() != 2 {
				t.Errorf("%d dials, want one and one after the return", p.Dials())
			}
		}
		r.wantNoViolations(nodes...)
	})
}

// R20, R50: in an outage a name that ends custody is read on a socket that no session
// stands on yet. From then no renewal leaves, although its window opens before the
// drop has its turn; and it does when no drop follows.
func TestR20_R50_NoRenewalLeavesAfterANameWasReadInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{})
		r.registered(0)
		p := r.projected(1)[0]
		time.Sleep(12 * time.Minute)
		r.cloudly.Outage()
		opens := simulate.SlotStart(simulate.SlotOf(r.clock.now()) + 1)
		time.Sleep(opens.Sub(r.clock.now()) - time.Second)
		before := len(p.Judgements())
		r.relay.custodyHeard(nil)
		time.Sleep(3 * time.Second)
		if n := len(p.Judgements()); n != before {
			t.Errorf("%d renewals left after the name was read", n-before)
		}
		time.Sleep(10 * time.Second)
		if n := len(p.Judgements()); n != before+1 {
			t.Errorf("no drop followed: %d renewals", n-before)
		}
	})
}

// R21: after an end of custody by relay-node-foreign, nothing of the old
// custody is released, though its window is current, and nothing is held.
func TestR21_HeldRenewalsGoWithCustody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{})
		r.registered(0)
		p := r.projected(1)[0]
		time.Sleep(12 * time.Minute)
		if s := r.section("escrow"); s["runs"] != 1.0 {
			t.Fatalf("before: %v", s)
		}
		r.cloudly.Script(relayCall, simulate.RefuseNamed(contract.RelayNodeForeign, "moved"))
		r.again()
		after(0)
		before := len(p.Judgements())
		r.cloudly.Outage()
		time.Sleep(time.Hour)
		if n := len(p.Judgements()); n != before {
			t.Errorf("%d renewals were released after custody had ended", n-before)
		}
		if s := r.section("escrow"); s["runs"] != 0.0 || s["renewals"] != 0.0 {
			t.Errorf("after: %v", s)
		}
	})
}
