package soak_test

import (
	"fmt"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/ingress"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

// edge is the ingress with its table.
type edge struct {
	s         *soak
	ingress   *simulate.Ingress
	authority *simulate.TLSAuthority
	revision  int64
}

func newEdge(s *soak) *edge {
	s.t.Helper()
	e := &edge{s: s}
	var err error
	if e.authority, err = simulate.NewTLSAuthority(time.Now()); err != nil {
		s.t.Fatal(err)
	}
	bearer := s.DesignateIngress(nodeName(0))
	e.ingress = s.Ingress(nodeName(0), bearer)
	e.publish()
	e.stands()
	return e
}

// publish makes the next table the cluster's, and pushes it. One that is not taken now is
// pulled later.
func (e *edge) publish() {
	e.s.t.Helper()
	certificate, err := e.authority.Issue("app.example")
	if err != nil {
		e.s.t.Fatal(err)
	}
	e.revision++
	route := simulate.IngressRoute{Hostname: "app.example", Certificate: certificate,
		Destinations: []contract.Destination{{Address: "127.0.0.1", Port: 9}}}
	table, err := contract.NewRouteTable(e.revision, time.Now().UnixMilli(), []contract.Raw{route.AppendJSON(nil)}, nil)
	if err != nil {
		e.s.t.Fatal(err)
	}
	ctx, cancel := within(answerWait)
	defer cancel()
	e.s.Cloudly.PushRouteTable(ctx, table)
}

// traffic reads the counters of the ingress.
func (e *edge) traffic() {
	today := time.Now().UTC().Format(time.DateOnly)
	ctx, cancel := within(answerWait)
	defer cancel()
	e.s.Cloudly.ReadTraffic(ctx, today, today, 10) // what is wrong with a page is a violation
}

// stands checks, at a quiet point, that Cloudly, relay and ingress have one table.
func (e *edge) stands() {
	e.s.t.Helper()
	e.s.Eventually("the table at the ingress", func() error {
		held := int64(0)
		if t := rig.SectionOf[ingress.Status](e.s.Rig, ingress.Name).Table; t != nil {
			held = t.Revision
		}
		_, registered := e.ingress.Registered()
		if got := e.ingress.Revision(); !registered || got != e.revision || held != e.revision {
			return fmt.Errorf("registered %t, the ingress has %d and the relay %d, want %d", registered, got, held, e.revision)
		}
		return nil
	})
}
