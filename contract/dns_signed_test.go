package contract

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func readSignedAlone(body []byte) (SignedDNSLeaseRenewal, error) {
	return readAs[SignedDNSLeaseRenewal]("signed renewal", body, 0)
}

// R04: a member more is refused at every exact level of a signed renewal, with its
// path.
func TestR04_SignedDNSLeaseRenewal(t *testing.T) {
	checkExactKeys(t, string(gridRenewal(t, 0).AppendJSON(nil)), []string{"authority", "renewal.controller"}, errorOf(readSignedAlone))
}

func TestSignedDNSLeaseRenewal(t *testing.T) {
	body := string(gridRenewal(t, 0).AppendJSON(nil))
	const authority, signature = `{"id":"signing","generation":2}`, `c2lnbmF0dXJl`
	checkBodies(t, readSignedAlone, []bodyCase{
		{"whole", body, nil},
		{"missing", `{"renewal":{"controller":{}}}`, []string{`renewal.nodeId: is missing`, `renewal.runtimeNamespace: is missing`,
			`renewal.projection: is missing`, `renewal.sequence: is missing`, `renewal.dns: is missing`, `renewal.digest: is missing`,
			`authority: is missing`, `signature: is missing`}},
		{"twice", with(t, body, `{"authority"`, `{"\u0061uthority":1,"authority"`), []string{`authority: is given twice`}},
		{"authority of another kind", with(t, body, authority, `"signing:2"`), nil},
		{"authority null", with(t, body, authority, `null`), []string{`authority: is null`}},
		{"authority repeats", with(t, body, authority, `{"a":1,"\u0061":1}`), []string{`authority: has no canonical form`}},
		{"authority with a fraction", with(t, body, authority, `[1.5]`), []string{`authority: has no canonical form`}},
		{"longest signature", with(t, body, signature, strings.Repeat("s", 128)), nil},
		{"signature too long", with(t, body, signature, strings.Repeat("s", 129)), []string{`signature: has more than 128 bytes`}},
		{"signature empty", with(t, body, signature, ``), []string{`signature: is empty`}},
	})
	checkWritten(t, drawSigned, readSignedAlone)
}

// R52: the bytes that came are the bytes that leave, whatever their spelling.
func TestR52_SignedRenewalKeepsItsBytes(t *testing.T) {
	body := with(t, string(gridRenewal(t, 0).AppendJSON(nil)), `"sequence":1`, ` "s\u0065quence" : 1 `)
	x, err := readSignedAlone([]byte("\n" + body + " "))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(x.AppendJSON(nil)); got != body {
		t.Errorf("written as %s", got)
	}
}

// drawSigned draws a record as it is after a read.
func drawSigned(t *rapid.T) SignedDNSLeaseRenewal {
	x := SignedDNSLeaseRenewal{
		Authority: rapid.SampledFrom([]Raw{Raw(`{"id":"signing","generation":2}`), Raw(`"signing:2"`), Raw(`[]`)}).Draw(t, "authority"),
		Renewal:   drawRenewal(t),
		Signature: rapid.StringMatching(`[A-Za-z0-9+/]{1,86}==`).Draw(t, "signature"),
	}
	x.Received = x.AppendJSON(nil)
	return x
}
