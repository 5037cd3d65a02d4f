package contract

import (
	"testing"

	"pgregory.net/rapid"
)

// R04: a member more is refused at every exact level of a hold, with its path.
func TestR04_HoldDNSLeaseRenewalsRequest(t *testing.T) {
	checkExactKeys(t, string(gridRun(t, 2).AppendJSON(nil)), []string{"renewals[0].authority", "renewals[1].authority",
		"renewals[0].renewal.controller", "renewals[1].renewal.controller"}, errorOf(ReadHoldDNSLeaseRenewalsRequest))
}

func TestHoldDNSLeaseRenewalsRequest(t *testing.T) {
	checkBodies(t, ReadHoldDNSLeaseRenewalsRequest, []bodyCase{
		{"empty run", `{"nodeId":"_a","projection":` + referenceText + `,"renewals":[]}`, nil},
		{"missing", `{}`, []string{`nodeId: is missing`, `projection: is missing`, `renewals: is missing`}},
		{"missing inside", `{"nodeId":"a","projection":` + referenceText + `,"renewals":[{}]}`, []string{
			`renewals[0].authority: is missing`, `renewals[0].renewal: is missing`, `renewals[0].signature: is missing`}},
		{"twice", `{"nodeId":"a","nod\u0065Id":"a","projection":` + referenceText + `,"renewals":[]}`, []string{`nodeId: is given twice`}},
		{"kinds", `{"nodeId":null,"projection":null,"renewals":null}`, []string{
			`nodeId: is not a string`, `projection: is not an object`, `renewals: is not an array`}},
		{"empty run is judged", `{"nodeId":"a.b","projection":` + with(t, referenceText, `"generation":3`, `"generation":0`) + `,"renewals":[]}`,
			[]string{`nodeId: is not a node id`, `projection.generation: is not a counter`}},
	})
	checkWritten(t, drawRun, ReadHoldDNSLeaseRenewalsRequest)
}

// drawRun draws a run in order, as it is after a read.
func drawRun(t *rapid.T) HoldDNSLeaseRenewalsRequest {
	first := drawSigned(t)
	x := HoldDNSLeaseRenewalsRequest{first.Renewal.NodeID, first.Renewal.Projection, []SignedDNSLeaseRenewal{}}
	sequence, issued, expires := int64(0), slot, slot
	for range rapid.IntRange(0, 6).Draw(t, "length") {
		sequence += rapid.Int64Range(1, 5).Draw(t, "sequence")
		issued += rapid.Int64Range(0, 400_000).Draw(t, "issuedAt")
		expires = max(expires, issued) + 1
		r := first
		r.Renewal.Sequence = sequence
		r.Renewal.DNS = DNSWindow{issued, issued, expires}
		r.Renewal = seal(t, r.Renewal)
		r.Received = nil
		r.Received = r.AppendJSON(nil)
		x.Renewals = append(x.Renewals, r)
	}
	return x
}

func TestHoldDNSLeaseRenewalsAnswer(t *testing.T) {
	checkBodies(t, ReadHoldDNSLeaseRenewalsAnswer, []bodyCase{
		{"none", `{"held":0}`, nil},
		{"others are ignored", `{"held":3,"until":1.5}`, nil},
		{"missing", `{}`, []string{`held: is missing`}},
		{"twice", `{"held":1,"h\u0065ld":1}`, []string{`held: is given twice`}},
		{"negative", `{"held":-1}`, []string{`held: is not a count`}},
	})
	checkWritten(t, func(t *rapid.T) HoldDNSLeaseRenewalsAnswer {
		return HoldDNSLeaseRenewalsAnswer{drawCount(t, "held")}
	}, ReadHoldDNSLeaseRenewalsAnswer)
}

// R45: a hold is answered by the number of renewals that it holds and by no other.
func TestR45_HoldIsAnsweredByItsNumber(t *testing.T) {
	for _, n := range []int{0, 3, 23} {
		for _, held := range []int{0, 2, 3, 4, 23} {
			got := HoldDNSLeaseRenewalsAnswer{int64(held)}.Answers(gridRun(t, n))
			if got != (n == held) {
				t.Errorf("%d held answers %d sent: %v", held, n, got)
			}
		}
	}
}

func FuzzReadHoldDNSLeaseRenewalsRequest(f *testing.F) {
	fuzzReader(f, ReadHoldDNSLeaseRenewalsRequest, string(gridRun(f, 2).AppendJSON(nil)),
		`{"nodeId":"_a","projection":`+referenceText+`,"renewals":[]}`, `{"renewals":[{"renewal":{"dns":{}}}]}`)
}

func FuzzReadHoldDNSLeaseRenewalsAnswer(f *testing.F) {
	fuzzReader(f, ReadHoldDNSLeaseRenewalsAnswer, `{"held":23}`, `{"held":-0}`)
}
