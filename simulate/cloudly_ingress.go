package simulate

import (
	"crypto/subtle"
	"fmt"

	"serve.zone/relay/contract"
)

// designation is Cloudly's model of the cluster's ingress: which service it is, on
// which nodes it may run and does, and which bearer it registers with. It is
// guarded by Cloudly.mu.
type designation struct {
	unready    bool  // registrations cannot be judged yet
	generation int64 // of the designation's credential; 0: none is designated
	bearer     string
	nodes      map[string]int64 // generation that the node's running assignment carries, 0 for none that runs
	changes    uint64           // counts what may be a conflict

	accepted []AcceptedIngress
	refused  []RefusedIngress
}

// DesignateIngress makes a service the ingress of the cluster that runs on these
// nodes, and returns the bearer which its assignments carry in their environment.
// Designated again, it runs on the nodes that are named then, with the bearer that
// it has. The nodes need not be enrolled yet.
func (c *Cloudly) DesignateIngress(nodes ...string) (bearer string, err error) {
	for _, id := range nodes {
		if !contract.IsNodeID(id) {
			return "", fmt.Errorf("designate an ingress: a node is not a node id")
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	d := &c.cluster.ingress
	if d.generation == 0 {
		d.generation, d.bearer = 1, mintIngressBearer()
	}
	d.changes++
	d.nodes = map[string]int64{}
	for _, id := range nodes {
		d.nodes[id] = d.generation
	}
	return d.bearer, nil
}

// mintIngressBearer returns a fresh bearer. OWN: the seeds do not say how one looks.
func mintIngressBearer() string { return "clusterIngressToken_" + randomHex(32) }

// SetIngressBearer gives the designation this bearer, for tests that look for it.
func (c *Cloudly) SetIngressBearer(bearer string) error {
	return c.changeIngress(func(d *designation) error { d.bearer = bearer; return nil })
}

// RotateIngressBearer mints the designation's next credential and returns its
// bearer. Assignments that run go on with the one before, with which registrations
// are refused (assignment-not-running) until RunIngress starts them anew.
func (c *Cloudly) RotateIngressBearer() (bearer string, err error) {
	err = c.changeIngress(func(d *designation) error {
		d.generation++
		d.bearer = mintIngressBearer()
		bearer = d.bearer
		return nil
	})
	return bearer, err
}

// RunIngress says that a ready assignment of the ingress runs on a node under its
// current session, with the current credential. This Cloudly keeps no assignments:
// what it is told is so.
func (c *Cloudly) RunIngress(node string) error {
	return c.assignIngress(node, func(d *designation) int64 { return d.generation })
}

// StopIngress says that no assignment of the ingress runs on a node.
func (c *Cloudly) StopIngress(node string) error {
	return c.assignIngress(node, func(*designation) int64 { return 0 })
}

func (c *Cloudly) assignIngress(node string, generation func(*designation) int64) error {
	return c.changeIngress(func(d *designation) error {
		if _, placed := d.nodes[node]; !placed {
			return fmt.Errorf("the ingress is not designated to run on this node")
		}
		d.nodes[node] = generation(d)
		return nil
	})
}

func (c *Cloudly) changeIngress(change func(*designation) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := &c.cluster.ingress
	if d.generation == 0 {
		return fmt.Errorf("no ingress is designated")
	}
	d.changes++
	return change(d)
}

// WithdrawIngress ends the designation. The next one has a new bearer.
func (c *Cloudly) WithdrawIngress() {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := &c.cluster.ingress
	d.generation, d.bearer, d.nodes = 0, "", nil
	d.changes++
}

// SetIngressReady says whether this Cloudly can judge registrations of ingresses;
// it can at its start.
func (c *Cloudly) SetIngressReady(ready bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cluster.ingress.unready = !ready
}

// admits judges by the designation, in the order of contract §11.2; "" when it
// admits the registration.
func (d *designation) admits(request contract.IngressRegistration, known bool) contract.RefusalName {
	running, placed := d.nodes[request.NodeID]
	switch {
	case d.generation == 0:
		return contract.IngressNotDesignated
	case !placed || !known:
		return contract.IngressNodeMismatch
	case running != d.generation:
		return contract.IngressAssignmentNotRunning
	case subtle.ConstantTimeCompare(request.Bearer, []byte(d.bearer)) != 1:
		return contract.IngressBearerRefused
	}
	return ""
}
