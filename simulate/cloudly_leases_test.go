package simulate

import (
	"bytes"
	"testing"
	"time"

	"serve.zone/relay/contract"
)

func TestGrid(t *testing.T) {
	if GridRun != 23 {
		t.Errorf("%d windows fit the horizon, want 23", GridRun)
	}
	if SlotOf(SlotStart(7)) != 7 || SlotOf(SlotStart(8).Add(-time.Millisecond)) != 7 {
		t.Error("a slot does not begin with its start")
	}
}

// R46: the simulated Cloudly makes a run of the grid that a relay must take, and with
// one window more one that it must not.
func TestR46_RunOfTheGrid(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		if _, err := s.Run("node-a", 1, 1); err == nil {
			t.Error("a node without a projection has a run")
		}
		projection, err := s.Project("node-a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Project("node-q"); err == nil {
			t.Error("an unknown node has a projection")
		}
		own := SlotOf(s.clock.now())
		run, err := s.Run("node-a", own+1, GridRun)
		if err != nil {
			t.Fatal(err)
		}
		body := run.AppendJSON(nil)
		read, refusal := contract.AdmitHoldDNSLeaseRenewalsRequest(body)
		if refusal != nil {
			t.Fatal(refusal)
		}
		if len(read.Renewals) != 23 || read.Projection != projection.Reference {
			t.Errorf("%d renewals of %v", len(read.Renewals), read.Projection)
		}
		for i, signed := range read.Renewals {
			slot := own + 1 + int64(i)
			if signed.Renewal.Sequence != int64(i)+1 || signed.Renewal.DNS != slotWindow(slot) {
				t.Errorf("renewal %d: %+v", i, signed.Renewal)
			}
			if err := VerifyRenewal(signed, s.Authority(), projection.Authority); err != nil {
				t.Errorf("renewal %d: %v", i, err)
			}
			alone, err := s.Renewal("node-a", slot)
			if err != nil || !bytes.Equal(alone.AppendJSON(nil), signed.AppendJSON(nil)) {
				t.Errorf("renewal %d is other bytes by itself (%v)", i, err)
			}
		}
		over, err := s.Run("node-a", own+1, GridRun+1)
		if err != nil {
			t.Fatal(err)
		}
		if _, refusal := contract.AdmitHoldDNSLeaseRenewalsRequest(over.AppendJSON(nil)); refusal == nil || refusal.Name != contract.EscrowRunInvalid {
			t.Errorf("24 windows: %v", refusal)
		}
		empty, err := s.Run("node-a", 0, 0)
		if err != nil || len(empty.Renewals) != 0 {
			t.Errorf("the empty run: %v, %v", empty, err)
		}
		if _, err := s.Run("node-a", own, 1); err == nil {
			t.Error("the projection's own slot is renewed")
		}

		// R06: one changed member is noticed by the digest.
		flipped := swap(t, body, `"sequence":5`, `"sequence":6`)
		if _, refusal := contract.AdmitHoldDNSLeaseRenewalsRequest(flipped); refusal == nil || refusal.Name != contract.EscrowRunInvalid {
			t.Errorf("flipped: %v", refusal)
		}
	})
}

func TestRotatedAuthority(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		old, err := s.Project("node-a")
		if err != nil {
			t.Fatal(err)
		}
		rotated := s.RotateAuthority()
		if rotated.Generation != 2 || rotated.Reference() == old.Authority {
			t.Errorf("rotated to %+v", rotated.Reference())
		}
		signed, err := s.Renewal("node-a", SlotOf(s.clock.now())+1)
		if err != nil {
			t.Fatal(err)
		}
		if err := VerifyRenewal(signed, rotated, old.Authority); err != ErrRenewalProjectionAuthority {
			t.Errorf("a renewal of the old projection: %v", err)
		}
		next, err := s.Project("node-a")
		if err != nil || next.Reference.Generation != 2 || next.Authority != rotated.Reference() || next.Reference.Digest == old.Reference.Digest {
			t.Errorf("next projection %+v, %v", next, err)
		}
	})
}
