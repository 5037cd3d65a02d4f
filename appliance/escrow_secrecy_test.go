package appliance

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
	"serve.zone/relay/escrow"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// Texts that are handed to the relay in a hold and that it must not show.
const (
	markedController = `{"kind":"cloudly","id":"marked-controller"}`
	markedText       = "marked-text-of-cloudly"
	markedAnswer     = "marked-answer-of-a-node"
)

type (
	heldRun = contract.HoldDNSLeaseRenewalsRequest
	record  = contract.SignedDNSLeaseRenewal
)

// spoiled is one way in which a hold is wrong.
type spoiled struct {
	name string
	want contract.RefusalName
	run  func(x *heldRun)         // changes a right run; its digests are made again
	text func(body string) string // changes its text
	past time.Duration            // how long ago it was right
}

// each changes every renewal of a run.
func each(change func(s *record)) func(*heldRun) {
	return func(x *heldRun) {
		for i := range x.Renewals {
			change(&x.Renewals[i])
		}
	}
}

// second changes the second renewal of a run.
func second(change func(s *record)) func(*heldRun) {
	return func(x *heldRun) { change(&x.Renewals[1]) }
}

// spoiledRuns are all the ways.
func spoiledRuns() []spoiled {
	const invalid, unordered, stale = contract.EscrowRunInvalid, contract.EscrowRunUnordered, contract.EscrowRunStale
	other := func(of, as string) func(string) string {
		return func(body string) string { return strings.Replace(body, of, as, 1) }
	}
	dns := func(change func(w *contract.DNSWindow, before contract.DNSWindow)) func(*heldRun) {
		return func(x *heldRun) { change(&x.Renewals[1].Renewal.DNS, x.Renewals[0].Renewal.DNS) }
	}
	return []spoiled{
		{name: "no object", want: invalid, text: func(string) string { return `["` + markedText + `"]` }},
		{name: "a member more", want: invalid, text: other(`{`, `{"`+markedText+`":1,`)},
		{name: "a member more inside", want: invalid, text: other(`"issuedAt"`, `"`+markedText+`":{},"issuedAt"`)},
		{name: "a name twice", want: invalid, text: other(`"issuedAt"`, `"issuedAt":"`+markedText+`","issuedAt"`)},
		{name: "a text for a number", want: invalid, text: other(`"sequence":7`, `"sequence":"`+markedText+`"`)},
		{name: "no node id", want: invalid, run: func(x *heldRun) { x.NodeID = "node." + markedText }},
		{name: "no identifier", want: invalid, run: each(func(s *record) { s.Renewal.RuntimeNamespace = "-" + markedText })},
		{name: "33 renewals", want: invalid, run: func(x *heldRun) { *x = tightRun(*x, 33) }},
		{name: "two nodes", want: invalid, run: second(func(s *record) { s.Renewal.NodeID = "node-" + markedText })},
		{name: "two projections", want: invalid, run: second(func(s *record) { s.Renewal.Projection.ID = markedText })},
		{name: "two authorities", want: invalid, run: second(func(s *record) { s.Authority = contract.Raw(`{"id":"` + markedText + `"}`) })},
		{name: "two controllers", want: invalid, run: second(func(s *record) { s.Renewal.Controller = contract.Raw(`{"kind":"` + markedText + `"}`) })},
		{name: "two namespaces", want: invalid, run: second(func(s *record) { s.Renewal.RuntimeNamespace = markedText })},
		{name: "a window too long", want: invalid, run: dns(func(w *contract.DNSWindow, _ contract.DNSWindow) { w.ExpiresAt++ })},
		{name: "a window before its slot", want: invalid, run: dns(func(w *contract.DNSWindow, _ contract.DNSWindow) { w.NotBefore = w.IssuedAt - 1 })},
		{name: "a window that never opens", want: invalid, run: dns(func(w *contract.DNSWindow, _ contract.DNSWindow) { w.NotBefore = w.ExpiresAt })},
		{name: "beyond the horizon", want: invalid, run: func(x *heldRun) {
			w := &x.Renewals[len(x.Renewals)-1].Renewal.DNS
			w.IssuedAt = x.Renewals[0].Renewal.DNS.IssuedAt + contract.MaximumEscrowHorizon.Milliseconds()
			w.NotBefore, w.ExpiresAt = w.IssuedAt, w.IssuedAt+1
		}},
		{name: "a digest of something else", want: invalid, text: other(`"sequence":7`, `"sequence":8`)},
		{name: "no digest", want: invalid, run: second(func(s *record) { s.Renewal.Projection.Digest = "sha256:" + markedText })},
		{name: "a signature too long", want: invalid, run: second(func(s *record) { s.Signature = strings.Repeat(markedText, 6) })},

		{name: "equal sequences", want: unordered, run: second(func(s *record) { s.Renewal.Sequence-- })},
		{name: "an issue before the last", want: unordered, run: dns(func(w *contract.DNSWindow, before contract.DNSWindow) {
			w.IssuedAt = before.IssuedAt - 1
			w.ExpiresAt = before.ExpiresAt - 1
		})},
		{name: "an end that is not later", want: unordered, run: dns(func(w *contract.DNSWindow, before contract.DNSWindow) { w.ExpiresAt = before.ExpiresAt })},

		{name: "a node that is not carried", want: contract.EscrowNodeNotCarried, run: func(x *heldRun) {
			x.NodeID, x.Projection.ID = "node-elsewhere", markedText
			each(func(s *record) { s.Renewal.NodeID, s.Renewal.Projection = x.NodeID, x.Projection })(x)
		}},
		{name: "another namespace", want: contract.EscrowRunForeignSession, run: each(func(s *record) { s.Renewal.RuntimeNamespace = markedText })},
		{name: "another controller", want: contract.EscrowRunForeignSession, run: each(func(s *record) { s.Renewal.Controller = contract.Raw(`{"kind":"` + markedText + `"}`) })},
		{name: "windows that have ended", want: stale, past: 2 * time.Hour},
		{name: "a lower generation", want: stale, run: func(x *heldRun) {
			x.Projection.Generation--
			each(func(s *record) { s.Renewal.Projection = x.Projection })(x)
		}},
	}
}

// tightRun is a run of so many windows, a millisecond each.
func tightRun(x heldRun, n int) heldRun {
	first := x.Renewals[0]
	x.Renewals = nil
	for i := range n {
		s := first
		at := s.Renewal.DNS.IssuedAt + int64(i)
		s.Renewal.Sequence, s.Renewal.DNS = int64(i+1), contract.DNSWindow{IssuedAt: at, NotBefore: at, ExpiresAt: at + 1}
		x.Renewals = append(x.Renewals, s)
	}
	return x
}

// bodyOf makes the body of a hold that is wrong in one way of a run that is right.
func (s spoiled) bodyOf(t *testing.T, x heldRun) string {
	t.Helper()
	x.Renewals = slices.Clone(x.Renewals)
	move := func(ms *int64) { *ms -= s.past.Milliseconds() }
	for i := range x.Renewals {
		w := &x.Renewals[i].Renewal.DNS
		move(&w.IssuedAt)
		move(&w.NotBefore)
		move(&w.ExpiresAt)
	}
	if s.run != nil {
		s.run(&x)
	}
	for i := range x.Renewals {
		digest, err := x.Renewals[i].Renewal.ComputeDigest()
		if err != nil {
			t.Fatal(err)
		}
		x.Renewals[i].Renewal.Digest = digest
	}
	body := string(x.AppendJSON(nil))
	if s.text != nil {
		body = s.text(body)
	}
	return body
}

// R46–R49, R94: Cloudly hands over runs that are wrong in every way there is. Each is
// refused by its name, with a reason that quotes nothing, and changes nothing held;
// and no log, event, status, check or metric shows anything of them, nor of the run
// that is right, nor of what its node answers when it is released.
func TestR46_R49_R94_NothingOfAHoldIsShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const id = "node-a"
		r := newRig(t, change{cloudly: func(c *simulate.CloudlyConfig) { c.Controller = contract.Raw(markedController) }})
		r.registered(0)
		p := r.dialling(id, func(c *simulate.PalletConfig) { c.Controller = contract.Raw(markedController) })
		if _, err := p.WaitRegistered(r.soon(), 0); err != nil {
			t.Fatal(err)
		}
		var projection simulate.Projection
		for range 2 { // so that there is a lower generation
			var err error
			if projection, err = r.cloudly.Project(id); err != nil {
				t.Fatal(err)
			}
		}
		p.AdmitProjection(projection)
		first := simulate.SlotOf(time.Now()) + 6
		run, err := r.cloudly.Run(id, first, 5)
		if err != nil {
			t.Fatal(err)
		}
		bound, _ := p.Binding()
		secrets := []string{markedText, markedAnswer, "marked-controller", string(bound.Received), projection.Reference.Digest[7:],
			base64.StdEncoding.EncodeToString(r.cloudly.Authority().PublicKey)}
		for _, s := range run.Renewals {
			secrets = append(secrets, s.Signature, s.Renewal.Digest[7:])
		}
		if held, err := r.cloudly.Hold(r.soon(), run); err != nil || held != 5 {
			t.Fatalf("held %d: %v", held, err)
		}
		held := r.section(escrow.Name)

		names := map[contract.RefusalName]int{}
		refused := func(what string, err error, want contract.RefusalName) {
			t.Helper()
			names[want]++
			if nameOf(err) != want {
				t.Errorf("%s: %v, want %s", what, err, want)
			}
			var remote *typedsocket.RemoteError
			if errors.As(err, &remote) {
				wantUnmarked(t, what, remote.Text+string(remote.Data), secrets)
			}
			if diff := cmp.Diff(held, r.section(escrow.Name)); diff != "" {
				t.Errorf("%s: status (-before +after):\n%s", what, diff)
			}
			r.wantSecret(secrets...)
			time.Sleep(61 * time.Second) // each is told as an event
		}
		for _, s := range spoiledRuns() {
			body := s.bodyOf(t, run)
			_, err := r.cloudly.Call(r.soon(), contract.MethodHoldDNSLeaseRenewals, []byte(body))
			refused(s.name, err, s.want)
		}
		w := r.dialled("node-b")
		for _, who := range []string{"an unbound socket", "a node"} {
			_, err := w.call(contract.MethodHoldDNSLeaseRenewals, string(run.AppendJSON(nil)))
			names[contract.EscrowCloudlyOnly]++
			if nameOf(err) != contract.EscrowCloudlyOnly {
				t.Errorf("of %s: %v", who, err)
			}
			r.wantSecret(secrets...)
			if err := w.register(); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range contract.HoldRefusals().Names() {
			if names[name] == 0 {
				t.Errorf("no hold was refused %s", name)
			}
		}
		for name, n := range names {
			if name == contract.EscrowCloudlyOnly {
				continue
			}
			series := fmt.Sprintf(`relay_escrow_answered_holds_total{outcome="%s"}`, name)
			if got := r.metric(series); got != n {
				t.Errorf("%s is %d, want %d", series, got, n)
			}
		}
		if said := r.says(escrow.HoldRefused, "refusal"); len(said) != len(spoiledRuns()) {
			t.Errorf("%d events of refused holds: %v", len(said), said)
		}

		// The right one is released, and its node answers all but what it should.
		time.Sleep(time.Until(simulate.SlotStart(first).Add(-time.Minute)))
		p.Script(contract.MethodApplyDNSLeaseRenewal,
			simulate.Refuse(markedAnswer, []byte(`{"code":"`+markedAnswer+`"}`)),
			simulate.Respond([]byte(`{"status":"`+markedAnswer+`","renewal":"`+markedAnswer+`"}`)),
			simulate.Respond([]byte(`["`+markedAnswer+`"]`)),
			simulate.Respond(run.AppendJSON(nil)))
		r.cloudly.Outage()
		for slot := first; slot < first+5; slot++ {
			time.Sleep(time.Until(simulate.SlotStart(slot).Add(5 * time.Minute)))
			synctest.Wait()
			r.wantSecret(secrets...)
		}
		var taken []int64
		for _, j := range p.Judgements() {
			if j.Admission == simulate.Admitted {
				taken = append(taken, simulate.SlotOf(j.At)-first)
			}
		}
		if !slices.Equal(taken, []int64{0, 1, 2, 3, 4}) {
			t.Errorf("the node took slots %v", taken)
		}

		// Were something shown, it would be found.
		if all := r.shown(); !strings.Contains(all, id) || !strings.Contains(all, string(escrow.RenewalNotTaken)) {
			t.Error("nothing is shown at all")
		}
	})
}

// wantUnmarked checks that a text holds none of these.
func wantUnmarked(t *testing.T, what, text string, secrets []string) {
	t.Helper()
	for i, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Errorf("%s: secret %d is told: %s", what, i, text)
		}
	}
}
