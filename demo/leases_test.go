package demo

import (
	"slices"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// project is a projection of a node, under the leases of a grid that begins then.
func project(t *testing.T, from time.Time) (*leases, simulate.Projection) {
	t.Helper()
	cloudly, err := simulate.NewCloudly(simulate.CloudlyConfig{Wall: func() time.Time { return from }})
	if err != nil {
		t.Fatal(err)
	}
	defer cloudly.Close()
	if _, err := cloudly.EnrollNode("node-a"); err != nil {
		t.Fatal(err)
	}
	projection, err := cloudly.Project("node-a")
	if err != nil {
		t.Fatal(err)
	}
	l := newLeases(from)
	return l, l.projection(projection)
}

// A run of the short grid is one that a relay may hold and a node admits: slot by slot,
// each while its window is open and none before.
func TestARunIsAdmittedSlotBySlot(t *testing.T) {
	from := time.UnixMilli(1_800_000_000_000)
	l, projection := project(t, from)
	run, err := l.run(projection)
	if err != nil {
		t.Fatal(err)
	}
	if reasons := run.Validate(); len(reasons) > 0 || len(run.Renewals) != slotCount {
		t.Fatalf("%d renewals, %v", len(run.Renewals), reasons)
	}
	var previous *contract.DNSLeaseRenewal
	for i, signed := range run.Renewals {
		opens := from.Add(time.Duration(i+1) * slotEvery)
		if err := simulate.VerifyRenewal(signed, l.authority.Authority, projection.Authority); err != nil {
			t.Errorf("renewal %d: %v", i+1, err)
		}
		_, early := simulate.AdmitRenewal(signed.Renewal, projection, previous, projection.Scope, opens.Add(-time.Millisecond))
		admission, err := simulate.AdmitRenewal(signed.Renewal, projection, previous, projection.Scope, opens)
		if early != simulate.ErrRenewalEarly || admission != simulate.Admitted || signed.Renewal.Sequence != int64(i+1) {
			t.Errorf("renewal %d: early %v; then %s %v", i+1, early, admission, err)
		}
		previous = &run.Renewals[i].Renewal
	}
}

// Windows overlap, so that a node that is given each of them always has one.
func TestWindowsOverlap(t *testing.T) {
	l := newLeases(time.UnixMilli(1_800_000_000_000))
	for slot := range slotCount {
		if this, next := l.window(slot), l.window(slot+1); next.NotBefore >= this.ExpiresAt || next.ExpiresAt <= this.ExpiresAt {
			t.Errorf("slot %d: %+v, then %+v", slot, this, next)
		}
	}
}

func TestTheNextSlotIsTheFirstThatOpensLater(t *testing.T) {
	from := time.UnixMilli(1_800_000_000_000)
	l := newLeases(from)
	for after, want := range map[time.Duration]int{
		0: 1, time.Millisecond: 1, slotEvery - time.Millisecond: 1, slotEvery: 2, 5*slotEvery + slotEvery/2: 6,
	} {
		got := l.next(from.Add(after))
		if got != want || !time.UnixMilli(l.window(got).NotBefore).After(from.Add(after)) {
			t.Errorf("%s after the beginning: slot %d, want %d", after, got, want)
		}
	}
}

// What is spoiled is one digest of a renewal, and nothing else is wrong with the run.
func TestASpoiledRunHasOneWrongDigest(t *testing.T) {
	l, projection := project(t, time.UnixMilli(1_800_000_000_000))
	run, err := l.run(projection)
	if err != nil {
		t.Fatal(err)
	}
	spoil(run)
	reasons := run.Validate()
	if len(reasons) != 1 || !strings.HasPrefix(reasons[0], "renewals[1].renewal.digest:") {
		t.Errorf("reasons %q", reasons)
	}
	if slices.Contains(Breaks(), "") || len(Breaks()) != 2 {
		t.Errorf("breaks %q", Breaks())
	}
}
