package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	slot   = int64(1_767_225_600_000) // the first slot of a run
	grid   = int64(600_000)           // from one slot to the next
	window = int64(900_000)
)

var runProjection = Reference{"projection:1", 4, zeroDigest}

// seal gives a renewal the digest of its members, or fails.
func seal(t interface{ Fatal(...any) }, r DNSLeaseRenewal) DNSLeaseRenewal {
	digest, err := r.ComputeDigest()
	if err != nil {
		t.Fatal(err)
	}
	r.Digest = digest
	return r
}

func gridRenewal(t interface{ Fatal(...any) }, i int64) SignedDNSLeaseRenewal {
	return SignedDNSLeaseRenewal{
		Authority: Raw(`{"id":"signing","generation":2}`),
		Renewal: seal(t, DNSLeaseRenewal{
			Controller:       Raw(`{"id":"c1","kind":"cloudly"}`),
			NodeID:           "-node_a",
			RuntimeNamespace: "ns:1",
			Projection:       runProjection,
			Sequence:         i + 1,
			DNS:              DNSWindow{slot + i*grid, slot + i*grid, slot + i*grid + window},
		}),
		Signature: "c2lnbmF0dXJl",
	}
}

// gridRun is a run on the intended grid: 15-minute windows every 10 minutes.
func gridRun(t interface{ Fatal(...any) }, n int) HoldDNSLeaseRenewalsRequest {
	x := HoldDNSLeaseRenewalsRequest{NodeID: "-node_a", Projection: runProjection, Renewals: []SignedDNSLeaseRenewal{}}
	for i := range n {
		x.Renewals = append(x.Renewals, gridRenewal(t, int64(i)))
	}
	return x
}

// changed returns a run in which one renewal is changed and sealed again.
func changed(t *testing.T, n, i int, change func(r *DNSLeaseRenewal)) HoldDNSLeaseRenewalsRequest {
	x := gridRun(t, n)
	change(&x.Renewals[i].Renewal)
	x.Renewals[i].Renewal = seal(t, x.Renewals[i].Renewal)
	return x
}

// R46: 32 renewals, four hours and 900,000 ms a window are taken; one more of each is
// refused by name, and so is a grid of 24 windows.
func TestR46_BoundsOfARun(t *testing.T) {
	tight := func(n int) HoldDNSLeaseRenewalsRequest {
		x := gridRun(t, n)
		for i := range x.Renewals {
			r := &x.Renewals[i].Renewal
			r.DNS = DNSWindow{slot + int64(i), slot + int64(i), slot + int64(i) + 1}
			*r = seal(t, *r)
		}
		return x
	}
	horizon := func(end int64) HoldDNSLeaseRenewalsRequest {
		return changed(t, 2, 1, func(r *DNSLeaseRenewal) {
			r.DNS = DNSWindow{slot + end - window, slot + end - window, slot + end}
		})
	}
	beyond := []string{`renewals: reaches more than 14400000 ms from the first issuedAt to the last expiresAt`}
	for name, tc := range map[string]struct {
		run  HoldDNSLeaseRenewalsRequest
		want []string
	}{
		"empty":             {gridRun(t, 0), nil},
		"grid of 23":        {gridRun(t, 23), nil},
		"grid of 24":        {gridRun(t, 24), beyond},
		"32 tight windows":  {tight(32), nil},
		"33 tight windows":  {tight(33), []string{`renewals: has more than 32 renewals`}},
		"34 tight windows":  {tight(34), []string{`renewals: has more elements than are read`}},
		"four hours":        {horizon(14_400_000), nil},
		"four hours and 1":  {horizon(14_400_001), beyond},
		"900000 ms":         {changed(t, 1, 0, func(r *DNSLeaseRenewal) { r.DNS.ExpiresAt = slot + 900_000 }), nil},
		"900001 ms":         {changed(t, 1, 0, func(r *DNSLeaseRenewal) { r.DNS.ExpiresAt = slot + 900_001 }), []string{`renewals[0].renewal.dns.expiresAt: is more than 900000 ms after issuedAt`}},
		"from the slot":     {changed(t, 1, 0, func(r *DNSLeaseRenewal) { r.DNS.NotBefore++; r.DNS.ExpiresAt++ }), []string{`renewals[0].renewal.dns.expiresAt: is more than 900000 ms after issuedAt`}},
		"opens with a slot": {changed(t, 1, 0, func(r *DNSLeaseRenewal) { r.DNS.NotBefore = r.DNS.IssuedAt - 1 }), []string{`renewals[0].renewal.dns.notBefore: is before issuedAt`}},
		"never opens":       {changed(t, 1, 0, func(r *DNSLeaseRenewal) { r.DNS.NotBefore = r.DNS.ExpiresAt }), []string{`renewals[0].renewal.dns.expiresAt: is not after notBefore`}},
		"opens for 1 ms":    {changed(t, 1, 0, func(r *DNSLeaseRenewal) { r.DNS.NotBefore = r.DNS.ExpiresAt - 1 }), nil},
	} {
		_, err := ReadHoldDNSLeaseRenewalsRequest(tc.run.AppendJSON(nil))
		if diff := cmp.Diff(tc.want, reasonsIn(t, err)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// R47: a renewal of another authority, controller, node, namespace or projection than
// its run is named by its path; another spelling of the same is none.
func TestR47_RunIsOfOnePiece(t *testing.T) {
	otherAuthority := gridRun(t, 3)
	otherAuthority.Renewals[2].Authority = Raw(`{"id":"signing","generation":3}`)
	sameAuthority := gridRun(t, 3)
	sameAuthority.Renewals[2].Authority = Raw(`{ "generation":2 , "id":"sign\u0069ng" }`)
	otherRun := gridRun(t, 1)
	otherRun.NodeID = "node_b"
	otherProjection := gridRun(t, 1)
	otherProjection.Projection.Generation++
	for name, tc := range map[string]struct {
		run  HoldDNSLeaseRenewalsRequest
		want []string
	}{
		"authority":        {otherAuthority, []string{`renewals[2].authority: is not that of the first renewal`}},
		"authority's text": {sameAuthority, nil},
		"controller": {changed(t, 3, 1, func(r *DNSLeaseRenewal) { r.Controller = Raw(`{"id":"c2","kind":"cloudly"}`) }),
			[]string{`renewals[1].renewal.controller: is not that of the first renewal`}},
		"controller's text": {changed(t, 3, 1, func(r *DNSLeaseRenewal) { r.Controller = Raw(`{"kind":"cloudly", "id":"c1"}`) }), nil},
		"node": {changed(t, 3, 0, func(r *DNSLeaseRenewal) { r.NodeID = "node_b" }),
			[]string{`renewals[0].renewal.nodeId: is not the node of the run`}},
		"node of the run": {otherRun, []string{`renewals[0].renewal.nodeId: is not the node of the run`}},
		"namespace": {changed(t, 3, 2, func(r *DNSLeaseRenewal) { r.RuntimeNamespace = "ns:2" }),
			[]string{`renewals[2].renewal.runtimeNamespace: is not that of the first renewal`}},
		"projection": {changed(t, 3, 2, func(r *DNSLeaseRenewal) { r.Projection.ID = "projection:2" }),
			[]string{`renewals[2].renewal.projection: is not the projection of the run`}},
		"projection of the run": {otherProjection, []string{`renewals[0].renewal.projection: is not the projection of the run`}},
	} {
		body := tc.run.AppendJSON(nil)
		_, err := ReadHoldDNSLeaseRenewalsRequest(body)
		if diff := cmp.Diff(tc.want, reasonsIn(t, err)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		_, refusal := AdmitHoldDNSLeaseRenewalsRequest(body)
		if (refusal != nil) != (tc.want != nil) || refusal != nil && refusal.Name != EscrowRunInvalid {
			t.Errorf("%s: refused as %v", name, refusal)
		}
	}
}

// R47: equal sequences, a falling issuedAt and an expiresAt that is not later are
// named; gaps between sequences and between windows are no fault.
func TestR47_RunIsInOrder(t *testing.T) {
	swapped := gridRun(t, 3)
	swapped.Renewals[1], swapped.Renewals[2] = swapped.Renewals[2], swapped.Renewals[1]
	equalSlot := changed(t, 2, 0, func(r *DNSLeaseRenewal) { r.DNS.ExpiresAt = slot + window - 1 })
	equalSlot.Renewals[1].Renewal.DNS = DNSWindow{slot, slot, slot + window}
	equalSlot.Renewals[1].Renewal = seal(t, equalSlot.Renewals[1].Renewal)
	for name, tc := range map[string]struct {
		run  HoldDNSLeaseRenewalsRequest
		want []string
	}{
		"grid":             {gridRun(t, 23), nil},
		"gap of sequences": {changed(t, 3, 2, func(r *DNSLeaseRenewal) { r.Sequence = 900 }), nil},
		"gap of windows": {changed(t, 3, 2, func(r *DNSLeaseRenewal) {
			r.DNS = DNSWindow{slot + 20*grid, slot + 20*grid, slot + 20*grid + window}
		}), nil},
		"equal issuedAt": {equalSlot, nil},
		"equal window": {changed(t, 2, 1, func(r *DNSLeaseRenewal) { r.DNS = DNSWindow{slot, slot, slot + window} }),
			[]string{`renewals[1].renewal.dns.expiresAt: is not later than the one before`}},
		"falling issuedAt": {changed(t, 2, 1, func(r *DNSLeaseRenewal) { r.DNS = DNSWindow{slot - 1, slot - 1, slot + window - 1} }),
			[]string{`renewals[1].renewal.dns.issuedAt: is earlier than the one before`, `renewals[1].renewal.dns.expiresAt: is not later than the one before`}},
		"equal expiresAt": {changed(t, 2, 1, func(r *DNSLeaseRenewal) { r.DNS = DNSWindow{slot + 1, slot + 1, slot + window} }),
			[]string{`renewals[1].renewal.dns.expiresAt: is not later than the one before`}},
		"1 ms later": {changed(t, 2, 1, func(r *DNSLeaseRenewal) { r.DNS = DNSWindow{slot + 1, slot + 1, slot + window + 1} }), nil},
		"equal sequence": {changed(t, 3, 2, func(r *DNSLeaseRenewal) { r.Sequence = 2 }),
			[]string{`renewals[2].renewal.sequence: is not higher than the one before`}},
		"swapped": {swapped, []string{`renewals[2].renewal.sequence: is not higher than the one before`,
			`renewals[2].renewal.dns.issuedAt: is earlier than the one before`, `renewals[2].renewal.dns.expiresAt: is not later than the one before`}},
	} {
		body := tc.run.AppendJSON(nil)
		x, err := ReadHoldDNSLeaseRenewalsRequest(body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tc.want, x.ValidateOrder()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		admitted, refusal := AdmitHoldDNSLeaseRenewalsRequest(body)
		switch {
		case tc.want == nil:
			if diff := cmp.Diff(x, admitted); diff != "" || refusal != nil {
				t.Errorf("%s: %v %s", name, refusal, diff)
			}
		case refusal == nil || refusal.Name != EscrowRunUnordered || !strings.Contains(refusal.Reason, tc.want[0]) || len(admitted.Renewals) > 0:
			t.Errorf("%s: refused as %v", name, refusal)
		}
	}
}

// R47, contract §9.3: a run that is neither valid nor in order is invalid.
func TestR47_InvalidComesBeforeUnordered(t *testing.T) {
	x := changed(t, 2, 1, func(r *DNSLeaseRenewal) { r.Sequence, r.RuntimeNamespace = 1, "ns:2" })
	_, refusal := AdmitHoldDNSLeaseRenewalsRequest(x.AppendJSON(nil))
	want := "escrow-run-invalid: invalid holdRuntimeNetworkDnsLeaseRenewals request: " +
		"renewals[1].renewal.runtimeNamespace: is not that of the first renewal"
	if refusal == nil || refusal.Text() != want {
		t.Errorf("got %v, want %s", refusal, want)
	}
}

// R06: one changed bit of any member of any renewal spoils its digest.
func TestR06_ChangedBitSpoilsTheDigest(t *testing.T) {
	whole := string(gridRun(t, 5).AppendJSON(nil))
	if x, refusal := AdmitHoldDNSLeaseRenewalsRequest([]byte(whole)); refusal != nil || len(x.Renewals) != 5 {
		t.Fatal(refusal)
	}
	for i := range 5 {
		r := gridRenewal(t, int64(i)).Renewal
		for member, flip := range map[string]func(r *DNSLeaseRenewal){
			"controller":            func(r *DNSLeaseRenewal) { r.Controller = Raw(`{"id":"c0","kind":"cloudly"}`) },
			"nodeId":                func(r *DNSLeaseRenewal) { r.NodeID = "-node_c" },
			"runtimeNamespace":      func(r *DNSLeaseRenewal) { r.RuntimeNamespace = "ns:0" },
			"projection.id":         func(r *DNSLeaseRenewal) { r.Projection.ID = "projection:0" },
			"projection.generation": func(r *DNSLeaseRenewal) { r.Projection.Generation ^= 1 },
			"projection.digest":     func(r *DNSLeaseRenewal) { r.Projection.Digest = strings.Replace(zeroDigest, ":0", ":1", 1) },
			"sequence":              func(r *DNSLeaseRenewal) { r.Sequence ^= 1 << 40 },
			"issuedAt":              func(r *DNSLeaseRenewal) { r.DNS.IssuedAt ^= 1 },
			"notBefore":             func(r *DNSLeaseRenewal) { r.DNS.NotBefore ^= 1 },
			"expiresAt":             func(r *DNSLeaseRenewal) { r.DNS.ExpiresAt ^= 1 },
		} {
			flipped := r
			flip(&flipped)
			body := with(t, whole, string(r.AppendJSON(nil)), string(flipped.AppendJSON(nil)))
			_, err := ReadHoldDNSLeaseRenewalsRequest([]byte(body))
			want := fmt.Sprintf(`renewals[%d].renewal.digest: is not the digest of the renewal`, i)
			if reasons := reasonsIn(t, err); !strings.Contains(strings.Join(reasons, "\n"), want) {
				t.Errorf("%s of renewal %d: %q", member, i, reasons)
			}
			_, refusal := AdmitHoldDNSLeaseRenewalsRequest([]byte(body))
			if refusal == nil || refusal.Name != EscrowRunInvalid {
				t.Errorf("%s of renewal %d: refused as %v", member, i, refusal)
			}
		}
	}
}

// R01: the node of a run and of each renewal is named by the rule of nodes.
func TestR01_RunNodeID(t *testing.T) {
	for id, want := range nodeIDs {
		x := changed(t, 1, 0, func(r *DNSLeaseRenewal) { r.NodeID = id })
		x.NodeID = id
		_, err := ReadHoldDNSLeaseRenewalsRequest(x.AppendJSON(nil))
		var reasons []string
		if !want {
			reasons = []string{`nodeId: is not a node id`, `renewals[0].renewal.nodeId: is not a node id`}
		}
		if diff := cmp.Diff(reasons, reasonsIn(t, err)); diff != "" {
			t.Errorf("%q: %s", id, diff)
		}
	}
}

func TestRunScope(t *testing.T) {
	if _, ok := gridRun(t, 0).Scope(); ok {
		t.Error("an empty run has a scope")
	}
	scope, ok := gridRun(t, 2).Scope()
	if want := (NodeScope{Raw(`{"kind":"cloudly","id":"c1"}`), "-node_a", "ns:1"}); !ok || !scope.Equal(want) {
		t.Errorf("got %+v", scope)
	}
}

// The rules of order agree with a run that is built step by step.
func TestRunOrderAgreesWithItsSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := HoldDNSLeaseRenewalsRequest{NodeID: "-node_a", Projection: runProjection}
		ordered := true
		r := gridRenewal(t, 0).Renewal
		for i := range rapid.IntRange(1, 6).Draw(t, "length") {
			if i > 0 {
				sequence := rapid.Int64Range(-1, 3).Draw(t, "sequence")
				issued := rapid.Int64Range(-1, 3).Draw(t, "issuedAt")
				expires := rapid.Int64Range(-1, 3).Draw(t, "expiresAt")
				ordered = ordered && sequence > 0 && issued >= 0 && expires > 0
				r.Sequence += sequence
				r.DNS.IssuedAt += issued
				r.DNS.ExpiresAt += expires
			}
			x.Renewals = append(x.Renewals, SignedDNSLeaseRenewal{Renewal: r})
		}
		if got := x.ValidateOrder(); (got == nil) != ordered {
			t.Errorf("ordered %v, got %q", ordered, got)
		}
	})
}
