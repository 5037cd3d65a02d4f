package contract

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const ingressAcceptedText = `{"accepted":true,"revision":5,"protocol":` + offerText + `}`

func TestIngressAccepted(t *testing.T) {
	checkBodies(t, ReadIngressAccepted, []bodyCase{
		{"whole", ingressAcceptedText, nil},
		{"no table yet", with(t, ingressAcceptedText, "5", "null"), nil},
		{"more is ignored", with(t, ingressAcceptedText, `"revision"`, `"later":{"x":1.5},"revision"`), nil},
		{"more that repeats a name", with(t, ingressAcceptedText, `"revision"`, `"later":{"x":1,"x":2},"revision"`),
			[]string{"body: an ignored member repeats a name or holds a lone surrogate"}},
		{"the offer is exact", with(t, ingressAcceptedText, `"interfacesVersion"`, `"x":1,"interfacesVersion"`), []string{`protocol: unknown member "x"`}},
		{"missing", `{}`, []string{"accepted: is missing", "revision: is missing", "protocol: is missing"}},
		{"twice", with(t, ingressAcceptedText, `"revision"`, `"\u0061ccepted":true,"revision"`), []string{"accepted: is given twice"}},
		{"not accepted", with(t, ingressAcceptedText, "true", "false"), []string{"accepted: is not true"}},
		{"kinds", `{"accepted":1,"revision":"5","protocol":null}`, []string{"accepted: is not a boolean", "revision: is not a number", "protocol: is not an object"}},
		{"rules", `{"accepted":true,"revision":0,"protocol":{"interfacesVersion":"32.1.0","minimumPeerVersion":"33.0.0"}}`, []string{
			"revision: is not a counter", "protocol.minimumPeerVersion: is of another major than interfacesVersion",
			"protocol.minimumPeerVersion: is above interfacesVersion"}},
	})
	checkWritten(t, func(t *rapid.T) IngressAccepted {
		return IngressAccepted{rapid.Ptr(rapid.Int64Range(1, MaximumSafeInteger), true).Draw(t, "revision"), drawOffer(t, "protocol")}
	}, ReadIngressAccepted)
}

// R71: each of the eight reasons is read and written with waits from 1,000 to 300,000
// ms; another code, reason, wait or member makes it no refusal.
func TestR71_OnlyAWholeIngressRefusalIsOne(t *testing.T) {
	const whole = `{"code":"cluster-ingress-registration-refused","reason":"conflict","retryAfterMs":5000}`
	for _, reason := range []string{"not-ready", "registration-invalid", "relay-not-connected", "ingress-not-designated",
		"node-mismatch", "assignment-not-running", "bearer-refused", "conflict"} {
		for _, wait := range []int64{1000, 300_000} {
			data := fmt.Sprintf(`{"code":"cluster-ingress-registration-refused","reason":%q,"retryAfterMs":%d}`, reason, wait)
			got, ok := ReadIngressRegistrationRefusal([]byte(data))
			want := IngressRegistrationRefusal{RefusalName(reason), wait}
			if !ok || got != want || string(got.AppendData(nil)) != data || got.Error() != "cluster-ingress-registration-refused: "+reason || got.Validate() != nil {
				t.Errorf("%s: got %v, %v", data, got, ok)
			}
		}
	}
	for _, data := range []string{
		"", "null", "[]", "{}", whole + "x",
		with(t, whole, "conflict", "Conflict"),
		with(t, whole, "conflict", "relay-not-ready"),
		with(t, whole, "cluster-ingress-registration-refused", "protocol-incompatible"),
		with(t, whole, "5000", "999"), with(t, whole, "5000", "300001"), with(t, whole, "5000", "5e3"), with(t, whole, "5000", `"5000"`),
		with(t, whole, `"reason":"conflict",`, ``), with(t, whole, `,"retryAfterMs":5000`, ``), with(t, whole, `"code":"cluster-ingress-registration-refused",`, ``),
		with(t, whole, `5000`, `5000,"bearer":"b"`), with(t, whole, `5000`, `5000,"r\u0065ason":"conflict"`),
	} {
		if got, ok := ReadIngressRegistrationRefusal([]byte(data)); ok || got != (IngressRegistrationRefusal{}) {
			t.Errorf("%s: reads as %v", data, got)
		}
	}
	if diff := cmp.Diff([]string{"reason: is not a known reason", "retryAfterMs: is not within 1000 to 300000"},
		IngressRegistrationRefusal{"relay-overloaded", 300_001}.Validate()); diff != "" {
		t.Error(diff)
	}
}

func readIngressRefusalAsError(data []byte) (IngressRegistrationRefusal, error) {
	x, ok := ReadIngressRegistrationRefusal(data)
	if !ok {
		return x, &InvalidError{What: "refusal", Reasons: []string{"body: is no refusal"}}
	}
	return x, nil
}

func FuzzReadIngressRegistrationRefusal(f *testing.F) {
	fuzzReader(f, readIngressRefusalAsError, `{"code":"cluster-ingress-registration-refused","reason":"conflict","retryAfterMs":5000}`, `{"code":""}`)
}

func FuzzReadIngressAccepted(f *testing.F) {
	fuzzReader(f, ReadIngressAccepted, ingressAcceptedText, `{"accepted":false,"revision":null,"protocol":{}}`)
}
