package appliance

import (
	"crypto/tls"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// ingresses starts an ingress on each node, and waits until all are registered.
func (r *rig) ingresses(nodes ...string) []*simulate.Ingress {
	r.t.Helper()
	bearer, err := r.cloudly.DesignateIngress(nodes...)
	if err != nil {
		r.t.Fatal(err)
	}
	var all []*simulate.Ingress
	for _, id := range nodes {
		r.node(id)
		i, err := simulate.NewIngress(simulate.IngressConfig{
			URL: originText, Dial: r.net.dial, Wall: r.clock.now, NodeID: id, Bearer: bearer,
			TLS: &tls.Config{RootCAs: certificates().pool, Time: r.clock.now},
		})
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(i.Close)
		if err := i.Start(); err != nil {
			r.t.Fatal(err)
		}
		if _, err := i.WaitRegistered(r.soon(), 0); err != nil {
			r.t.Fatalf("%s: %v\n%s", id, err, r.log)
		}
		all = append(all, i)
	}
	return all
}

// wantNoViolationsOf checks that nothing was sent to these peers that must not be.
func (r *rig) wantNoViolationsOf(all ...*simulate.Ingress) {
	r.t.Helper()
	found := r.cloudly.Violations()
	for _, i := range all {
		found = append(found, i.Violations()...)
	}
	if len(found) > 0 {
		r.t.Errorf("violations: %v", found)
	}
}

// R70, R73, R75: a table that Cloudly publishes reaches two ingresses, and what they
// count reaches Cloudly, page by page, before an outage and after it.
func TestR70_R73_R75_TablesGoDownAndCountersGoUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{})
		r.registered(0)
		all := r.ingresses("node-a", "node-b")
		table, err := r.cloudly.PublishRoutes(r.soon(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		day := r.clock.now().UTC().Format(time.DateOnly)
		for n, i := range all {
			if err := i.WaitRevision(r.soon(), table.Revision); err != nil {
				t.Error(err)
			}
			if err := i.Register(r.soon()); err != nil {
				t.Errorf("again on its socket: %v", err)
			}
			for host := range 3 {
				more := simulate.TrafficBucket{DayUTC: day, Hostname: fmt.Sprintf("h%d.example", host), Traffic: simulate.Traffic{Requests: int64(10*n + host + 1)}}
				if err := i.AddTraffic(more); err != nil {
					t.Fatal(err)
				}
			}
		}
		read := func() {
			t.Helper()
			var want []simulate.TrafficBucket
			for _, i := range all {
				want = append(want, i.Counters()...)
			}
			got, err := r.cloudly.ReadTraffic(r.soon(), day, day, 2)
			if err != nil || !slices.Equal(got, want) || len(got) != 6 {
				t.Errorf("read %v, counted %v: %v", got, want, err)
			}
		}
		read()
		r.cloudly.Outage()
		time.Sleep(time.Hour)
		r.cloudly.Return()
		r.registered(1)
		time.Sleep(10 * time.Second)
		read()
		for _, i := range all {
			if i.Dials() != 1 {
				t.Errorf("%d dials", i.Dials())
			}
		}
		r.wantNoViolationsOf(all...)
	})
}

// R24, R70: an ingress is refused with the name that the relay's own credential is
// over. That ends custody, as it does on an answer to a node.
func TestR24_R70_AStaleCredentialIsHeardOnARegistration(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{})
		r.registered(0)
		i := r.ingresses("node-a")[0]
		r.cloudly.Script(contract.MethodRegisterIngress, simulate.RefuseNamed(contract.RelayCredentialGenerationStale, "rotated"))
		if err := i.Register(r.soon()); err == nil {
			t.Error("it was accepted")
		}
		synctest.Wait()
		if heard := r.rec.take(); !slices.Contains(heard, "dropped relay-credential-generation-stale") {
			t.Errorf("the duties were told %v", heard)
		}
	})
}

// R21, R68: a name that ends custody is heard on the pull of the table, too.
func TestR21_R68_CustodyEndsByThePullOfTheTable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{idle: true})
		r.cloudly.Script(contract.MethodGetRouteTable, simulate.RefuseNamed(contract.RelayNodeForeign, "moved"))
		r.start()
		r.registered(0)
		synctest.Wait()
		if heard := r.rec.take(); !slices.Contains(heard, "dropped relay-node-foreign") {
			t.Errorf("the duties were told %v", heard)
		}
	})
}
