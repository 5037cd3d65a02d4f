package hub_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/node"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

const (
	credential = "getRuntimeManagedVpnCredential"
	assignment = "applyRuntimeAssignment"
	protection = "reportRuntimeNetworkProtection"
)

// managed is a managed VPN credential, as far as a node dials by it (contract §7.4).
type managed struct {
	Hub struct {
		Address string `json:"address"`
		Port    uint16 `json:"port"`
	} `json:"hub"`
	AuthorityID     string `json:"authorityId"`
	ServerPublicKey string `json:"serverPublicKey"`
	ClientKeyPair   struct {
		PrivateKey string `json:"privateKey"`
		PublicKey  string `json:"publicKey"`
	} `json:"clientKeyPair"`
	ExpiresAt int64 `json:"expiresAt"`
}

// In these tests Cloudly is reached in the clear: of what it reads crypto/tls leaves copies
// behind that are not the relay's to erase.

// R43, contract §7.4: a node's managed credential comes through the relay byte for byte and
// opens the hub: its tuple, authority, key and expiry are the hub's. The relay shows its
// private key nowhere, has written it nowhere, and soon has it in memory no more.
func TestR43_ACredentialThatTheRelayCarriesOpensItsHub(t *testing.T) {
	c := start(t, rig.PlainCloudly())
	p := c.Node(name(0))
	key, err := c.Cloudly.NodeVPNKey(name(0))
	if err != nil {
		t.Fatal(err)
	}
	c.admit()
	c.admit()
	c.network.Nodes[0].PublicKey = key.String()
	c.grant([2]int{0, 1})
	c.push()
	projection, err := c.Cloudly.Project(name(0))
	if err != nil {
		t.Fatal(err)
	}
	p.AdmitProjection(projection)
	text, err := p.GetManagedVPNCredential(c.Soon())
	if err != nil {
		t.Fatal(err)
	}
	if sent := answerOf(t, c.Cloudly.Frames().Messages()); !bytes.Equal(sent, text) {
		t.Errorf("Cloudly answered %d bytes, and others came, %d", len(sent), len(text))
	}
	var got managed
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	facts := c.facts()
	if got.Hub.Address != facts.Address || int64(got.Hub.Port) != facts.QUICPort || got.ServerPublicKey != facts.PublicKey ||
		got.AuthorityID != authority || got.ExpiresAt != c.network.Nodes[0].ExpiresAt || got.ClientKeyPair.PublicKey != key.String() {
		t.Errorf("the credential is not this hub's: %+v", facts)
	}
	private, err := node.ParsePrivateKey(got.ClientKeyPair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	tally := newTally()
	a := c.dial(0, func(d *dialling) {
		d.key, d.authority = private, got.AuthorityID
		d.to = netip.AddrPortFrom(netip.MustParseAddr(got.Hub.Address), got.Hub.Port)
	})
	c.dial(1, func(d *dialling) { d.got = tally.got })
	c.sends(a, 2*time.Millisecond, stamped(0, 1))
	c.wantMore("packets that pass", tally, 0, 10)

	c.wantSeen("the bearer that the relay keeps", c.Cloudly.Authorization())
	scalar, err := base64.StdEncoding.DecodeString(got.ClientKeyPair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	c.AssertNoMarkers() // the rig knows the keys that Cloudly gave out
	c.wantForgotten("the private key", got.ClientKeyPair.PrivateKey, p)
	c.wantForgotten("the private key's bytes", string(scalar), p)
}

// R43: the same of a key that is marked, in an answer that no reader of credentials would
// take. One in a refusal is shown nowhere either.
func TestR43_AMarkedKeyIsCarriedAndForgotten(t *testing.T) {
	c := start(t, rig.PlainCloudly())
	c.admit()
	c.push()
	p := c.Node(name(0))
	// crypto/tls leaves behind the buffer of one record when a larger one comes, as it is:
	// so the largest come first.
	large := []byte(`{"x":"` + strings.Repeat("x", 400<<10) + `"}`)
	if _, err := c.Cloudly.CallNode(c.Soon(), name(0), assignment, large); err != nil {
		t.Fatal(err)
	}
	key := c.Marker("a node's VPN key")
	answer := `{ "expiresAt":1, "clientKeyPair" : {"privateKey":"` + key + `","publicKey":"x"}, "\u0061uthorityId":"m", "x":"` + strings.Repeat("x", 200<<10) + `" }` // larger than all that comes behind
	c.Cloudly.Script(credential, simulate.Step{Unjudged: true, Response: []byte(answer)},
		simulate.Refuse("not-today: x", []byte(`{"code":"not-today","privateKey":"`+key+`"}`)))
	if got, err := p.Send(c.Soon(), credential, []byte(`{"projection":{"id":"p"}}`)); err != nil || string(got) != answer {
		t.Errorf("the node was answered %v, and its answer changed or not", err)
	}
	c.wantForgotten("the key of an answer", key, p)
	if _, err := p.Send(c.Soon(), credential, []byte(`{"projection":{"id":"p"}}`)); err == nil {
		t.Error("a refusal was taken for an answer")
	}
	c.AssertNoMarkers()
}

// answerOf is the body of Cloudly's one answer to the credential's method.
func answerOf(t *testing.T, all []simulate.Message) contract.Raw {
	t.Helper()
	var found []contract.Raw
	for _, m := range all {
		if m.Sent && !m.Request && m.Method == credential {
			found = append(found, m.Body)
		}
	}
	if len(found) != 1 {
		t.Fatalf("Cloudly answered %d times", len(found))
	}
	return found[0]
}

// wantSeen fails when the search of the relay's memory is blind.
func (c *cluster) wantSeen(what, text string) {
	c.t.Helper()
	if c.Copies(text) == 0 {
		c.t.Errorf("%s was not found in the relay's memory: the search is blind", what)
	}
}

// wantForgotten waits until a text lies nowhere in the relay's memory. Each time that it is
// looked the node has received and sent something more: below messages, whose memory the
// relay erases, lies the buffer of a socket, which the next one writes over.
func (c *cluster) wantForgotten(what, text string, p *simulate.Pallet) {
	c.t.Helper()
	over := []byte(`{"x":"` + strings.Repeat("x", 12<<10) + `"}`)
	c.Eventually(what+" to be forgotten", func() error {
		if _, err := c.Cloudly.CallNode(c.Soon(), name(0), assignment, over); err != nil {
			return err
		}
		if _, err := p.Send(c.Soon(), protection, over); err != nil {
			return err
		}
		if n := c.Copies(text); n > 0 {
			return fmt.Errorf("%d copies lie in the memory of the relay", n)
		}
		return nil
	})
}
