package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"serve.zone/relay/operator/client"
)

// silent is an operator endpoint that answers as another one does, but for the members of
// a name, which it calls otherwise, so that nobody reads them.
type silent struct {
	console
	omits atomic.Value // a name, "" for none
}

func silenced(t *testing.T, base string) *silent {
	t.Helper()
	s := new(silent)
	s.omits.Store("")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := http.Get(base + r.URL.String())
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Error(err)
		}
		if name := s.omits.Load().(string); name != "" {
			body = bytes.ReplaceAll(body, []byte(`"`+name+`":`), []byte(`"unknown":`))
		}
		w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		w.WriteHeader(answer.StatusCode)
		w.Write(body)
	}))
	t.Cleanup(server.Close)
	s.console = console{client.Client{Base: server.URL}}
	return s
}

// No step holds where the relay does not state what the step shows.
func TestWhatIsNotStatedIsNoFact(t *testing.T) {
	t.Parallel()
	cfg := configured(t, &kept{})
	cfg.Size = 1 << 20 // it is downloaded once for each member that is not stated
	c, err := newCluster(cfg)
	defer c.close()
	if err != nil {
		t.Fatal(err)
	}
	var e evidence
	walk(t, &e, c.start, c.register, c.exchange, c.join, c.download, c.hold)
	s := silenced(t, c.relay.console.Base)
	c.relay.console = s.console

	read := func(look func(document) error) func() error {
		return func() error {
			d, err := s.status(t.Context())
			if err != nil {
				return err
			}
			return look(d)
		}
	}
	for _, step := range []struct {
		name  string
		needs string // names of members, each of which has to be there
		run   func() error
	}{
		// First, since windows end.
		{"hold", "runs renewals", read(func(d document) error { _, err := c.kept(d, slotCount); return err })},
		{"start", "start registeredChanged", read(func(d document) error { _, err := registeredAfter(d); return err })},
		{"start, its checks", "ready findings state", func() error {
			r, _ := s.Ready(t.Context())
			return checked(&e, r)
		}},
		{"exchange", "requests id toCloudly fromCloudly", read(func(d document) error { return d.carried(&e, nodeNames[nodeA], nodeNames[nodeB]) })},
		{"network", "network revision state members grants", read(func(d document) error { _, err := c.inForce(&e, d); return err })},
		{"network, its tunnels", "session rttSeconds lane node", read(c.tunnelled)},
		{"download", "toPackets toBytes fromPackets", func() error { return c.downloaded(t.Context(), &e, c.nodes[nodeA]) }},
		{"denied", "action reason revision sentence", func() error { return c.explained(t.Context(), &e, c.nodes[nodeC], false) }},
		{"granted", "admitted", func() error { return c.explained(t.Context(), &e, c.nodes[nodeA], true) }},
	} {
		s.omits.Store("")
		if err := step.run(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		for name := range strings.FieldsSeq(step.needs) {
			s.omits.Store(name)
			if err := step.run(); !isMismatch(err) {
				t.Errorf("%s without %s: %v", step.name, name, err)
			}
		}
	}
}

// What is counted of the checks is what was found.
func TestChecked(t *testing.T) {
	required := client.Finding{Check: "bound", State: "ok"}
	advice := func(check, state string) client.Finding {
		return client.Finding{Check: check, State: state, Advice: true}
	}
	for want, findings := range map[string][]client.Finding{
		"ready: all 1 required checks hold, and all 0 advised ones":                      {required},
		"ready: all 2 required checks hold, and all 1 advised ones":                      {required, advice("a", "ok"), required},
		"ready: all 1 required checks hold; of 3 advised ones 2 wait (a, c)":             {advice("a", "pending"), required, advice("b", "ok"), advice("c", "pending")},
		"ready: all 1 required checks hold; of 1 advised ones 1 fail (a)":                {advice("a", "failing"), required},
		"ready: all 1 required checks hold; of 2 advised ones 1 wait (b) and 1 fail (a)": {advice("a", "failing"), advice("b", "pending"), required},
	} {
		var e evidence
		if err := checked(&e, client.Readiness{Ready: true, Findings: findings}); err != nil || e.facts[0].Says != want || e.facts[0].From != fromReady {
			t.Errorf("%+v, %v, want %q", e.facts, err, want)
		}
	}
	for what, r := range map[string]client.Readiness{
		"not ready":            {Findings: []client.Finding{required}},
		"no check":             {Ready: true},
		"no required one":      {Ready: true, Findings: []client.Finding{advice("a", "ok")}},
		"a required one waits": {Ready: true, Findings: []client.Finding{required, {Check: "origin", State: "pending"}}},
	} {
		if err := checked(new(evidence), r); !isMismatch(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// acknowledging is a status in which every node has acknowledged a renewal.
func acknowledging(c *cluster, sequence int64) document {
	var d document
	d.Duties.Escrow = new(client.EscrowSection)
	for _, name := range nodeNames {
		d.Duties.Escrow.Nodes = append(d.Duties.Escrow.Nodes, client.EscrowNode{
			ID: name, Acknowledged: &client.EscrowDelivery{Sequence: sequence}, ExpiresAt: time.UnixMilli(c.leases.window(slotCount).ExpiresAt),
		})
	}
	return d
}

// An outage was outlasted when each node has acknowledged, and not when none is shown.
func TestAcknowledged(t *testing.T) {
	c := &cluster{leases: newLeases(time.UnixMilli(1_800_000_000_000)), nodes: make([]*member, len(nodeNames))}
	if err := c.acknowledged(acknowledging(c, 3), 3); err != nil {
		t.Error(err)
	}
	for what, spoil := range map[string]func(*client.EscrowSection){
		"no node":            func(s *client.EscrowSection) { s.Nodes = nil },
		"a node less":        func(s *client.EscrowSection) { s.Nodes = s.Nodes[1:] },
		"no acknowledgement": func(s *client.EscrowSection) { s.Nodes[1].Acknowledged = nil },
		"an earlier one":     func(s *client.EscrowSection) { s.Nodes[1].Acknowledged.Sequence = 2 },
		"no end":             func(s *client.EscrowSection) { s.Nodes[2].ExpiresAt = time.Time{} },
	} {
		d := acknowledging(c, 3)
		spoil(d.Duties.Escrow)
		if err := c.acknowledged(d, 3); !isMismatch(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// That renewals are spared is shown by a window that opens, and by nothing else.
func TestSpared(t *testing.T) {
	t.Parallel()
	c, err := newCluster(configured(t, &kept{}))
	defer c.close()
	if err != nil {
		t.Fatal(err)
	}
	var e evidence
	walk(t, &e, c.start, c.register, func(ctx context.Context, _ *evidence) error {
		for _, m := range c.nodes {
			if err := c.project(m); err != nil {
				return err
			}
		}
		return nil
	}, c.hold)
	e = evidence{}
	if err := c.spared(t.Context(), &e, 0); err != nil || !slices.ContainsFunc(e.facts, func(f Fact) bool { n, _ := f.Values["windows"].(int); return n > 0 }) {
		t.Errorf("%+v, %v", e.facts, err)
	}
	// The grid of an outage that took longer than what was signed.
	whole := c.leases.from
	c.leases.from = whole.Add(-slotCount * slotEvery)
	if err := c.spared(t.Context(), &e, 0); !isMismatch(err) {
		t.Errorf("no window opens: %v", err)
	}
	c.leases.from = whole
	// A renewal that comes all the same; its window opens when the test is over.
	run, err := c.leases.run(c.nodes[nodeA].projection)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.cloudly.ApplyRenewal(t.Context(), run.Renewals[slotCount-1]); err == nil {
		t.Fatal("a renewal was admitted before its window")
	}
	if err := c.spared(t.Context(), &e, 0); !isMismatch(err) || !strings.Contains(err.Error(), "given to node-a") {
		t.Errorf("a renewal that was given: %v", err)
	}
	// A relay that goes on releasing is one like this.
	c.cloudly.Outage()
	err = eventually(t.Context(), settleWait, func() error {
		if n, err := c.relay.console.counted(t.Context(), pushedRenewals); err != nil || n == 0 {
			return fmt.Errorf("%d pushes, %w", n, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.spared(t.Context(), &e, 0); !isMismatch(err) || !strings.Contains(err.Error(), pushedRenewals) {
		t.Errorf("a relay that releases: %v", err)
	}
}

// What a release is said to have come to is what was told of it while it lasted.
func TestAcknowledgedBefore(t *testing.T) {
	at := func(seq uint64, node string) happening { return happening{Event: client.Event{Seq: seq}, Node: node} }
	end := func(count int) happening { return happening{Event: client.Event{Seq: 10}, Count: count} }
	told := []happening{at(3, nodeNames[nodeB]), at(4, nodeNames[nodeA]), at(5, nodeNames[nodeC]), at(8, nodeNames[nodeA])}
	for what, err := range map[string]error{
		"as told":                 acknowledgedBefore(end(4), told, 4),
		"with pushes once more":   acknowledgedBefore(end(4), told, 6),
		"with one of a later one": acknowledgedBefore(end(4), append(slices.Clone(told), at(11, nodeNames[nodeB])), 4),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"nothing told":          acknowledgedBefore(end(0), nil, 0),
		"a node without one":    acknowledgedBefore(end(3), told[1:], 4),
		"a node only later":     acknowledgedBefore(end(3), append(slices.Clone(told[1:]), at(11, nodeNames[nodeB])), 4),
		"more than told":        acknowledgedBefore(end(5), told, 5),
		"fewer than told":       acknowledgedBefore(end(3), told, 4),
		"more than were pushed": acknowledgedBefore(end(4), told, 3),
	} {
		if !isMismatch(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
