package hub_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// Names of contract §8 and §10, written out here once more so that a changed one shows.
const (
	register = "registerClusterRelay"
	applying = "applyClusterVpnNetwork"
	pulling  = "getClusterVpnNetwork"

	networkInvalid contract.RefusalName = "vpn-network-invalid" // OWN
	revisionStale  contract.RefusalName = "vpn-network-revision-stale"
	foreign        contract.RefusalName = "vpn-network-authority-foreign"
	notReady       contract.RefusalName = "relay-not-ready"
)

// call pushes a body as Cloudly does, without making it the cluster's network.
func (c *cluster) call(body string) (string, error) {
	c.t.Helper()
	answer, err := c.Cloudly.Call(c.Soon(), applying, []byte(body))
	return string(answer), err
}

// applied pushes a network, which must be answered with this revision and idle.
func (c *cluster) applied(what string, x contract.VPNNetwork, revision int64) {
	c.t.Helper()
	answer, err := c.call(`{"network":` + string(x.AppendJSON(nil)) + `}`)
	if want := fmt.Sprintf(`{"appliedRevision":%d,"state":"idle"}`, revision); err != nil || answer != want {
		c.t.Errorf("%s: answered %.300s, %v, want %s", what, answer, err, want)
	}
}

// refusedAs holds an error to a refusal by name, "<name>: <reason>" and data {code}
// (contract §6.1), and returns the reason.
func (c *cluster) refusedAs(what string, err error, name contract.RefusalName) (reason string) {
	c.t.Helper()
	remote, ok := errors.AsType[*typedsocket.RemoteError](err)
	if !ok {
		c.t.Errorf("%s: %v, want the refusal %s", what, err, name)
		return ""
	}
	got, reason, _ := strings.Cut(remote.Text, ": ")
	if got != string(name) || string(remote.Data) != `{"code":"`+string(name)+`"}` {
		c.t.Errorf("%s: refused with %q %s, want %s", what, remote.Text, remote.Data, name)
	}
	return reason
}

// wantUnchanged runs what must change nothing of what the hub shows. Nobody may be
// connected, whose session would grow older.
func (c *cluster) wantUnchanged(what string, do func()) {
	c.t.Helper()
	before := c.Status().At("duties", hub.Name)
	do()
	if now := c.Status().At("duties", hub.Name); !reflect.DeepEqual(before, now) {
		c.t.Errorf("%s: the hub shows\n%v, it showed\n%v", what, now, before)
	}
}

// refused pushes a body that must be refused for exactly these reasons, and change
// nothing.
func (c *cluster) refused(what, body string, reasons ...string) {
	c.t.Helper()
	c.wantUnchanged(what, func() {
		_, err := c.call(body)
		if got, want := c.refusedAs(what, err, networkInvalid), strings.Join(reasons, "; "); got != want {
			c.t.Errorf("%s: refused since %.300q, want %.300q", what, got, want)
		}
	})
}

// pulls makes the relay pull, has Cloudly answer it with this body, and waits for what
// becomes of it.
func (c *cluster) pulls(body, outcome string) {
	c.t.Helper()
	count := func() float64 {
		return c.counted("relay_hub_received_networks_total", "origin", "pulled", "outcome", outcome)
	}
	before := count()
	c.Cloudly.Script(pulling, simulate.Step{Unjudged: true, Response: []byte(body)})
	c.RegisterAgain()
	c.Eventually("a pulled network that is "+outcome, func() error {
		if now := count(); now != before+1 {
			return fmt.Errorf("%v are, %v were before", now, before)
		}
		return nil
	})
}

// empty makes the hub hold nothing: a pull says that the cluster has no network.
func (c *cluster) empty() { c.t.Helper(); c.pulls(`{"network":null}`, "emptied") }

// holds is the revision that the hub shows, 0 for no network.
func (c *cluster) holds() int64 {
	c.t.Helper()
	if n := c.shown().Network; n != nil {
		return n.Revision
	}
	return 0
}

// body is the body that pushes a network.
func body(x contract.VPNNetwork) string { return `{"network":` + string(x.AppendJSON(nil)) + `}` }

// beginHub starts a relay with a hub for a test that pushes networks by itself.
func beginHub(t *testing.T) *cluster {
	t.Helper()
	c := start(t)
	if n := c.holds(); n != 0 {
		t.Fatalf("the hub holds revision %d", n)
	}
	return c
}
