package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func applyText(t testing.TB) string {
	return `{"session":` + sessionText + `,"signed":` + string(gridRenewal(t, 0).AppendJSON(nil)) + `}`
}

// R52: the request that delivers a renewal holds session and record with the very bytes
// that came, however they are spelled.
func TestR52_RenewalIsDeliveredAroundItsBytes(t *testing.T) {
	binding, err := ReadSessionBinding([]byte(sessionAnswerText), "-abc")
	if err != nil {
		t.Fatal(err)
	}
	signedText := with(t, string(gridRenewal(t, 0).AppendJSON(nil)), `"signature":`, "\t\"sign\\u0061ture\" :  ")
	run, refusal := AdmitHoldDNSLeaseRenewalsRequest([]byte(`{"renewals":[` + signedText + `],"nodeId":"-node_a","projection":` +
		string(runProjection.AppendJSON(nil)) + `}`))
	if refusal != nil {
		t.Fatal(refusal)
	}
	got := string(ApplyDNSLeaseRenewalRequest{binding.Received, run.Renewals[0]}.AppendJSON(nil))
	if want := `{"session":` + sessionText + `,"signed":` + signedText + `}`; got != want {
		t.Error(cmp.Diff(want, got))
	}
}

// R04: a member more is refused at every exact level of a renewal's delivery, with its
// path.
func TestR04_ApplyDNSLeaseRenewalRequest(t *testing.T) {
	checkExactKeys(t, applyText(t), []string{"session", "signed.authority", "signed.renewal.controller"}, errorOf(ReadApplyDNSLeaseRenewalRequest))
}

func TestApplyDNSLeaseRenewalRequest(t *testing.T) {
	checkBodies(t, ReadApplyDNSLeaseRenewalRequest, []bodyCase{
		{"whole", applyText(t), nil},
		{"missing", `{}`, []string{`session: is missing`, `signed: is missing`}},
		{"session null", with(t, applyText(t), sessionText, `null`), []string{`session: is not an object`}},
		{"signature", with(t, applyText(t), `"c2lnbmF0dXJl"`, `""`), []string{`signed.signature: is empty`}},
	})
	composed := ApplyDNSLeaseRenewalRequest{Raw(`"session"`), gridRenewal(t, 0)}
	if diff := cmp.Diff([]string{`session: is not an object`}, composed.Validate()); diff != "" {
		t.Error(diff)
	}
	checkWritten(t, func(t *rapid.T) ApplyDNSLeaseRenewalRequest {
		return ApplyDNSLeaseRenewalRequest{Raw(sessionText), drawSigned(t)}
	}, ReadApplyDNSLeaseRenewalRequest)
}

func TestApplyDNSLeaseRenewalAnswer(t *testing.T) {
	const body = `{"status":"accepted","renewal":{"projection":` + referenceText + `,"sequence":7,"digest":"` + zeroDigest + `"}}`
	checkBodies(t, ReadApplyDNSLeaseRenewalAnswer, []bodyCase{
		{"whole", body, nil},
		{"any status", with(t, body, `accepted`, `novel status`), nil},
		{"others are ignored", with(t, with(t, body, `"sequence"`, `"admittedAt":1.5,"sequence"`), `{"status"`, `{"x":null,"status"`), nil},
		{"missing", `{}`, []string{`status: is missing`, `renewal: is missing`}},
		{"missing inside", `{"renewal":{}}`, []string{`renewal.projection: is missing`, `renewal.sequence: is missing`, `renewal.digest: is missing`, `status: is missing`}},
		{"twice", with(t, body, `"sequence":7`, `"sequence":7,"s\u0065quence":7`), []string{`renewal.sequence: is given twice`}},
		{"rules", with(t, with(t, body, `"sequence":7,"digest":"sha256:`, `"sequence":0,"digest":"`), `"generation":3`, `"generation":-1`), []string{
			`renewal.projection.generation: is not a counter`, `renewal.sequence: is not a counter`, `renewal.digest: is not a digest`}},
	})
	checkWritten(t, drawApplyAnswer, ReadApplyDNSLeaseRenewalAnswer)
}

func drawApplyAnswer(t *rapid.T) ApplyDNSLeaseRenewalAnswer {
	return ApplyDNSLeaseRenewalAnswer{rapid.String().Draw(t, "status"),
		DNSLeaseRenewalReference{drawReference(t, "projection"), drawCounter(t, "sequence"), drawDigest(t, "digest")}}
}

// R53: an answer whose projection, sequence or digest is not that of the renewal that
// was sent answers nothing.
func TestR53_DeliveryIsAnsweredByItsReference(t *testing.T) {
	sent := gridRenewal(t, 0).Renewal
	if !(ApplyDNSLeaseRenewalAnswer{"replay", sent.Reference()}).Answers(sent) {
		t.Error("the reference of what was sent is no answer")
	}
	for name, change := range map[string]func(x *DNSLeaseRenewalReference){
		"id":                func(x *DNSLeaseRenewalReference) { x.Projection.ID += "x" },
		"generation":        func(x *DNSLeaseRenewalReference) { x.Projection.Generation++ },
		"projection digest": func(x *DNSLeaseRenewalReference) { x.Projection.Digest = sent.Digest },
		"sequence":          func(x *DNSLeaseRenewalReference) { x.Sequence++ },
		"digest":            func(x *DNSLeaseRenewalReference) { x.Digest = zeroDigest },
	} {
		reference := sent.Reference()
		change(&reference)
		if (ApplyDNSLeaseRenewalAnswer{"accepted", reference}).Answers(sent) {
			t.Errorf("another %s is an answer", name)
		}
	}
}

func FuzzReadApplyDNSLeaseRenewalRequest(f *testing.F) {
	fuzzReader(f, ReadApplyDNSLeaseRenewalRequest, applyText(f), `{"session":{},"signed":{}}`)
}

func FuzzReadApplyDNSLeaseRenewalAnswer(f *testing.F) {
	fuzzReader(f, ReadApplyDNSLeaseRenewalAnswer,
		`{"status":"replay","renewal":{"projection":`+referenceText+`,"sequence":7,"digest":"`+zeroDigest+`"}}`, `{"renewal":{"x":1,"x":2}}`)
}
