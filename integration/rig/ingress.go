package rig

import (
	"strings"
	"time"

	"serve.zone/relay/simulate"
)

// ingressBearerBegins is how the simulated Cloudly's ingress bearers begin.
const ingressBearerBegins = "clusterIngressToken_"

// DesignateIngress enrolls nodes, if they are not, makes a service the cluster's
// ingress that runs on them and on no others, and returns its bearer, in which there
// is a marker. Designated again it keeps the bearer.
func (r *Rig) DesignateIngress(nodes ...string) (bearer string) {
	r.t.Helper()
	for _, id := range nodes {
		r.Enroll(id)
	}
	bearer, err := r.Cloudly.DesignateIngress(nodes...)
	if err != nil {
		r.t.Fatal(err)
	}
	if !strings.Contains(bearer, r.secrets.root) {
		bearer = ingressBearerBegins + r.secrets.mark("ingress bearer")
		if err := r.Cloudly.SetIngressBearer(bearer); err != nil {
			r.t.Fatal(err)
		}
	}
	return bearer
}

// Ingress starts a simulated ingress on a node, with a bearer that DesignateIngress
// returned, and returns when it is registered through the relay. The rig closes it,
// and what it noticed fails the test as what nodes notice does.
func (r *Rig) Ingress(id, bearer string, change ...func(*simulate.IngressConfig)) *simulate.Ingress {
	r.t.Helper()
	i := r.StartIngress(id, bearer, change...)
	if _, err := i.WaitRegistered(r.Soon(), 0); err != nil {
		r.t.Fatalf("ingress of %s: %v", id, err)
	}
	return i
}

// StartIngress is Ingress without the wait.
func (r *Rig) StartIngress(id, bearer string, change ...func(*simulate.IngressConfig)) *simulate.Ingress {
	r.t.Helper()
	cfg := simulate.IngressConfig{
		URL: r.NodeURL(), TLS: r.ClientTLS(), Dial: r.dialListener, Wall: time.Now,
		NodeID: id, Bearer: bearer, FirstBackoff: firstBackoff, LastBackoff: lastBackoff,
	}
	for _, apply := range change {
		apply(&cfg)
	}
	i, err := simulate.NewIngress(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	// Before the rig's own end, which judges the relay and Cloudly.
	r.t.Cleanup(func() {
		i.Close()
		if r.t.Failed() || r.options.tolerant {
			return
		}
		for _, v := range i.Violations() {
			r.t.Errorf("the ingress of %s noticed %s", id, v)
		}
	})
	if err := i.Start(); err != nil {
		r.t.Fatal(err)
	}
	return i
}
