package simulate

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"serve.zone/relay/contract"
)

func testProjection() Projection {
	return Projection{Reference: testReference(1), Scope: testScope(), DNS: slotWindow(2)}
}

// Each rule of the seed, alone and in its order.
func TestAdmitRenewal(t *testing.T) {
	at := func(slot int64, after time.Duration) time.Time { return SlotStart(slot).Add(after) }
	change := func(r contract.DNSLeaseRenewal, f func(*contract.DNSLeaseRenewal)) contract.DNSLeaseRenewal {
		f(&r)
		return r
	}
	previous := testRenewal(5, 7)
	for _, test := range []struct {
		name     string
		renewal  contract.DNSLeaseRenewal
		previous *contract.DNSLeaseRenewal
		change   func(*Projection)
		now      time.Time
		want     Admission
		err      error
	}{
		{"first, as its slot opens", testRenewal(1, 3), nil, nil, at(3, 0), Admitted, nil},
		{"first, as its window ends", testRenewal(1, 3), nil, nil, at(3, SlotWindow-time.Millisecond), Admitted, nil},
		{"first, with a high sequence", testRenewal(99, 3), nil, nil, at(3, 0), Admitted, nil},
		{"next", testRenewal(6, 8), &previous, nil, at(8, 0), Admitted, nil},
		{"a gap in sequence and windows", testRenewal(20, 30), &previous, nil, at(30, 0), Admitted, nil},
		{"controller spelled otherwise", change(testRenewal(1, 3), func(r *contract.DNSLeaseRenewal) { r.Controller = contract.Raw(` {"kind" : "cloudly"}`) }),
			nil, nil, at(3, 0), Admitted, nil},

		{"another node", change(testRenewal(1, 3), func(r *contract.DNSLeaseRenewal) { r.NodeID = "node-b" }), nil, nil, at(3, 0), "", ErrRenewalScope},
		{"another namespace", change(testRenewal(1, 3), func(r *contract.DNSLeaseRenewal) { r.RuntimeNamespace = "other" }), nil, nil, at(3, 0), "", ErrRenewalScope},
		{"another controller", change(testRenewal(1, 3), func(r *contract.DNSLeaseRenewal) { r.Controller = contract.Raw(`{"kind":"onebox"}`) }), nil, nil, at(3, 0), "", ErrRenewalScope},
		{"projection out of scope", testRenewal(1, 3), nil, func(p *Projection) { p.Scope.NodeID = "node-b" }, at(3, 0), "", ErrRenewalScope},
		{"successor projection", testRenewal(1, 3), nil, func(p *Projection) { p.Reference = testReference(2) }, at(3, 0), "", ErrRenewalProjection},

		{"lower sequence", testRenewal(4, 8), &previous, nil, at(8, 0), "", ErrRenewalSequence},
		{"same again", testRenewal(5, 7), &previous, nil, at(7, 0), Replay, nil},
		{"same again before its window", testRenewal(5, 7), &previous, nil, at(1, 0), Replay, nil},
		{"same again after its window", testRenewal(5, 7), &previous, nil, at(99, 0), Replay, nil},
		{"same sequence, other content", testRenewal(5, 8), &previous, nil, at(8, 0), "", ErrRenewalConflict},

		{"1 ms early", testRenewal(6, 8), &previous, nil, at(8, -time.Millisecond), "", ErrRenewalEarly},
		{"as the window has ended", testRenewal(6, 8), &previous, nil, at(8, SlotWindow), "", ErrRenewalEnded},
		{"issuedAt moves back", change(testRenewal(6, 7), func(r *contract.DNSLeaseRenewal) { r.DNS.IssuedAt--; r.DNS.ExpiresAt++ }),
			&previous, nil, at(7, 0), "", ErrRenewalIssuedBack},
		{"same window again", testRenewal(6, 7), &previous, nil, at(7, 0), "", ErrRenewalNotExtending},
		{"the projection's own window", testRenewal(1, 2), nil, nil, at(2, 0), "", ErrRenewalNotExtending},
		{"before the projection's window", testRenewal(1, 1), nil, nil, at(1, 0), "", ErrRenewalIssuedBack},
	} {
		current := testProjection()
		if test.change != nil {
			test.change(&current)
		}
		got, err := AdmitRenewal(test.renewal, current, test.previous, testScope(), test.now)
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: got %q, %v, want %q, %v", test.name, got, err, test.want, test.err)
		}
	}
}

// A node that admits what it is given keeps, over any deliveries, the window
// that an oracle derives from the whole history: the highest sequence that was
// ever delivered while its window was open and which extended all before it.
func TestAdmissionNeverLosesCoverage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		current := testProjection()
		var previous *contract.DNSLeaseRenewal
		history := []contract.DNSWindow{current.DNS}
		highest := int64(0)
		now := SlotStart(2)
		for range rapid.IntRange(1, 30).Draw(t, "deliveries") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 1200).Draw(t, "seconds")) * time.Second)
			r := testRenewal(rapid.Int64Range(1, 12).Draw(t, "sequence"), rapid.Int64Range(1, 14).Draw(t, "slot"))
			admission, _ := AdmitRenewal(r, current, previous, testScope(), now)

			last := history[len(history)-1]
			ms := now.UnixMilli()
			open := r.DNS.NotBefore <= ms && ms < r.DNS.ExpiresAt
			extends := r.DNS.IssuedAt >= last.IssuedAt && r.DNS.ExpiresAt > last.ExpiresAt
			want := Admission("")
			switch {
			case previous != nil && r.Sequence == highest && r.DNS == last:
				want = Replay
			case r.Sequence > highest && open && extends:
				want = Admitted
			}
			if admission != want {
				t.Fatalf("sequence %d of window %v at %d: got %q, want %q", r.Sequence, r.DNS, ms, admission, want)
			}
			if admission == Admitted {
				previous, highest = &r, r.Sequence
				history = append(history, r.DNS)
			}
		}
	})
}
