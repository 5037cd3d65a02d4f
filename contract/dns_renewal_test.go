package contract

import (
	"testing"

	"pgregory.net/rapid"
)

func readRenewalAlone(body []byte) (DNSLeaseRenewal, error) {
	return readAs[DNSLeaseRenewal]("dns lease renewal", body, 0)
}

// R04: a member more is refused at every exact level of a renewal, with its path.
func TestR04_DNSLeaseRenewal(t *testing.T) {
	checkExactKeys(t, string(gridRenewal(t, 0).Renewal.AppendJSON(nil)), []string{"controller"}, errorOf(readRenewalAlone))
}

func TestDNSLeaseRenewal(t *testing.T) {
	body := string(gridRenewal(t, 0).Renewal.AppendJSON(nil))
	checkBodies(t, readRenewalAlone, []bodyCase{
		{"whole", body, nil},
		{"missing", `{"projection":{},"dns":{}}`, []string{
			`projection.id: is missing`, `projection.generation: is missing`, `projection.digest: is missing`,
			`dns.issuedAt: is missing`, `dns.notBefore: is missing`, `dns.expiresAt: is missing`,
			`controller: is missing`, `nodeId: is missing`, `runtimeNamespace: is missing`, `sequence: is missing`, `digest: is missing`}},
		{"kinds", `{"controller":"cloudly","nodeId":1,"runtimeNamespace":1,"projection":[],"sequence":1.0,"dns":null,"digest":1}`, []string{
			`controller: is not an object`, `nodeId: is not a string`, `runtimeNamespace: is not a string`, `projection: is not an object`,
			`sequence: is not a plain safe integer`, `dns: is not an object`, `digest: is not a string`}},
		{"rules", `{"controller":{"a":1,"a":2},"nodeId":"","runtimeNamespace":"-","projection":{"id":"","generation":0,"digest":""},` +
			`"sequence":0,"dns":{"issuedAt":-3,"notBefore":-2,"expiresAt":-1},"digest":""}`, []string{
			`controller: has no canonical form`, `nodeId: is not a node id`, `runtimeNamespace: is not a canonical identifier`,
			`projection.id: is not a canonical identifier`, `projection.generation: is not a counter`, `projection.digest: is not a digest`,
			`sequence: is not a counter`, `dns.issuedAt: is not a time in unix milliseconds`, `dns.notBefore: is not a time in unix milliseconds`,
			`dns.expiresAt: is not a time in unix milliseconds`, `digest: is not a digest`}},
		{"fraction in the controller", with(t, body, `"kind":"cloudly"`, `"kind":1.5`), []string{`controller: has no canonical form`}},
		{"zero digest", with(t, body, gridRenewal(t, 0).Renewal.Digest, zeroDigest), []string{`digest: is not the digest of the renewal`}},
	})
	checkWritten(t, drawRenewal, readRenewalAlone)
}

// R06: the digest is of the content: neither spelling nor order change it.
func TestR06_DigestIsOfTheContent(t *testing.T) {
	r := gridRenewal(t, 0).Renewal
	r.Controller = Raw(` {"kind" : "\u0063loudly" , "id":"c1"} `)
	digest, err := r.ComputeDigest()
	if want := gridRenewal(t, 0).Renewal.Digest; err != nil || digest != want {
		t.Errorf("got %s, %v, want %s", digest, err, want)
	}
	r.Controller = Raw(`{"kind":"cloudly","kind":"cloudly"}`)
	if digest, err := r.ComputeDigest(); err == nil {
		t.Errorf("a controller without a canonical form has the digest %s", digest)
	}
}

func drawRenewal(t *rapid.T) DNSLeaseRenewal {
	issued := drawCount(t, "issuedAt")/2 + 1
	notBefore := issued + rapid.Int64Range(0, window-1).Draw(t, "notBefore")
	return seal(t, DNSLeaseRenewal{
		Controller:       Raw(`{"kind":"cloudly","id":` + string(appendString(nil, rapid.String().Draw(t, "controller"))) + `}`),
		NodeID:           drawNodeID(t, "nodeId"),
		RuntimeNamespace: drawIdentifier(t, "runtimeNamespace"),
		Projection:       drawReference(t, "projection"),
		Sequence:         drawCounter(t, "sequence"),
		DNS:              DNSWindow{issued, notBefore, rapid.Int64Range(notBefore+1, issued+window).Draw(t, "expiresAt")},
	})
}
