package escrow_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// R45: a run is held, counted, replaced as a whole and emptied; and what was emptied is
// not released.
func TestR45_HeldCountedReplacedEmptied(t *testing.T) {
	c := start(t)
	a, b := c.node("node-a"), c.node("node-b")

	whole := c.take(run{node: "node-a", windows: grid(23)})
	last := whole.Renewals[22].Renewal.DNS.ExpiresAt
	if n := c.shown("node-a"); n.Held != 23 || n.ExpiresAt.UnixMilli() != last || !n.Reachable || n.Current == nil || n.Current.Sequence != 1 {
		t.Errorf("of 23 the status shows %+v", n)
	}
	c.taken("the identical run", whole.AppendJSON(nil), 23)

	c.take(run{node: "node-a", first: 40, windows: grid(3)})
	if s, n := c.status(), c.shown("node-a"); s.Runs != 1 || s.Renewals != 3 || n.Held != 3 || n.Current.Sequence != 40 {
		t.Errorf("of 3 the status shows %+v", s)
	}
	c.take(run{node: "node-b", windows: grid(2)})
	if s := c.status(); s.Runs != 2 || s.Renewals != 5 {
		t.Errorf("of 3 and 2 the status shows %+v", s)
	}

	c.take(run{node: "node-a"})
	if s, n := c.status(), c.shown("node-a"); s.Runs != 1 || n.Held != 0 || n.Current != nil || !n.ExpiresAt.IsZero() {
		t.Errorf("of nothing the status shows %+v", s)
	}
	c.take(run{node: "node-a"}) // there is nothing to empty
	c.take(run{node: "node-x"}) // nobody knows it (contract §9.3, 4)
	c.lose()
	c.waitPushes(b, 1)
	c.wantPushes(a)
	c.wantPushed(1)
}

// R46: 32 renewals, and four hours from the first issuedAt to the last expiresAt, are
// held; one more, and a millisecond more, are refused. Of the intended grid 23 windows
// are held and 24 refused.
func TestR46_RenewalsAndHorizon(t *testing.T) {
	c := start(t)
	p := c.node("node-a")
	tight := func(n int) run {
		x := run{node: "node-a"}
		for i := range n {
			at := time.Hour + time.Duration(i)*time.Millisecond
			x.windows = append(x.windows, window{at, at, at + time.Millisecond})
		}
		return x
	}
	reaching := func(horizon time.Duration) run {
		// It counts from the slot of the first window, not from where that opens.
		return run{node: "node-a", windows: []window{{-time.Minute, 5 * time.Minute, 10 * time.Minute},
			{horizon - 6*time.Minute, horizon - 6*time.Minute, horizon - time.Minute}}}
	}
	for _, good := range []run{tight(maximumRenewals), {node: "node-a", windows: grid(23)}, reaching(maximumHorizon)} {
		c.take(good)
	}
	for what, bad := range map[string]run{"33 renewals": tight(maximumRenewals + 1), "24 windows": {node: "node-a", windows: grid(24)},
		"four hours and a millisecond": reaching(maximumHorizon + time.Millisecond)} {
		c.refused(what, c.compose(bad).AppendJSON(nil), runInvalid, "renewals: ")
	}

	// The same by the grid of the simulated Cloudly, under its own projection and key.
	projection, err := c.Cloudly.Project("node-a")
	if err != nil {
		t.Fatal(err)
	}
	p.AdmitProjection(projection)
	next := simulate.SlotOf(time.Now()) + 1
	for _, n := range []int{23, 24} {
		request, err := c.Cloudly.Run("node-a", next, n)
		if err != nil {
			t.Fatal(err)
		}
		if held, err := c.Cloudly.Hold(c.Soon(), request); n == 23 && (err != nil || held != 23) {
			t.Errorf("23 slots of the grid: %d, %v", held, err)
		} else if n == 24 {
			c.wantRefused("24 slots of the grid", err, runInvalid, "14400000")
		}
	}
}

// R47: a run of more than one node, projection, authority or scope, with a window that is
// not valid or too long, or out of order, is refused by name. Gaps are no fault.
func TestR47_StructureOfARun(t *testing.T) {
	c := start(t)
	c.node("node-a")
	spoiled := func(change func(*contract.SignedDNSLeaseRenewal)) run {
		return run{node: "node-a", windows: grid(4), change: func(i int, s *contract.SignedDNSLeaseRenewal) {
			if i == 2 {
				change(s)
			}
		}}
	}
	second := func(w window) run { return run{node: "node-a", windows: []window{current, w}} }
	const minute, long = time.Minute, maximumWindow
	for what, row := range map[string]struct {
		run
		want contract.RefusalName // "" when it is to be taken
		says string
	}{
		"whole":                  {run{node: "node-a", windows: grid(4)}, "", ""},
		"another node":           {spoiled(func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.NodeID = "node-b" }), runInvalid, "renewals[2].renewal.nodeId: "},
		"another projection":     {spoiled(func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.Projection.ID += "x" }), runInvalid, "renewals[2].renewal.projection: "},
		"another generation":     {spoiled(func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.Projection.Generation++ }), runInvalid, "renewals[2].renewal.projection: "},
		"another content":        {spoiled(func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.Projection = projectionOf("x", 1) }), runInvalid, "renewals[2].renewal.projection: "},
		"another authority":      {spoiled(func(s *contract.SignedDNSLeaseRenewal) { s.Authority = contract.Raw(`{"id":"other"}`) }), runInvalid, "renewals[2].authority: "},
		"another revision of it": {spoiled(laterRevision), runInvalid, "renewals[2].authority: "},
		"another controller": {spoiled(func(s *contract.SignedDNSLeaseRenewal) {
			s.Renewal.Controller = contract.Raw(`{"id":"2","kind":"cloudly"}`)
		}), runInvalid, "renewals[2].renewal.controller: "},
		"another namespace":             {spoiled(func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.RuntimeNamespace = "other" }), runInvalid, "renewals[2].renewal.runtimeNamespace: "},
		"all of another node":           {run{node: "node-a", windows: grid(2), change: func(_ int, s *contract.SignedDNSLeaseRenewal) { s.Renewal.NodeID = "node-b" }}, runInvalid, "renewals[0].renewal.nodeId: "},
		"all of another projection":     {run{node: "node-a", windows: grid(2), change: func(_ int, s *contract.SignedDNSLeaseRenewal) { s.Renewal.Projection.Generation++ }}, runInvalid, "renewals[0].renewal.projection: "},
		"no sequence":                   {spoiled(func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.Sequence = 0 }), runInvalid, "renewals[2].renewal.sequence: "},
		"no authority":                  {run{node: "node-a", windows: grid(2), change: func(_ int, s *contract.SignedDNSLeaseRenewal) { s.Authority = contract.Raw(`null`) }}, runInvalid, "authority: "},
		"a signature of 129 bytes":      {spoiled(func(s *contract.SignedDNSLeaseRenewal) { s.Signature = fmt.Sprintf("%0129d", 7) }), runInvalid, "renewals[2].signature: "},
		"a signature of 128 bytes":      {spoiled(func(s *contract.SignedDNSLeaseRenewal) { s.Signature = fmt.Sprintf("%0128d", 7) }), "", ""},
		"a window of 900000 ms":         {second(window{minute, minute, minute + long}), "", ""},
		"a window of 900001 ms":         {second(window{minute, minute, minute + long + time.Millisecond}), runInvalid, "renewals[1].renewal.dns.expiresAt: "},
		"measured from its slot":        {second(window{minute, 2 * minute, minute + long + time.Millisecond}), runInvalid, "renewals[1].renewal.dns.expiresAt: "},
		"a window that never opens":     {second(window{minute, 11 * minute, 11 * minute}), runInvalid, "renewals[1].renewal.dns.expiresAt: "},
		"open before its slot":          {second(window{minute, minute - time.Millisecond, 11 * minute}), runInvalid, "renewals[1].renewal.dns.notBefore: "},
		"equal sequence":                {spoiled(func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.Sequence = 2 }), runUnordered, "renewals[2].renewal.sequence: "},
		"lower sequence":                {spoiled(func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.Sequence = 1 }), runUnordered, "renewals[2].renewal.sequence: "},
		"falling issuedAt":              {second(window{-minute - time.Millisecond, 0, 11 * minute}), runUnordered, "renewals[1].renewal.dns.issuedAt: "},
		"equal issuedAt":                {second(window{-minute, -minute, 11 * minute}), "", ""},
		"equal expiresAt":               {second(window{0, 0, 10 * minute}), runUnordered, "renewals[1].renewal.dns.expiresAt: "},
		"a millisecond more":            {second(window{0, 0, 10*minute + time.Millisecond}), "", ""},
		"a gap of sequences":            {run{node: "node-a", windows: grid(3), change: func(i int, s *contract.SignedDNSLeaseRenewal) { s.Renewal.Sequence = int64(i*900 + 1) }}, "", ""},
		"a gap of windows":              {second(window{3 * time.Hour, 3 * time.Hour, 3*time.Hour + long}), "", ""},
		"unordered and invalid at once": {spoiled(func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.Sequence, s.Renewal.RuntimeNamespace = 1, "other" }), runInvalid, "runtimeNamespace"},
	} {
		body := c.compose(row.run).AppendJSON(nil)
		if row.want == "" {
			c.taken(what, body, len(row.windows))
			continue
		}
		c.refused(what, body, row.want, row.says)
	}
}

// laterRevision signs under the next revision of the same authority.
func laterRevision(s *contract.SignedDNSLeaseRenewal) {
	s.Authority = bytes.Replace(s.Authority, []byte(`"generation":1`), []byte(`"generation":2`), 1)
}
