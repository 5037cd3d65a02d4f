package ingress_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

const (
	hostname = "app.example"
	greeting = "hello of the workload"
)

// site is a hostname as its visitors see it: behind an ingress, before a workload.
type site struct {
	c         *cluster
	ingress   *simulate.Ingress
	authority *simulate.TLSAuthority
	backend   string // address of the workload
	client    *http.Client
	visits    int64
}

// serves puts an ingress between visitors and a workload.
func (c *cluster) serves(i *simulate.Ingress) *site {
	c.t.Helper()
	workload := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s, to %s", greeting, r.Host)
	}))
	c.t.Cleanup(workload.Close)
	edge, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	if err := i.Serve(edge); err != nil {
		c.t.Fatal(err)
	}
	s := &site{c: c, ingress: i, authority: c.authority(), backend: workload.Listener.Addr().String()}
	s.client = &http.Client{Timeout: rig.DefaultWait, Transport: &http.Transport{
		DisableKeepAlives: true, // a handshake a visit
		TLSClientConfig:   &tls.Config{RootCAs: s.authority.Pool()},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, edge.Addr().String())
		},
	}}
	return s
}

// route is a route to the workload, with a fresh certificate.
func (s *site) route() simulate.IngressRoute { return s.c.route(s.authority, hostname, s.backend) }

// wantVisit has a visitor see the workload, under the certificate of this route.
func (s *site) wantVisit(when string, r simulate.IngressRoute) {
	s.c.t.Helper()
	answer, err := s.client.Get("https://" + hostname + "/")
	if err != nil {
		s.c.t.Errorf("%s: %v", when, err)
		return
	}
	defer answer.Body.Close()
	s.visits++
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || string(body) != greeting+", to "+hostname {
		s.c.t.Errorf("%s: %s %q, %v", when, answer.Status, body, err)
	}
	issued, _ := pem.Decode([]byte(r.Certificate.Chain))
	if !bytes.Equal(answer.TLS.PeerCertificates[0].Raw, issued.Bytes) {
		s.c.t.Errorf("%s: another certificate was served", when)
	}
}

// R76: an outage of Cloudly stops nothing that was there before it: the registered ingress
// still pulls the table, and its visitors see the workload before, during and after, under
// the certificate of the table that is held. What was counted meanwhile reaches Cloudly
// when it is back, and what Cloudly computed meanwhile the ingress.
func TestR76_ServiceDuringAnOutage(t *testing.T) {
	c := start(t)
	i, other := c.Ingress("node-a", c.bearer), c.Ingress("node-b", c.bearer)
	s := c.serves(i)
	first := s.route()
	table, err := c.Cloudly.PublishRoutes(c.Soon(), []simulate.IngressRoute{first}, nil)
	if err != nil {
		t.Fatal(err)
	}
	waitRevision := func(revision int64) {
		t.Helper()
		for _, i := range []*simulate.Ingress{i, other} {
			if err := i.WaitRevision(c.Soon(), revision); err != nil {
				t.Fatal(err)
			}
		}
	}
	waitRevision(1)
	s.wantVisit("before the outage", first)
	today := time.Now()
	from, to := today.AddDate(0, 0, -1).UTC().Format(time.DateOnly), today.AddDate(0, 0, 1).UTC().Format(time.DateOnly)
	if read, err := c.Cloudly.ReadTraffic(c.Soon(), from, to, 1); err != nil || len(read) != 1 || read[0].NodeID != "node-a" || read[0].Requests != 1 {
		t.Errorf("before the outage cloudly reads %+v, %v", read, err)
	}

	c.lose()
	if got := c.status(); got.Table == nil || got.Table.Revision != 1 || fmt.Sprint(speakers(got)) != "[node-a node-b]" {
		t.Errorf("during the outage the status shows %+v", got)
	}
	wantServed := func(when string) {
		t.Helper()
		for _, known := range []string{"null", "1"} {
			got, err := other.SendBody(c.Soon(), asking, []byte(`{"knownRevision":`+known+`}`))
			if err != nil || string(got) != `{"table":`+string(table.Encoded)+`}` {
				t.Errorf("%s: an ingress that knows %s is answered %d bytes, %v", when, known, len(got), err)
			}
		}
	}
	wantServed("during the outage")
	if j, err := i.Pull(c.Soon()); err != nil || j.Outcome != simulate.TableStale || j.Revision != 1 {
		t.Errorf("during the outage the ingress pulls %+v, %v", j, err)
	}
	s.wantVisit("during the outage", first)
	s.wantVisit("during the outage, again", first)
	second := s.route()
	if _, err := c.Cloudly.NextRouteTable([]simulate.IngressRoute{second}, nil); err != nil {
		t.Fatal(err)
	}
	wantServed("while cloudly computes another")
	if _, err := c.Cloudly.ReadTraffic(c.Soon(), from, to, 1); err == nil {
		t.Error("cloudly reads counters without a relay")
	}

	c.back()
	waitRevision(2)
	s.wantVisit("after the outage", second)
	c.Eventually("all counters at cloudly", func() error {
		read, err := c.Cloudly.ReadTraffic(c.Soon(), from, to, 1)
		if err != nil {
			return err
		}
		if counted := i.Counters(); len(read) == 0 || fmt.Sprint(read) != fmt.Sprint(counted) {
			return fmt.Errorf("cloudly reads %+v, counted is %+v", read, counted)
		}
		return nil
	})
	if got := i.Counted(hostname); got.Requests != s.visits || got.Connections != s.visits || got.Failures != (simulate.BackendFailures{}) {
		t.Errorf("%d visits are counted as %+v", s.visits, got)
	}
	// Neither ingress had to come back: the role outlives the session to Cloudly.
	if got := len(c.Cloudly.Frames().Received(registering)); got != 2 || i.Dials() != 1 || other.Dials() != 1 {
		t.Errorf("cloudly received %d registrations, and the ingress has dialled %d times", got, i.Dials())
	}
	for _, e := range c.Events(0) {
		if e.Type == "ingress-left" || e.Type == "ingresses-dropped" {
			t.Errorf("an ingress was let go: %v", e.Fields)
		}
	}
}

// R76: an ingress that loses its own socket in an outage is told to wait, and serves what
// it holds until it is registered again.
func TestR76_AnIngressThatLosesItsSocketInAnOutage(t *testing.T) {
	c := start(t)
	i := c.Ingress("node-a", c.bearer)
	s := c.serves(i)
	route := s.route()
	if _, err := c.Cloudly.PublishRoutes(c.Soon(), []simulate.IngressRoute{route}, nil); err != nil {
		t.Fatal(err)
	}
	if err := i.WaitRevision(c.Soon(), 1); err != nil {
		t.Fatal(err)
	}
	c.lose()
	i.Reconnect()
	refused := func() (refusals int) {
		for _, m := range i.Frames().Messages() {
			if m.Socket == 2 && m.Refused && m.Method == registering {
				if string(m.ErrorData) != refusalData(contract.IngressNotReady, 5000) {
					t.Errorf("refused with %q %s", m.ErrorText, m.ErrorData)
				}
				refusals++
			}
		}
		return refusals
	}
	if err := i.Wait(c.Soon(), "a refusal", func() bool { return refused() == 1 }); err != nil {
		t.Fatal(err)
	}
	s.wantVisit("while it is not registered", route)
	if _, err := i.Pull(c.Soon()); !errors.Is(err, simulate.ErrNotRegistered) {
		t.Errorf("a pull: %v", err)
	}
	_, err := i.SendBody(c.Soon(), asking, []byte(`{"knownRevision":1}`))
	c.wantRefused("the table for an ingress that waits", err, notRegistered, "")
	c.wantSpeakers()
	c.back()
	began := time.Now()
	if _, err := i.WaitRegistered(c.Soon(), 1); err != nil {
		t.Fatal(err)
	}
	s.wantVisit("registered again", route)
	if refused() != 1 || i.AcceptedRevision() != 1 || i.Dials() != 2 {
		t.Errorf("after %s: %d refusals, accepted with revision %d, %d sockets", time.Since(began), refused(), i.AcceptedRevision(), i.Dials())
	}
}

// R76, contract §18: nothing of a table is on disk, before, during and after an outage, and
// nothing of it is there when the relay runs again.
func TestR76_NothingIsOnDisk(t *testing.T) {
	c := start(t)
	held, h := c.holds()
	c.lose()
	h.wantTable("during the outage", held)
	for _, name := range c.OpenFiles() {
		t.Errorf("the relay has %s open", name)
	}
	c.AssertNoMarkers() // which fails for each file that was written
	c.Kill()
	c.Start()
	again := c.byHand()
	_, err := again.ask(registering, c.registration("node-a"))
	c.wantOwn("a relay that was killed in an outage", err, contract.IngressNotReady, "")
	again.wantRefusedHere("a relay that was killed in an outage", asking, `{"knownRevision":5}`, notRegistered)
	if s := c.status(); s.Table != nil || len(s.Ingresses) != 0 {
		t.Errorf("the status shows %+v", s)
	}
	c.Cloudly.Script(pulling, anyway(`{"table":null}`))
	c.back()
	if _, err := again.ask(registering, strings.Replace(c.registration("node-a"), "3.1.0", "3.1.1", 1)); err != nil {
		t.Fatal(err)
	}
	again.wantTable("a relay that begins anew", "null")
	c.AssertNoMarkers()
}
