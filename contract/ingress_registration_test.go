package contract

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const ingressRegistrationText = `{"bearer":"marked-bearer","version":"3.0.0","nodeId":"node-a","protocol":` + offerText + `}`

func TestIngressRegistration(t *testing.T) {
	version := func(n int) string {
		return with(t, ingressRegistrationText, `"3.0.0"`, `"`+strings.Repeat("9", n)+`"`)
	}
	capable := func(value string) string {
		return with(t, ingressRegistrationText, `"nodeId"`, `"capabilities":`+value+`,"nodeId"`)
	}
	checkBodies(t, ReadIngressRegistration, []bodyCase{
		{"whole", ingressRegistrationText, nil},
		{"capabilities may be anything", capable(`["a",{"b":1.5}]`), nil},
		{"but repeat no name", capable(`["a",{"b":1,"b":2}]`), []string{"capabilities: repeats a name or holds a lone surrogate"}},
		{"capabilities may be null", capable(`null`), nil},
		{"missing", `{}`, []string{"bearer: is missing", "version: is missing", "nodeId: is missing", "protocol: is missing"}},
		{"missing inside", with(t, ingressRegistrationText, offerText, `{}`), []string{
			"protocol.interfacesVersion: is missing", "protocol.minimumPeerVersion: is missing"}},
		{"unknown", with(t, ingressRegistrationText, `"nodeId"`, `"marked-bearer":1,"nodeId"`), []string{"body: unknown member"}},
		{"unknown inside", with(t, ingressRegistrationText, `"interfacesVersion"`, `"marked":1,"interfacesVersion"`), []string{"protocol: unknown member"}},
		{"twice", with(t, ingressRegistrationText, `"nodeId"`, `"b\u0065arer":"x","nodeId"`), []string{"bearer: is given twice"}},
		{"kinds", `{"bearer":null,"version":3,"nodeId":[],"protocol":"32"}`, []string{"bearer: is not a string", "version: is not a string",
			"nodeId: is not a string", "protocol: is not an object"}},
		{"no bearer", with(t, ingressRegistrationText, "marked-bearer", ""), []string{"bearer: is empty"}},
		{"longest version", version(128), nil},
		{"longer version", version(129), []string{"version: is not 1 to 128 printable characters"}},
		{"no version", version(0), []string{"version: is not 1 to 128 printable characters"}},
		{"version with a space", with(t, ingressRegistrationText, "3.0.0", "3 0"), []string{"version: is not 1 to 128 printable characters"}},
		{"another version", with(t, ingressRegistrationText, "3.0.0", "v3.1-beta+1"), nil},
		{"rules", `{"bearer":"b","version":"1","nodeId":"a.b","protocol":{"interfacesVersion":"32","minimumPeerVersion":"32.0.0"}}`, []string{
			"nodeId: is not a node id", "protocol.interfacesVersion: is not a release version"}},
	})
}

// R74: whatever is wrong with a registration, no reason repeats the bearer; no print
// shows it, and it can be wiped.
func TestR74_IngressBearerIsNowhere(t *testing.T) {
	const marker = "marked-bearer"
	for _, body := range []string{
		ingressRegistrationText[:60],
		with(t, ingressRegistrationText, `"3.0.0"`, `["`+marker+`"]`),
		with(t, ingressRegistrationText, `"node-a"`, `"`+marker+`."`),
		with(t, ingressRegistrationText, `"nodeId"`, `"`+marker+`":"`+marker+`","nodeId"`),
		with(t, ingressRegistrationText, `"nodeId"`, `"bearer":"`+marker+`","nodeId"`),
		with(t, ingressRegistrationText, `"marked-bearer"`, `{"`+marker+`":"`+marker+`"}`),
		ingressRegistrationText + marker,
	} {
		_, err := ReadIngressRegistration([]byte(body))
		if reasons := reasonsIn(t, err); len(reasons) == 0 || strings.Contains(fmt.Sprint(reasons, err), marker) {
			t.Errorf("%s: %q", body, reasons)
		}
	}
	x, err := ReadIngressRegistration([]byte(ingressRegistrationText))
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if shown := fmt.Sprintf(verb, x); strings.Contains(shown, marker) || strings.Contains(shown, fmt.Sprintf("%x", marker)) {
			t.Errorf("%s shows %s", verb, shown)
		}
	}
	bearer := x.Bearer
	x.Zero()
	if strings.Trim(string(bearer), "\x00") != "" {
		t.Error("the bearer outlives Zero")
	}
}

func TestIngressRegistrationWritten(t *testing.T) {
	checkWritten(t, func(t *rapid.T) IngressRegistration {
		x := IngressRegistration{
			Bearer:   Secret(rapid.StringN(1, 20, -1).Draw(t, "bearer")),
			Version:  rapid.StringMatching(`[!-~]{1,128}`).Draw(t, "version"),
			NodeID:   drawNodeID(t, "node"),
			Protocol: drawOffer(t, "protocol"),
		}
		if rapid.Bool().Draw(t, "capable") {
			x.Capabilities = drawPlain(t, "capabilities")
		}
		return x
	}, ReadIngressRegistration)
}

// R70: the offer is readable whatever else is wrong, so that it can be negotiated
// first.
func TestR70_OfferIsReadBeforeTheRegistration(t *testing.T) {
	body := []byte(`{"bearer":7,"x":[],"x":1,"protocol":` + offerText + `}`)
	offer, err := ReadOffer(body)
	if err != nil || offer.InterfacesVersion != "32.44.0" {
		t.Errorf("got %v, %v", offer, err)
	}
	if _, err := ReadIngressRegistration(body); err == nil {
		t.Error("the registration is taken")
	}
}

func FuzzReadIngressRegistration(f *testing.F) {
	fuzzReader(f, ReadIngressRegistration, ingressRegistrationText, `{"bearer":"\u0061","capabilities":[1.5],"version":"","nodeId":"-","protocol":{}}`)
}
