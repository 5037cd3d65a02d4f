package contract

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	hubText          = `{"publicKey":"` + keyText + `","address":"192.0.2.1","quicPort":4433}`
	registrationText = `{"protocol":` + offerText + `,"relay":{"version":"4.0.0","nodeId":"node-a",` +
		`"listenAddress":"10.0.4.7","listenPort":8443,"vpnHub":` + hubText + `},"registrationSequence":0}`
)

// nodeIDs is the vocabulary of node ids, which is not the canonical one.
var nodeIDs = map[string]bool{
	"-abc": true, "_abc": true, "-": true, strings.Repeat("a", 128): true,
	"a.b": false, "a:b": false, "": false, strings.Repeat("a", 129): false, "a b": false, "ä": false, "a\n": false,
}

// R04: a member more is refused at every level of the relay's registration, with its
// path.
func TestR04_RelayRegistrationRequest(t *testing.T) {
	checkExactKeys(t, registrationText, nil, errorOf(ReadRelayRegistrationRequest))
}

func TestRelayRegistrationRequest(t *testing.T) {
	checkBodies(t, ReadRelayRegistrationRequest, []bodyCase{
		{"whole", registrationText, nil},
		{"missing", `{}`, []string{`protocol: is missing`, `relay: is missing`, `registrationSequence: is missing`}},
		{"missing inside", `{"relay":{},"protocol":{}}`, []string{
			`relay.version: is missing`, `relay.nodeId: is missing`, `relay.listenAddress: is missing`, `relay.listenPort: is missing`,
			`protocol.interfacesVersion: is missing`, `protocol.minimumPeerVersion: is missing`, `registrationSequence: is missing`}},
		{"missing in hub", with(t, registrationText, hubText, `{}`), []string{`relay.vpnHub.publicKey: is missing`,
			`relay.vpnHub.address: is missing`, `relay.vpnHub.quicPort: is missing`}},
		{"twice", with(t, registrationText, `"version"`, `"v\u0065rsion":"4.0.0","version"`), []string{`relay.version: is given twice`}},
		{"rules", `{"protocol":{"interfacesVersion":"32.0.0","minimumPeerVersion":"32.0.1"},"relay":{"version":"v4","nodeId":"a.b",` +
			`"listenAddress":"relay","listenPort":0,"vpnHub":{"publicKey":"","address":"","quicPort":65536}},"registrationSequence":-1}`, []string{
			`protocol.minimumPeerVersion: is above interfacesVersion`, `relay.version: is not a release version`,
			`relay.nodeId: is not a node id`, `relay.listenAddress: is not a canonical ipv4 literal`, `relay.listenPort: is not a port`,
			`relay.vpnHub.publicKey: is not a canonical noise key`, `relay.vpnHub.address: is not a unicast ipv4 literal`,
			`relay.vpnHub.quicPort: is not a port`, `registrationSequence: is not a count`}},
		{"last port", with(t, registrationText, `8443`, `65535`), nil},
		{"port beyond", with(t, registrationText, `8443`, `65536`), []string{`relay.listenPort: is not a port`}},
		{"last sequence", with(t, registrationText, `"registrationSequence":0`, `"registrationSequence":9007199254740991`), nil},
		{"sequence beyond", with(t, registrationText, `"registrationSequence":0`, `"registrationSequence":9007199254740992`),
			[]string{`registrationSequence: is not a plain safe integer`}},
	})
	checkWritten(t, drawRegistration, ReadRelayRegistrationRequest)
}

// R01: the node of a relay's registration is named by the rule of nodes.
func TestR01_RelayRegistrationNodeID(t *testing.T) {
	for id, want := range nodeIDs {
		_, err := ReadRelayRegistrationRequest([]byte(with(t, registrationText, `"node-a"`, string(appendString(nil, id)))))
		if got := reasonsIn(t, err); want != (got == nil) || !want && got[0] != `relay.nodeId: is not a node id` {
			t.Errorf("%q: %q", id, got)
		}
	}
}

// R14: a registration with an address that is no IPv4 literal, loopback, link-local,
// unspecified, multicast or broadcast is refused by that name; under test loopback
// alone is admitted.
func TestR14_ListenAddress(t *testing.T) {
	for address, want := range map[string]AddressFault{
		"10.0.4.7":        "",
		"203.0.113.9":     "",
		"relay.example":   AddressNotIPv4,
		"2001:db8::1":     AddressNotIPv4,
		"::ffff:10.0.4.7": AddressNotIPv4,
		"010.0.4.7":       AddressNotIPv4,
		"10.0.4.7 ":       AddressNotIPv4,
		"":                AddressNotIPv4,
		"127.0.0.1":       AddressLoopback,
		"127.8.0.1":       AddressLoopback,
		"169.254.1.1":     AddressLinkLocal,
		"0.0.0.0":         AddressUnspecified,
		"224.0.0.1":       AddressMulticast,
		"255.255.255.255": AddressBroadcast,
	} {
		body := []byte(with(t, registrationText, `"10.0.4.7"`, `"`+address+`"`))
		var reasons []string
		if want != "" {
			reasons = []string{"relay.listenAddress: " + string(want)}
		}
		_, err := ReadRelayRegistrationRequest(body)
		if diff := cmp.Diff(reasons, reasonsIn(t, err)); diff != "" {
			t.Errorf("%q: %s", address, diff)
		}
		if want == AddressLoopback {
			reasons = nil
		}
		x, err := ReadLoopbackRelayRegistrationRequest(body)
		if diff := cmp.Diff(reasons, reasonsIn(t, err)); diff != "" {
			t.Errorf("%q under test: %s", address, diff)
		}
		if err == nil && (x.Relay.ListenAddress != address || x.ValidateLoopback() != nil) {
			t.Errorf("%q under test reads as %q", address, x.Relay.ListenAddress)
		}
	}
}

// R14: a registration under test is judged in everything but loopback.
func TestR14_LoopbackRegistrationIsJudgedOtherwise(t *testing.T) {
	body := with(t, with(t, registrationText, `"10.0.4.7"`, `"127.0.0.1"`), `8443`, `0`)
	_, err := ReadLoopbackRelayRegistrationRequest([]byte(body))
	if diff := cmp.Diff([]string{`relay.listenPort: is not a port`}, reasonsIn(t, err)); diff != "" {
		t.Error(diff)
	}
}

// R15: a registration without a hub is read and written without the member; a hub's key
// that is not 32 bytes of canonical base64, its address and its port are refused by
// name.
func TestR15_VPNHubIsOptionalAndJudged(t *testing.T) {
	noHub := with(t, registrationText, `,"vpnHub":`+hubText, ``)
	x, err := ReadRelayRegistrationRequest([]byte(noHub))
	if err != nil || x.Relay.VPNHub != nil {
		t.Errorf("without a hub: %+v, %v", x.Relay.VPNHub, err)
	}
	if got := string(x.AppendJSON(nil)); got != noHub {
		t.Errorf("written as %s", got)
	}
	key := []string{`relay.vpnHub.publicKey: is not a canonical noise key`}
	address := []string{`relay.vpnHub.address: is not a unicast ipv4 literal`}
	checkBodies(t, ReadRelayRegistrationRequest, []bodyCase{
		{"null", with(t, registrationText, hubText, `null`), []string{`relay.vpnHub: is not an object`}},
		{"31 bytes", with(t, registrationText, keyText, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg=="), key},
		{"33 bytes", with(t, registrationText, keyText, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g"), key},
		{"spare bits", with(t, registrationText, "Hh8=", "Hh9="), key},
		{"no padding", with(t, registrationText, "Hh8=", "Hh8"), key},
		{"url alphabet", with(t, registrationText, "AAEC", "__8C"), key},
		{"line end", with(t, registrationText, "Hh8=", `Hh8=\n`), key},
		{"ipv6", with(t, registrationText, `192.0.2.1`, `2001:db8::1`), address},
		{"unspecified", with(t, registrationText, `192.0.2.1`, `0.0.0.0`), address},
		{"multicast", with(t, registrationText, `192.0.2.1`, `239.0.0.1`), address},
		{"port zero", with(t, registrationText, `4433`, `0`), []string{`relay.vpnHub.quicPort: is not a port`}},
	})
}

func drawRegistration(t *rapid.T) RelayRegistrationRequest {
	x := RelayRegistrationRequest{
		Protocol: drawOffer(t, "protocol"),
		Relay: RelayFacts{
			Version:       rapid.StringMatching(`(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})`).Draw(t, "version"),
			NodeID:        drawNodeID(t, "nodeId"),
			ListenAddress: rapid.StringMatching(`10\.[1-9]\.[1-9]{2}\.[1-9]`).Draw(t, "listenAddress"),
			ListenPort:    rapid.Int64Range(1, 65535).Draw(t, "listenPort"),
		},
		RegistrationSequence: drawCount(t, "sequence"),
	}
	if rapid.Bool().Draw(t, "hub") {
		x.Relay.VPNHub = &VPNHub{drawNoiseKey(t, "publicKey"), "192.0.2.1", rapid.Int64Range(1, 65535).Draw(t, "quicPort")}
	}
	return x
}

func FuzzReadRelayRegistrationRequest(f *testing.F) {
	fuzzReader(f, ReadRelayRegistrationRequest, registrationText, `{"relay":{"vpnHub":{}}}`)
}

func FuzzReadLoopbackRelayRegistrationRequest(f *testing.F) {
	fuzzReader(f, ReadLoopbackRelayRegistrationRequest, registrationText, strings.Replace(registrationText, "10.0.4.7", "127.0.0.1", 1))
}
