package escrow_test

import (
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// past is a window that has ended.
var past = window{-20 * time.Minute, -20 * time.Minute, -6 * time.Minute}

// otherController is the controller of no session here.
const otherController = `{"id":"2","kind":"cloudly"}`

// R48: a node that is not carried, a session of another scope, a run that is over. Each
// refusal changes nothing held, and is counted by its name.
func TestR48_CarriedForeignStale(t *testing.T) {
	c := start(t)
	c.node("node-a")
	gone := c.byHand()
	gone.register("node-gone")
	c.Enroll("node-enrolled")
	if err := c.Cloudly.EnrollForeignNode("node-foreign"); err != nil {
		t.Fatal(err)
	}
	c.take(run{node: "node-gone", windows: grid(2)})
	gone.Cut()
	c.waitGone("node-gone")
	second := projectionOf("node-a", 2)
	c.take(run{node: "node-a", projection: second, windows: grid(4)})

	named := map[contract.RefusalName]int{}
	for _, row := range []struct {
		what string
		run
		want contract.RefusalName
		says string
	}{
		{"nobody knows the node", run{node: "node-x"}, notCarried, ""},
		{"enrolled, and never registered", run{node: "node-enrolled"}, notCarried, ""},
		{"the relay's own node, which has no session", run{node: "node-relay"}, notCarried, ""},
		{"a node of another cluster", run{node: "node-foreign"}, notCarried, ""},
		{"the node's socket has ended", run{node: "node-gone"}, notCarried, ""},
		{"another namespace", run{node: "node-a", namespace: "other"}, foreignSession, ""},
		{"another controller", run{node: "node-a", controller: otherController}, foreignSession, ""},
		{"another kind of controller", run{node: "node-a", controller: `{"kind":"onebox"}`}, foreignSession, ""},
		{"all windows past", run{node: "node-a", projection: second, windows: []window{past, {-19 * time.Minute, -19 * time.Minute, -5 * time.Minute}}}, runStale, ""},
		{"the last one ended a moment ago", run{node: "node-a", projection: second, windows: []window{past, {-14 * time.Minute, -time.Minute, -time.Millisecond}}}, runStale, ""},
		{"the generation before", run{node: "node-a", projection: projectionOf("node-a", 1)}, runStale, "generation"},
	} {
		if row.windows == nil {
			row.windows = grid(2)
		}
		c.refused(row.what, c.compose(row.run).AppendJSON(nil), row.want, row.says)
		named[row.want]++
		if n := c.shown("node-a"); n.Held != 4 {
			t.Errorf("%s: of node-a the status shows %+v", row.what, n)
		}
	}
	if n := c.shown("node-gone"); n.Held != 2 || n.Reachable {
		t.Errorf("of the node that is gone the status shows %+v", n)
	}
	if n := c.status(); n.Runs != 2 || n.Renewals != 6 {
		t.Errorf("the status shows %+v", n)
	}
	for name, n := range named {
		if got, _ := c.Metrics().Value("relay_escrow_answered_holds_total", "outcome", string(name)); got != float64(n) {
			t.Errorf("%v holds are counted as %s, want %d", got, name, n)
		}
	}

	// What looks like one of them and is none.
	for what, x := range map[string]run{
		"a shorter run of the same projection": {projection: second, windows: grid(1)},
		"one window is past, one is not":       {projection: second, windows: []window{past, current}},
		"the generation that follows":          {projection: projectionOf("node-a", 3), windows: grid(1)},
		"another projection, at a lower generation": {windows: grid(2),
			projection: contract.Reference{ID: "projection:other", Generation: 1, Digest: second.Digest}},
	} {
		c.take(run{node: "node-a", projection: second, windows: grid(4)})
		x.node = "node-a"
		c.taken(what, c.compose(x).AppendJSON(nil), len(x.windows))
		c.take(run{node: "node-a"})
	}
}

// R48, contract §9.3: of two things that are wrong the first one is named.
func TestR48_OrderOfTheRefusals(t *testing.T) {
	c := start(t)
	h := c.byHand()
	h.register("node-a")
	twice := func(_ int, s *contract.SignedDNSLeaseRenewal) { s.Renewal.Sequence = 1 }
	long := window{-time.Minute, -time.Minute, time.Hour}
	for _, row := range []struct {
		what string
		run
		want contract.RefusalName
	}{
		{"invalid, unordered, not carried, foreign", run{node: "node-x", namespace: "other", windows: []window{current, long, current}, change: twice}, runInvalid},
		{"unordered, not carried, foreign, past", run{node: "node-x", namespace: "other", windows: []window{past, past}}, runUnordered},
		{"unordered, foreign", run{node: "node-a", namespace: "other", windows: grid(2), change: twice}, runUnordered},
		{"not carried, foreign, past", run{node: "node-x", namespace: "other", windows: []window{past}}, notCarried},
		{"foreign, past", run{node: "node-a", namespace: "other", windows: []window{past}}, foreignSession},
		{"past", run{node: "node-a", windows: []window{past}}, runStale},
	} {
		body := c.compose(row.run).AppendJSON(nil)
		c.refused(row.what, body, row.want, "")
		// Who sends it is judged before all of it.
		_, err := h.ask(holding, string(body))
		c.wantRefused(row.what+", from a node", err, cloudlyOnly, "")
	}
	c.taken("empty, not carried", c.compose(run{node: "node-x", namespace: "other"}).AppendJSON(nil), 0)
	if s := c.status(); s.Runs != 0 || s.HeldBytes != 0 {
		t.Errorf("the status shows %+v", s)
	}
}

// R48: a run that a node hands over is refused, be it the node's own and right; nothing is
// held and nothing emptied.
func TestR48_CloudlyAloneHandsOver(t *testing.T) {
	c := start(t)
	a := c.node("node-a")
	stranger := c.byHand()
	own := c.compose(run{node: "node-a", windows: grid(3)}).AppendJSON(nil)
	try := func(what string, body []byte) {
		_, err := a.SendBody(c.Soon(), holding, body)
		c.wantRefused(what+", from the node", err, cloudlyOnly, "")
		_, err = stranger.ask(holding, string(body))
		c.wantRefused(what+", from a stranger", err, cloudlyOnly, "")
	}
	try("a right run", own)
	try("no run", []byte(`{}`))
	if s := c.status(); s.Runs != 0 {
		t.Errorf("the status shows %+v", s)
	}
	c.taken("the same run, from cloudly", own, 3)
	try("nothing", c.compose(run{node: "node-a"}).AppendJSON(nil))
	try("a shorter run", c.compose(run{node: "node-a", windows: grid(1)}).AppendJSON(nil))
	if n := c.shown("node-a"); n.Held != 3 {
		t.Errorf("the status shows %+v", n)
	}
	for _, m := range c.Cloudly.Frames().Messages() {
		if !m.Sent && m.Method == holding && m.Request {
			t.Error("a hold was forwarded to cloudly")
		}
	}
	c.reaches("node-a")
	if got := len(a.Frames().Received(holding)); got != 0 {
		t.Errorf("%d holds were forwarded to the node", got)
	}
}

// R48, O9: after a return a node is not carried until it has registered again, and the run
// that was held for it stays meanwhile.
func TestR48_O9_AfterAReturn(t *testing.T) {
	c := start(t)
	a := c.node("node-a")
	c.take(run{node: "node-a", windows: grid(3)})
	c.lose()
	c.waitPushes(a, 1)
	c.back()
	c.refused("before it has registered", c.compose(run{node: "node-a", windows: grid(2)}).AppendJSON(nil), notCarried, "")
	if n := c.shown("node-a"); n.Held != 3 || n.Confirmed {
		t.Errorf("the status shows %+v", n)
	}
	c.Eventually("the node's registration", func() error { return a.Register(c.Soon()) })
	c.take(run{node: "node-a", first: 2, windows: grid(2)})
	if n := c.shown("node-a"); n.Held != 2 || !n.Confirmed {
		t.Errorf("the status shows %+v", n)
	}
	c.reaches("node-a")
	c.wantPushes(a, 1)
}

// R49: a refused hold changes nothing: what the status shows stays as it is, and the good
// run is released.
func TestR49_ARefusedHoldChangesNothing(t *testing.T) {
	c := start(t)
	a := c.node("node-a")
	good := c.take(run{node: "node-a", first: 7, windows: grid(3)})
	before := c.status()
	for what, row := range map[string]struct {
		run
		want contract.RefusalName
	}{
		"invalid":   {run{node: "node-a", first: 70, windows: grid(24)}, runInvalid},
		"unordered": {run{node: "node-a", first: 70, windows: []window{current, current}}, runUnordered},
		"foreign":   {run{node: "node-a", first: 70, windows: grid(2), namespace: "other"}, foreignSession},
		"stale":     {run{node: "node-a", first: 70, windows: []window{past}}, runStale},
		"other":     {run{node: "node-x", first: 70, windows: grid(2)}, notCarried},
	} {
		c.refused(what, c.compose(row.run).AppendJSON(nil), row.want, "")
		after := c.status()
		if after.HeldBytes != before.HeldBytes || after.Runs != 1 || after.Renewals != 3 || c.shown("node-a").Current.Sequence != 7 {
			t.Errorf("%s: the status shows %+v, before %+v", what, after, before)
		}
	}
	c.lose()
	pushed := c.waitPushes(a, 7)
	if len(pushed) == 1 && string(pushed[0].signed) != string(good.Renewals[0].AppendJSON(nil)) {
		t.Errorf("released was %s", pushed[0].signed)
	}
	c.waitAcknowledged("node-a", 7)
	if j := a.Judgements(); len(j) != 1 || j[0].Admission != simulate.Admitted {
		t.Errorf("the node judged %+v", j)
	}
}
