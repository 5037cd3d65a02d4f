package ingress_test

import (
	"fmt"
	"testing"
	"time"

	"serve.zone/relay/ingress"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

// R68: of tables that are pushed the one of the greatest revision stays, with its own
// bytes, and each push is answered with the revision that is held then. The ingress is
// told of each that was taken, and of no other.
func TestR68_OfPushedTablesTheGreatestStays(t *testing.T) {
	c := start(t)
	h := c.ingress("node-a")
	h.wantTable("before any", "null")
	if c.status().Table != nil {
		t.Error("the status shows a table")
	}
	five, six := c.odd(5, "app.example", "api.example"), c.odd(6, "app.example")
	for _, place := range []struct {
		what, table string
		revision    int64
		held        string
		hint        bool
	}{
		{"5", five, 5, five, true},
		{"4 behind 5", c.odd(4, "app.example"), 5, five, false},
		{"5 once more", five, 5, five, false},
		{"5 with other routes", c.odd(5, "other.example"), 5, five, false},
		{"6", six, 6, six, true},
		{"5 behind 6", five, 6, six, false},
		{"6 without routes", plainTable(6), 6, six, false},
	} {
		c.pushed(place.what, place.table, place.revision)
		if place.hint {
			h.wantHint(place.revision) // the next one: there was none in between
		}
		h.wantTable(place.what, place.held)
		if got := c.revision(); got != place.revision {
			t.Errorf("%s: the status shows revision %d", place.what, got)
		}
	}
	// Whatever the ingress has, it is answered what is held (contract O15).
	for _, known := range []string{"5", "6", "7", "9007199254740991"} {
		if got, err := h.ask(asking, `{ "knownRevision" : `+known+` }`); err != nil || string(got) != `{"table":`+six+`}` {
			t.Errorf("an ingress that knows %s is answered %.300s, %v", known, got, err)
		}
	}
	h.wantNoHint("after 6")

	s := c.status()
	c.Eventually("the last hint to be acknowledged", func() error {
		if s = c.status(); s.Table == nil || len(s.Ingresses) != 1 || s.Ingresses[0].Acknowledged != 6 {
			return fmt.Errorf("the status shows %+v", s)
		}
		return nil
	})
	want := ingress.Table{Revision: 6, IssuedAt: time.UnixMilli(1767225600000).UTC(), AppliedAt: s.Table.AppliedAt,
		Origin: "pushed", Routes: 1, PortRoutes: 1, Bytes: len(six)}
	if *s.Table != want {
		t.Errorf("the status shows the table %+v, want %+v", *s.Table, want)
	}
	if got := s.Ingresses[0]; got.Node != "node-a" || got.Registrations != 1 || got.Hinted != 6 || got.Pulls != 12 || got.Pulled != 6 {
		t.Errorf("the status shows the ingress %+v", got)
	}
	c.wantApplied("pushed 5", "pushed 6")
	if got := c.counted("relay_ingress_received_tables_total", "origin", "pushed", "outcome", "stale"); got != 5 {
		t.Errorf("%v pushed tables are counted as stale", got)
	}
}

// wantApplied checks which tables the events tell of.
func (c *cluster) wantApplied(want ...string) {
	c.t.Helper()
	var got []string
	for _, e := range c.Events(0) {
		if e.Type == string(ingress.RouteTableApplied) {
			got = append(got, fmt.Sprintf("%s %v", e.Text("outcome"), e.Fields["revision"]))
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		c.t.Errorf("the events tell of the tables %q, want %q", got, want)
	}
}

// R68: a table is pulled after each registration of the relay, and judged as a pushed one
// is. Null is a fact, which an ingress is told while none is held, and which takes nothing
// away.
func TestR68_PulledTablesAndNull(t *testing.T) {
	c := start(t)
	if err := c.Cloudly.WaitReceived(c.Soon(), pulling, 1); err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Cloudly.Frames().Received(pulling) {
		if string(m.Body) != `{}` {
			t.Errorf("the relay pulls with %s", m.Body)
		}
	}
	h := c.ingress("node-a")
	h.wantTable("cloudly has computed none", "null")

	five, six, seven := c.odd(5, "app.example"), c.odd(6, "app.example"), c.odd(7, "app.example")
	c.pulls(`{"table":`+five+`}`, "applied")
	h.wantHint(5)
	for _, place := range []struct{ what, body, outcome string }{
		{"a lower one", `{"table":` + c.odd(4, "app.example") + `}`, "stale"},
		{"null", `{"table":null}`, "null"},
		{"the same revision", `{"table":` + plainTable(5) + `}`, "stale"},
	} {
		c.pulls(place.body, place.outcome)
		h.wantTable(place.what, five)
	}
	c.pushed("a push behind the pulls", six, 6)
	h.wantHint(6)
	c.pulls(`{"table":`+five+`}`, "stale") // a pull that crossed the push
	h.wantTable("pulled 5 behind pushed 6", six)
	c.pulls("{\t\"novel\":{}, \"table\":"+seven+" }", "applied") // a member of a later minor
	h.wantHint(7)
	h.wantTable("pulled 7", seven)
	c.pushed("6 behind pulled 7", six, 7)
	h.wantTable("pushed 6 behind pulled 7", seven)
	h.wantNoHint("in the end")
	c.wantApplied("pulled 5", "pushed 6", "pulled 7")
	if c.status().Table.Origin != "pulled" {
		t.Errorf("the status shows %+v", c.status().Table)
	}
}

// R68: what Cloudly holds when a relay begins is there as soon as it has pulled, and a
// relay that began before Cloudly had computed any table learns of the first one.
func TestR68_TheFirstTable(t *testing.T) {
	c := start(t, rig.Before(func(r *rig.Rig) { r.Cloudly.Script(pulling, anyway(`{"table":`+plainTable(3)+`}`)) }))
	c.Eventually("the table that cloudly held", func() error {
		if got := c.revision(); got != 3 {
			return fmt.Errorf("held is %d", got)
		}
		return nil
	})
	c.ingress("node-a").wantTable("pulled at the beginning", plainTable(3))

	// The relay restarts: nothing of it is there any more, and the next one is taken
	// although its revision is lower.
	c.Cloudly.ScriptAlways(pulling, anyway(`{"table":null}`))
	c.Restart()
	c.WaitReady()
	h := c.ingress("node-a")
	h.wantTable("after a restart", "null")
	c.pushed("the first", plainTable(1), 1)
	h.wantHint(1)
	h.wantTable("the first", plainTable(1))
}

// R68: a simulated ingress serves exactly what was computed for it, table after table,
// and passes over none.
func TestR68_AnIngressFollowsTheTable(t *testing.T) {
	c := start(t)
	a, b := c.Ingress("node-a", c.bearer), c.Ingress("node-b", c.bearer)
	if a.AcceptedRevision() != 0 {
		t.Errorf("accepted with revision %d", a.AcceptedRevision())
	}
	for _, i := range []*simulate.Ingress{a, b} {
		if err := i.Wait(c.Soon(), "the first answer", func() bool { return len(i.Tables()) == 1 }); err != nil {
			t.Fatal(err)
		}
	}
	authority := c.authority()
	for revision := int64(1); revision <= 3; revision++ {
		table, err := c.Cloudly.PublishRoutes(c.Soon(), []simulate.IngressRoute{c.route(authority, "app.example", "127.0.0.1:9")}, nil)
		if err != nil || table.Revision != revision {
			t.Fatalf("published %d, %v", table.Revision, err)
		}
		for _, i := range []*simulate.Ingress{a, b} {
			if err := i.WaitRevision(c.Soon(), revision); err != nil {
				t.Fatal(err)
			}
			if got, _ := i.Table(); string(got.Encoded) != string(table.Encoded) {
				t.Errorf("table %d changed on its way", revision)
			}
		}
	}
	for node, i := range map[string]*simulate.Ingress{"node-a": a, "node-b": b} {
		var got []string
		for _, j := range i.Tables() {
			got = append(got, fmt.Sprintf("%s %d", j.Outcome, j.Revision))
		}
		if want := "[none 0 applied 1 applied 2 applied 3]"; fmt.Sprint(got) != want || i.Dials() != 1 {
			t.Errorf("the ingress of %s judged %q on %d sockets, want %s", node, got, i.Dials(), want)
		}
	}
	// One that comes later is accepted with the revision that it then pulls.
	if late := c.Ingress("node-c", c.bearer); late.AcceptedRevision() != 3 {
		t.Errorf("accepted with revision %d", late.AcceptedRevision())
	} else if err := late.WaitRevision(c.Soon(), 3); err != nil {
		t.Error(err)
	}
	c.wantSpeakers("node-a", "node-b", "node-c")
}
