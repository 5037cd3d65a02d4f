package escrow

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
)

// FuzzHold: whatever comes as a hold is refused by one of the names and changes
// nothing, or is held whole; and of that only a current record is pushed.
func FuzzHold(f *testing.F) {
	for _, body := range [][]byte{
		bodyOf(grid(spec{}, begin, 0)), bodyOf(grid(spec{}, begin, 3)), bodyOf(grid(spec{}, begin.Add(-time.Hour), 3)),
		bodyOf(grid(spec{node: "node-b"}, begin, 2)), bodyOf(grid(spec{namespace: "ns:2"}, begin, 1)), []byte(`{}`), []byte(`[`),
		changed(3, 2, func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.Sequence = 2 }),
	} {
		f.Add(body, uint16(0))
	}
	f.Fuzz(func(t *testing.T, body []byte, minutes uint16) {
		e := New(Config{Wall: func() time.Time { return begin }})
		e.SessionRegistered()
		e.Bound(bindingOf("node-a", 1))
		if held, refused := e.hold(bodyOf(grid(spec{projection: projection("projection:0", 2)}, begin, 2))); refused != nil || held != 2 {
			t.Fatal(refused)
		}
		before := e.Status().(Status)
		held, refused := e.hold(body)
		x, alone := contract.AdmitHoldDNSLeaseRenewalsRequest(body)
		switch {
		case refused != nil:
			if !contract.HoldRefusals().Contains(refused.Name) || refused.Name == contract.EscrowCloudlyOnly {
				t.Fatalf("refused with %v", refused)
			}
			if diff := cmp.Diff(before, e.Status().(Status)); diff != "" {
				t.Fatal(diff)
			}
		case alone != nil || held != len(x.Renewals):
			t.Fatalf("held %d of %d: %v", held, len(x.Renewals), alone)
		}
		at := instant{begin.Add(time.Duration(minutes) * time.Minute), time.Duration(minutes) * time.Minute}
		e.machine.lost(instant{wall: begin})
		for _, p := range e.machine.tick(at) {
			ms := milliseconds(at.wall)
			r, err := contract.ReadApplyDNSLeaseRenewalRequest(contract.ApplyDNSLeaseRenewalRequest{
				Session: p.binding.Session.Received, Signed: contract.SignedDNSLeaseRenewal{Received: p.signed}}.AppendJSON(nil))
			if err != nil || r.Signed.Renewal.Reference() != p.target.renewal || r.Signed.Renewal.DNS.NotBefore > ms || r.Signed.Renewal.DNS.ExpiresAt <= ms {
				t.Fatalf("pushed %+v: %v", r.Signed.Renewal, err)
			}
		}
	})
}

// FuzzAnswer: whatever a node answers is an acknowledgement only of the very renewal
// that was sent.
func FuzzAnswer(f *testing.F) {
	sent := &push{target: target{renewal: reference{Projection: projection("projection:1", 4), Sequence: 7, Digest: markerDigest}}}
	answer := contract.ApplyDNSLeaseRenewalAnswer{Status: "replay", Renewal: sent.target.renewal}.AppendJSON(nil)
	f.Add(answer)
	f.Add([]byte(`{"status":"x","renewal":{}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		how := outcomeOf(sent, answer, nil)
		read, err := contract.ReadApplyDNSLeaseRenewalAnswer(answer)
		if want := err == nil && read.Renewal == sent.target.renewal; (how == outcomeAcknowledged) != want || how != outcomeAcknowledged && how != outcomeForeign {
			t.Fatalf("counts as %s", how)
		}
		if outcomeOf(sent, answer, errors.New("x")) != outcomeFailed {
			t.Fatal("an answer counts that did not come")
		}
	})
}
