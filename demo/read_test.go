package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/hub/node"
)

// testKey returns the private key of 32 equal bytes, and how it is written.
func testKey(t testing.TB, of byte) (node.PrivateKey, string) {
	key, err := node.GeneratePrivateKey(bytes.NewReader(bytes.Repeat([]byte{of}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return key, key.Secret()
}

// testAnswer is a VPN credential as Cloudly answers it.
func testAnswer(t testing.TB) string {
	key, secret := testKey(t, 1)
	server, _ := testKey(t, 2)
	return fmt.Sprintf(`{"session":{"a":1},"projection":{},"transport":"quic","hub":{"address":"192.0.2.1","port":4433},"authorityId":"demo",`+
		`"serverPublicKey":%q,"clientKeyPair":{"publicKey":%q,"privateKey":%q},"expiresAt":1764547200000}`, server.Public(), key.Public(), secret)
}

// A credential is read as it is spelled. A second member of a name, one in other letters
// and one too many are refused, where encoding/json would take the one or the other.
func TestReadCredential(t *testing.T) {
	good := testAnswer(t)
	key, secret := testKey(t, 1)
	server, _ := testKey(t, 2)
	other, _ := testKey(t, 3)
	want := node.Credential{
		Hub: netip.MustParseAddrPort("192.0.2.1:4433"), HubKey: server.Public(), AuthorityID: "demo", Key: key, ExpiresAt: time.UnixMilli(1764547200000),
	}
	for _, spelled := range []string{good, " " + good + "\n", strings.Replace(good, `"hub"`, `"\u0068ub"`, 1)} {
		got, err := readCredential([]byte(spelled))
		if err != nil || got.Key.Secret() != secret {
			t.Errorf("%s: %v", spelled, err)
		}
		if got.Key = key; got != want { // keys are compared by what is in them
			t.Errorf("%s: %+v", spelled, got)
		}
	}
	const strict = "is not an object of strict JSON"
	for _, test := range []struct{ old, new, says string }{
		{`{"session"`, `{"authorityId":"x","session"`, strict},
		{`{"session"`, `{"AuthorityID":"x","session"`, "has a member that is not known"},
		{`"authorityId"`, `"AuthorityID"`, "authorityId: is missing"},
		{`"address"`, `"address":"192.0.2.2","address"`, strict},
		{`"address"`, `"Address":"192.0.2.2","address"`, "hub: has a member that is not known"},
		{`"privateKey"`, `"PrivateKey"`, "clientKeyPair: privateKey: is missing"},
		{`{"session"`, `[{"session"`, strict},
		{`1764547200000}`, `1764547200000}{}`, strict},
		{`1764547200000}`, `1764547200000`, strict},
		{`"authorityId":"demo"`, "\"authorityId\":\"\xff\"", strict},
		{`"authorityId":"demo"`, `"authorityId":7`, "authorityId: is not a string"},
		{`"quic"`, `"tcp"`, "transport: is not quic"},
		{`192.0.2.1`, `node-a`, "hub: address: is not an IPv4 literal"},
		{`192.0.2.1`, `192.0.2.01`, "hub: address: is not an IPv4 literal"},
		{`4433`, `0`, "hub: port: is not a whole number from 1 to 65535"},
		{`4433`, `65536`, "hub: port: is not a whole number from 1 to 65535"},
		{`4433`, `4433.0`, "hub: port: is not a whole number from 1 to 65535"},
		{`4433`, `"4433"`, "hub: port: is not a whole number from 1 to 65535"},
		{`1764547200000`, `9007199254740992`, "expiresAt: is not a whole number from 1 to 9007199254740991"},
		{server.Public().String(), "x", "serverPublicKey: not the canonical base64 of a 32-byte public key"},
		{key.Public().String(), other.Public().String(), "clientKeyPair: publicKey: is not the other half of the private one"},
		{secret, "5ec2e7", "clientKeyPair: privateKey: "},
	} {
		_, err := readCredential([]byte(strings.Replace(good, test.old, test.new, 1)))
		if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "5ec2e7") || strings.Contains(err.Error(), secret[:12]) {
			t.Errorf("%s in place of %s: %v, want one that says %q", test.new, test.old, err, test.says)
		}
	}
}

// Whatever is answered is taken or refused, and what is taken is what encoding/json reads
// of it.
func FuzzReadCredential(f *testing.F) {
	good := testAnswer(f)
	for _, seed := range []string{good, "", "{}", "{\"hub\":", strings.Replace(good, `"hub"`, `"Hub"`, 1), strings.Replace(good, "demo", "\\ud83d\\ude00", 1)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		got, err := readCredential(answer)
		if err != nil {
			return
		}
		var want struct {
			Hub struct {
				Address netip.Addr
				Port    uint16
			}
			AuthorityID, ServerPublicKey string
			ClientKeyPair                struct{ PrivateKey string }
			ExpiresAt                    int64
		}
		if err := json.Unmarshal(answer, &want); err != nil {
			t.Fatal(err)
		}
		if got.Hub != netip.AddrPortFrom(want.Hub.Address, want.Hub.Port) || got.AuthorityID != want.AuthorityID || got.HubKey.String() != want.ServerPublicKey ||
			got.Key.Secret() != want.ClientKeyPair.PrivateKey || got.ExpiresAt.UnixMilli() != want.ExpiresAt {
			t.Errorf("%s", answer)
		}
	})
}

func TestFirstChain(t *testing.T) {
	for _, table := range []string{
		`{"revision":1,"routes":[{"hostname":"a","certificate":{"chain":"c","privateKey":"k"}},{"certificate":{}}],"x":{}}`,
		`{"routes":[{"certificate":{"Chain":"x","chain":"c","CHAIN":"y"},"Certificate":{"chain":"x"}}],"Routes":[]}`,
	} {
		if got, err := firstChain([]byte(table)); err != nil || got != "c" {
			t.Errorf("%s: %q, %v", table, got, err)
		}
	}
	for table, want := range map[string]string{
		``:                          "is not an object of strict JSON",
		`{"routes":[],"routes":[]}`: "is not an object of strict JSON",
		`{"Routes":[]}`:             "routes: is missing",
		`{"routes":{}}`:             "routes: is not an array",
		`{"routes":[]}`:             "routes: is empty",
		`{"routes":[7]}`:            "routes[0]: is not an object of strict JSON",
		`{"routes":[{}]}`:           "routes[0]: certificate: is missing",
		`{"routes":[{"certificate":{"Chain":"5ec2e7"}}]}`:                  "routes[0].certificate: chain: is missing",
		`{"routes":[{"certificate":{"chain":"5ec2e7","chain":"5ec2e7"}}]}`: "is not an object of strict JSON",
		`{"routes":[{"certificate":{"chain":7}}]}`:                         "chain: is not a string",
	} {
		if got, err := firstChain([]byte(table)); err == nil || err.Error() != want {
			t.Errorf("%s: %q, %v, want %s", table, got, err, want)
		}
	}
}
