package escrow_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/escrow"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// Names of contract §8 and §9, written out here once more so that a changed one shows.
const (
	holding      = "holdRuntimeNetworkDnsLeaseRenewals"
	applying     = "applyRuntimeNetworkDnsLeaseRenewal"
	registration = "registerPalletRuntimeSession"
	report       = "reportRuntimeNetworkProtection"
	assignment   = "applyRuntimeAssignment"

	runInvalid     contract.RefusalName = "escrow-run-invalid"
	notCarried     contract.RefusalName = "escrow-node-not-carried"
	foreignSession contract.RefusalName = "escrow-run-foreign-session"
	runStale       contract.RefusalName = "escrow-run-stale"
	runUnordered   contract.RefusalName = "escrow-run-unordered"
	cloudlyOnly    contract.RefusalName = "escrow-cloudly-only"
)

const (
	// margin is how long windows of one test are apart that must be told apart: more
	// than a busy machine needs to hand over a run and to lose the session.
	margin = 4 * time.Second
	// releaseWait is what is waited for a release, and for the end of custody. The
	// contract gives the relay one second for either (R20, R50); this machine may be
	// busy with other tests.
	releaseWait = 5 * time.Second
	// firstRetry is how long after a push that was not acknowledged the next one
	// follows (contract §9.5).
	firstRetry = 5 * time.Second
)

// cluster is a relay that is ready, with a Cloudly whose signing authority is the
// test's own.
type cluster struct {
	*rig.Rig
	t         *testing.T
	authority *simulate.SigningAuthority
	socket    int      // of the last session to Cloudly
	signed    []string // signatures, which nobody may repeat
}

// start returns a cluster for a test that runs beside others.
func start(t *testing.T, options ...rig.Option) *cluster {
	t.Helper()
	t.Parallel()
	c := &cluster{Rig: rig.New(t, options...), t: t, authority: simulate.NewSigningAuthority(1)}
	c.WaitReady()
	c.socket, _ = c.Cloudly.Registered()
	return c
}

// node starts a node that has a session, trusts the test's authority and has admitted
// its first projection, whose own window has ended.
func (c *cluster) node(id string, change ...func(*simulate.PalletConfig)) *simulate.Pallet {
	c.t.Helper()
	p := c.Node(id, change...)
	c.admits(p, id, 1)
	return p
}

// admits makes a projection the node's current one.
func (c *cluster) admits(p *simulate.Pallet, id string, generation int64) {
	binding, ok := p.Binding()
	if !ok {
		c.t.Fatalf("%s has no session", id)
	}
	p.Trust(c.authority.Authority)
	p.AdmitProjection(simulate.Projection{
		Reference: projectionOf(id, generation), Scope: binding.Scope, Authority: c.authority.Reference(),
		DNS: window{-20 * time.Minute, -20 * time.Minute, -5 * time.Minute}.at(time.Now()),
	})
}

// send hands a body to the relay as Cloudly does.
func (c *cluster) send(body []byte) (contract.Raw, error) {
	c.t.Helper()
	return c.Cloudly.Call(c.Soon(), holding, body)
}

// take hands over a run that must be taken, and returns it.
func (c *cluster) take(x run) contract.HoldDNSLeaseRenewalsRequest {
	c.t.Helper()
	request := c.compose(x)
	c.taken(fmt.Sprint(len(request.Renewals), " renewals for ", x.node), request.AppendJSON(nil), len(request.Renewals))
	return request
}

// taken hands over a body that must be answered with so many renewals held.
func (c *cluster) taken(what string, body []byte, held int) {
	c.t.Helper()
	answer, err := c.send(body)
	if remote, ok := errors.AsType[*typedsocket.RemoteError](err); ok {
		c.t.Errorf("%s: refused with %q", what, remote.Text)
	} else if err != nil || string(answer) != fmt.Sprintf(`{"held":%d}`, held) {
		c.t.Errorf("%s: answered %.300s, %v", what, []byte(answer), err)
	}
}

// refused hands over a body that must be refused by this name, for a reason that says
// this.
func (c *cluster) refused(what string, body []byte, name contract.RefusalName, says string) {
	c.t.Helper()
	_, err := c.send(body)
	c.wantRefused(what, err, name, says)
}

// wantRefused holds an error to a refusal by name: "<name>: <reason>", and data {code}
// (contract §6.1, §9.3). A reason names a rule and quotes nothing.
func (c *cluster) wantRefused(what string, err error, name contract.RefusalName, says string) {
	c.t.Helper()
	var remote *typedsocket.RemoteError
	if !errors.As(err, &remote) {
		c.t.Errorf("%s: %v, want the refusal %s", what, err, name)
		return
	}
	got, reason, _ := strings.Cut(remote.Text, ": ")
	if got != string(name) || string(remote.Data) != `{"code":"`+string(name)+`"}` || !strings.Contains(reason, says) {
		c.t.Errorf("%s: refused with %q %s, want %s that says %q", what, remote.Text, remote.Data, name, says)
	}
	for _, signature := range c.signed {
		if strings.Contains(remote.Text, signature[:12]) {
			c.t.Errorf("%s: the reason quotes a signature", what)
		}
	}
}

// status is the relay's own account of what it holds.
func (c *cluster) status() escrow.Status {
	c.t.Helper()
	return rig.SectionOf[escrow.Status](c.Rig, escrow.Name)
}

// shown is what the status says of one node, nothing if it is not there.
func (c *cluster) shown(id string) escrow.Node {
	c.t.Helper()
	for _, n := range c.status().Nodes {
		if n.ID == id {
			return n
		}
	}
	return escrow.Node{}
}

// waitCurrent waits until the relay counts this window of a node as current.
func (c *cluster) waitCurrent(id string, sequence int64) {
	c.t.Helper()
	c.Eventually(fmt.Sprint("window ", sequence, " of ", id), func() error {
		if now := c.shown(id).Current; now == nil || now.Sequence != sequence {
			return fmt.Errorf("current is %+v", now)
		}
		return nil
	})
}

// lose takes Cloudly away.
func (c *cluster) lose() { c.Upstream.Outage() }

// back brings Cloudly back, and these nodes to it.
func (c *cluster) back(nodes ...*simulate.Pallet) {
	c.t.Helper()
	if err := c.Upstream.Resume(); err != nil {
		c.t.Fatal(err)
	}
	c.Signal(syscall.SIGHUP) // a wait for the next attempt gives way to it
	c.waitBack(nodes...)
}

// waitBack waits until the relay has a new session to Cloudly, and so have the nodes.
func (c *cluster) waitBack(nodes ...*simulate.Pallet) {
	c.t.Helper()
	var err error
	if c.socket, err = c.Cloudly.WaitRegistered(c.Soon(), c.socket); err != nil {
		c.t.Fatal(err)
	}
	c.Eventually("an end of the release", func() error {
		if !c.status().Attached {
			return errors.New("the relay believes Cloudly away")
		}
		return nil
	})
	for _, p := range nodes {
		c.Eventually("a node's registration", func() error { return p.Register(c.Soon()) })
	}
}

// reaches sends something through the relay to a node. Whatever the relay has sent to
// the node before has arrived then.
func (c *cluster) reaches(id string) {
	c.t.Helper()
	if _, err := c.Cloudly.CallNode(c.Soon(), id, assignment, []byte(`{"for":"`+id+`"}`)); err != nil {
		c.t.Fatalf("a push of Cloudly for %s: %v", id, err)
	}
}

// push is a renewal as it reached a node.
type push struct {
	simulate.Message
	session, signed contract.Raw
	renewal         contract.DNSLeaseRenewal
}

// pushes are the renewals that reached a node, over all its sockets.
func (c *cluster) pushes(p *simulate.Pallet) []push {
	c.t.Helper()
	var all []push
	for _, m := range p.Frames().Received(applying) {
		request, err := contract.ReadApplyDNSLeaseRenewalRequest(m.Body)
		if err != nil {
			c.t.Fatal(err)
		}
		all = append(all, push{m, request.Session, request.Signed.Received, request.Signed.Renewal})
	}
	return all
}

// wantPushes checks that exactly these renewals have reached a node, none before its
// window opened.
func (c *cluster) wantPushes(p *simulate.Pallet, sequences ...int64) []push {
	c.t.Helper()
	var got []int64
	all := c.pushes(p)
	for _, x := range all {
		got = append(got, x.renewal.Sequence)
		if opens := time.UnixMilli(x.renewal.DNS.NotBefore); x.At.Before(opens) {
			c.t.Errorf("renewal %d arrived %s before its window opened", x.renewal.Sequence, opens.Sub(x.At))
		}
	}
	if !slices.Equal(got, sequences) {
		c.t.Errorf("renewals %v reached the node, want %v", got, sequences)
	}
	return all
}

// waitPushes waits for as many renewals and is wantPushes then.
func (c *cluster) waitPushes(p *simulate.Pallet, sequences ...int64) []push {
	c.t.Helper()
	if err := p.WaitReceived(c.Soon(), applying, len(sequences)); err != nil {
		c.t.Fatalf("%v; %d have come", err, len(c.pushes(p)))
	}
	return c.wantPushes(p, sequences...)
}

// wantPushed checks how many pushes the relay itself has counted, to all nodes.
func (c *cluster) wantPushed(n int) {
	c.t.Helper()
	if got, ok := c.Metrics().Value("relay_escrow_pushed_renewals_total"); !ok || got != float64(n) {
		c.t.Errorf("the relay counts %v pushes, want %d", got, n)
	}
}

// waitAcknowledged waits until the relay knows that a node has a renewal.
func (c *cluster) waitAcknowledged(id string, sequence int64) {
	c.t.Helper()
	c.Eventually(fmt.Sprint("the acknowledgement of ", sequence, " by ", id), func() error {
		if n := c.shown(id); n.Acknowledged == nil || n.Acknowledged.Sequence != sequence {
			return fmt.Errorf("the status shows %+v", n)
		}
		return nil
	})
}
