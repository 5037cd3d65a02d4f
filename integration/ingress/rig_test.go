package ingress_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/ingress"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// Names of contract §8 and §11, written out here once more so that a changed one shows.
const (
	pushing     = "pushClusterRouteTable"
	pulling     = "getClusterRouteTable"
	registering = "registerClusterIngress"
	asking      = "getClusterIngressRouteTable"
	counting    = "getClusterTrafficStatistics"
	hinting     = "pushClusterIngressRouteTableChanged"

	report     = "reportRuntimeNetworkProtection"
	assignment = "applyRuntimeAssignment"

	notRegistered contract.RefusalName = "cluster-ingress-not-registered"
	tableInvalid  contract.RefusalName = "route-table-invalid"
	notValid      contract.RefusalName = "request-invalid"
	pageInvalid   contract.RefusalName = "traffic-page-invalid"
	notReady      contract.RefusalName = "relay-not-ready"
	overloaded    contract.RefusalName = "relay-overloaded"
	cloudlyOnly   contract.RefusalName = "relay-cloudly-only"
)

// relayOffer and cloudlyOffer are what the two sides state, as they are spelled: an
// acceptance that bears one of them cannot be taken for the other's (contract O16).
const (
	relayOffer   = `{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"}`
	cloudlyOffer = `{"interfacesVersion":"32.51.7","minimumPeerVersion":"32.3.0"}`
)

// cluster is a relay that is ready, with a Cloudly that has designated an ingress.
type cluster struct {
	*rig.Rig
	t      *testing.T
	bearer string           // of the ingress, on every node
	nodes  []string         // that it runs on
	root   string           // of all secrets of this rig: none is without it
	node   *simulate.Pallet // where a test needs one
}

// start returns a cluster for a test that runs beside others. Its ingress may run on
// node-a, node-b and node-c.
func start(t *testing.T, options ...rig.Option) *cluster {
	t.Helper()
	t.Parallel()
	c := begin(t, options...)
	c.WaitReady()
	return c
}

// begin is start without the wait, and beside nothing.
func begin(t *testing.T, options ...rig.Option) *cluster {
	t.Helper()
	other := contract.Offer{InterfacesVersion: "32.51.7", MinimumPeerVersion: "32.3.0"}
	options = append([]rig.Option{rig.Cloudly(func(cfg *simulate.CloudlyConfig) { cfg.Offer = other })}, options...)
	c := &cluster{Rig: rig.New(t, options...), t: t, nodes: []string{"node-a", "node-b", "node-c"}}
	c.root, c.bearer = c.Marker("the root")[:12], c.DesignateIngress(c.nodes...)
	return c
}

// push hands over a body as Cloudly does.
func (c *cluster) push(body string) (contract.Raw, error) {
	c.t.Helper()
	return c.Cloudly.Call(c.Soon(), pushing, []byte(body))
}

// pushed hands over a table, and wants it answered with this revision.
func (c *cluster) pushed(what, table string, revision int64) {
	c.t.Helper()
	answer, err := c.push(`{"table":` + table + `}`)
	if want := fmt.Sprintf(`{"appliedRevision":%d}`, revision); err != nil || string(answer) != want {
		c.t.Errorf("%s: answered %.300s, %v, want %s", what, answer, err, want)
	}
}

// publishes makes a table, of any spelling, the one that Cloudly holds, and pushes it.
func (c *cluster) publishes(table string) {
	c.t.Helper()
	read, err := contract.ReadRouteTable([]byte(table))
	if err != nil {
		c.t.Fatal(err)
	}
	if revision, err := c.Cloudly.PushRouteTable(c.Soon(), read); err != nil || revision != read.Revision {
		c.t.Fatalf("publish the table %d: %d, %v", read.Revision, revision, err)
	}
}

// pulls makes the relay pull, has Cloudly answer it with this body, and waits for what
// becomes of it.
func (c *cluster) pulls(body, outcome string) {
	c.t.Helper()
	before := c.counted("relay_ingress_received_tables_total", "origin", "pulled", "outcome", outcome)
	c.Cloudly.Script(pulling, anyway(body))
	c.RegisterAgain()
	c.Eventually("a pulled table that is "+outcome, func() error {
		if now := c.counted("relay_ingress_received_tables_total", "origin", "pulled", "outcome", outcome); now != before+1 {
			return fmt.Errorf("%v are, %v were before", now, before)
		}
		return nil
	})
}

// anyway answers a request with these bytes, whatever it holds.
func anyway(response string) simulate.Step {
	return simulate.Step{Unjudged: true, Response: []byte(response)}
}

// counted is one sample of the relay's metrics, which must be there.
func (c *cluster) counted(name string, labels ...string) float64 {
	c.t.Helper()
	value, ok := c.Metrics().Value(name, labels...)
	if !ok {
		c.t.Fatalf("there is no metric %s %q", name, labels)
	}
	return value
}

// status is the relay's own account of what it holds for its ingresses.
func (c *cluster) status() ingress.Status {
	c.t.Helper()
	return rig.SectionOf[ingress.Status](c.Rig, ingress.Name)
}

// revision is that of the table which the status shows, 0 for none.
func (c *cluster) revision() int64 {
	c.t.Helper()
	if s := c.status(); s.Table != nil {
		return s.Table.Revision
	}
	return 0
}

// wantSpeakers checks which nodes have an ingress, by the status.
func (c *cluster) wantSpeakers(nodes ...string) {
	c.t.Helper()
	if got := speakers(c.status()); !slices.Equal(got, nodes) {
		c.t.Errorf("the status shows ingresses of %q, want %q", got, nodes)
	}
}

func speakers(s ingress.Status) []string {
	var nodes []string
	for _, speaker := range s.Ingresses {
		nodes = append(nodes, speaker.Node)
	}
	return nodes
}

// lose takes Cloudly away, and returns when the relay knows.
func (c *cluster) lose() {
	c.t.Helper()
	c.Upstream.Outage()
	c.waitAttached(false)
}

// back brings Cloudly back, and returns when the relay has registered.
func (c *cluster) back() {
	c.t.Helper()
	if err := c.Upstream.Resume(); err != nil {
		c.t.Fatal(err)
	}
	c.Signal(syscall.SIGHUP) // a wait for the next attempt gives way to it
	c.waitAttached(true)
}

func (c *cluster) waitAttached(attached bool) {
	c.t.Helper()
	c.Eventually(fmt.Sprint("a relay whose session stands: ", attached), func() error {
		if c.status().Attached != attached {
			return errors.New("the status shows otherwise")
		}
		return nil
	})
}

// remote returns the refusal that an error is.
func (c *cluster) remote(what string, err error) (*typedsocket.RemoteError, bool) {
	c.t.Helper()
	remote, ok := errors.AsType[*typedsocket.RemoteError](err)
	if !ok {
		c.t.Errorf("%s: %v, want a refusal", what, err)
	}
	return remote, ok
}

// wantUnquoted checks that a text of the relay's own holds no secret of this rig.
func (c *cluster) wantUnquoted(what, text string) {
	c.t.Helper()
	if strings.Contains(text, c.root) {
		c.t.Errorf("%s: a secret stands in %q", what, text)
	}
}

// wantRefused holds an error to a refusal by name: "<name>: <reason>", and data {code}
// (contract §6.1, O10), for a reason that says this. A reason quotes nothing.
func (c *cluster) wantRefused(what string, err error, name contract.RefusalName, says string) {
	c.t.Helper()
	remote, ok := c.remote(what, err)
	if !ok {
		return
	}
	c.wantUnquoted(what, remote.Text)
	got, reason, _ := strings.Cut(remote.Text, ": ")
	if got != string(name) || string(remote.Data) != `{"code":"`+string(name)+`"}` || !strings.Contains(reason, says) {
		c.t.Errorf("%s: refused with %q %s, want %s that says %q", what, remote.Text, remote.Data, name, says)
	}
}

// wantOwn holds an error to a refusal of a registration that the relay gives itself
// (contract §11.2), for a reason that says this.
func (c *cluster) wantOwn(what string, err error, name contract.RefusalName, says string) {
	c.t.Helper()
	remote, ok := c.remote(what, err)
	if !ok {
		return
	}
	c.wantUnquoted(what, remote.Text)
	text, data := "cluster-ingress-registration-refused: "+string(name), refusalData(name, 5000)
	if !strings.HasPrefix(remote.Text, text) || string(remote.Data) != data || !strings.Contains(remote.Text, says) {
		c.t.Errorf("%s: refused with %q %s, want %q %s that says %q", what, remote.Text, remote.Data, text, data, says)
	}
}

// refusalData is IClusterIngressRegistrationRefusal as its writer spells it.
func refusalData(reason contract.RefusalName, retryAfterMs int) string {
	return fmt.Sprintf(`{"code":"cluster-ingress-registration-refused","reason":%q,"retryAfterMs":%d}`, reason, retryAfterMs)
}
