package simulate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
	"serve.zone/relay/typedsocket/carriertest"
)

// alone is a registered Pallet behind a hop without a Cloudly, and the hop's
// end of its socket as a client that pushes.
func alone(t *testing.T, change func(*PalletConfig)) (*Pallet, *client) {
	t.Helper()
	h := newHop(t)
	h.answer(registerNode, func(r *typedsocket.Request) { r.Answer([]byte(sessionAnswer(goodSession))) })
	p := h.pallet(nil, "node-a", change)
	registered(t, p, 0)
	return p, &client{t: t, socket: h.last()}
}

func TestPushesAreJudged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, c := alone(t, func(cfg *PalletConfig) { cfg.PushMethods = []string{"pushSignedProjection"} })
		const method = "applyRuntimeAssignment"
		stale := strings.Replace(goodSession, `"sessionEpoch":1`, `"sessionEpoch":2`, 1)
		const foreign = "the session is not this node's current one"
		c.refuses(method,
			wrong{"no session", []byte(`{"nodeId":"node-a"}`), "the request carries no session", ""},
			wrong{"another epoch", []byte(`{"session":` + stale + `}`), foreign, ""},
			wrong{"another node", []byte(`{"session":` + strings.Replace(goodSession, "node-a", "node-b", 1) + `}`), foreign, ""},
			wrong{"no object", []byte(`{"session":"node-a"}`), foreign, ""})
		wantViolations(t, p.Violations(), WithoutSession, ForeignSession, ForeignSession, ForeignSession)
		const none = "There is no available method for this call on the server side"
		body := []byte(`{"session":` + goodSession + `}`)
		for _, other := range []string{"openRuntimeAssignmentExec", "reportRuntimeAssignmentLogs", contract.MethodHoldDNSLeaseRenewals, "anything"} {
			c.refuses(other, wrong{other, body, none, ""})
		}
		wantViolations(t, p.Violations()[4:], NotForNode, NotForNode, NotForNode, NotForNode)
		for _, good := range []string{method, "pushSignedProjection"} {
			if got := c.must(good, body); got != `{"status":"accepted"}` {
				t.Errorf("%s: %s", good, got)
			}
		}
		c.must(method, []byte(`{"session":`+strings.Replace(goodSession, `:{`, ` : { `, 1)+`}`))
		c.refuses("applyRuntimeLocalStorageClaim",
			wrong{"no claim", body, "invalid applyRuntimeLocalStorageClaim request: claim: is missing", ""})
		c.refuses("readRuntimeAssignmentStats",
			wrong{"another member", []byte(`{"session":` + goodSession + `,"assignment":1,"a":1}`),
				"invalid readRuntimeAssignmentStats request: body: has a member that is not known", ""})
		if len(p.Violations()) != 8 {
			t.Errorf("violations %v", p.Violations())
		}
	})
}

func TestPushBeforeTheRegistration(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHop(t)
		h.answer(registerNode, func(r *typedsocket.Request) { r.Refuse("no", nil) })
		p := h.pallet(nil, "node-a", nil)
		synctest.Wait()
		c := &client{t: t, socket: h.last()}
		c.refuses("applyRuntimeAssignment", wrong{"unbound", []byte(`{"session":` + goodSession + `}`), "the session is not this node's current one", ""})
		wantViolations(t, p.Violations(), ForeignSession)
	})
}

// What waits for a registration that is never answered is not judged at all.
func TestPushBehindALostRegistration(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHop(t)
		h.answer(registerNode, func(r *typedsocket.Request) { r.Drop() })
		p := h.pallet(nil, "node-a", nil)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := h.last().Call(ctx, "applyRuntimeAssignment", []byte(`{"session":`+goodSession+`}`), typedsocket.CallOptions{Timeout: time.Minute})
		if !errors.Is(err, typedsocket.ErrClosed) {
			t.Errorf("got %v", err)
		}
		wantViolations(t, p.Violations())
	})
}

// Renewals that reach the node are verified and admitted as the seed says.
func TestRenewalsReachTheNode(t *testing.T) {
	authority := NewSigningAuthority(1)
	wall := &clock{}
	bubble(t, func(t *testing.T) {
		p, c := alone(t, func(cfg *PalletConfig) { cfg.Wall = wall.now; cfg.Authority = authority.Authority })
		own := SlotOf(wall.now())
		projection := testProjection()
		projection.DNS, projection.Authority = slotWindow(own), authority.Reference()
		sign := func(by *SigningAuthority, sequence, slot int64) contract.SignedDNSLeaseRenewal {
			signed, err := by.Sign(testRenewal(sequence, slot))
			if err != nil {
				t.Fatal(err)
			}
			return signed
		}
		push := func(signed contract.SignedDNSLeaseRenewal) []byte {
			return contract.ApplyDNSLeaseRenewalRequest{Session: contract.Raw(goodSession), Signed: signed}.AppendJSON(nil)
		}
		const method = contract.MethodApplyDNSLeaseRenewal
		first := sign(authority, 1, own+1)
		c.refuses(method, wrong{"no projection", push(first), errNoAdmittedProjection.Error(), ""})
		p.AdmitProjection(projection)
		c.refuses(method,
			wrong{"early", push(first), ErrRenewalEarly.Error(), ""},
			unread(t, "corrupt", contract.ReadApplyDNSLeaseRenewalRequest, swap(t, push(first), `"sequence":1`, `"sequence":2`)),
			wrong{"foreign authority", push(sign(NewSigningAuthority(1), 1, own+1)), ErrRenewalAuthority.Error(), ""})
		wall.step(SlotStart(own + 1).Sub(wall.now()))
		want := func(status Admission, signed contract.SignedDNSLeaseRenewal) {
			t.Helper()
			answer := contract.ApplyDNSLeaseRenewalAnswer{Status: string(status), Renewal: signed.Renewal.Reference()}
			if got := c.must(method, push(signed)); got != string(answer.AppendJSON(nil)) {
				t.Errorf("got %s", got)
			}
		}
		want(Admitted, first)
		want(Replay, first)
		if window, ok := p.Window(); !ok || window != slotWindow(own+1) || !p.ServesDNS() {
			t.Errorf("window %v", window)
		}
		p.Restart() // what was admitted is durable
		registered(t, p, 1)
		wantJudgements(t, p, "renewal-projection-not-current", "renewal-window-not-open", "renewal-authority-not-trusted", "admitted", "replay")
		wall.step(SlotWindow)
		if p.ServesDNS() {
			t.Error("the node serves names after its window")
		}
		p.AdmitProjection(projection)
		if window, _ := p.Window(); window != projection.DNS {
			t.Error("a new projection does not delete the renewal")
		}
		p.Trust(NewSigningAuthority(2).Authority)
		wantViolations(t, p.Violations())
	})
}

// wantJudgements checks what was decided, all about sequence 1 on socket 1.
func wantJudgements(t *testing.T, p *Pallet, want ...string) {
	t.Helper()
	got := []string{}
	for _, j := range p.Judgements() {
		text := string(j.Admission)
		if j.Refusal != nil {
			text, _, _ = strings.Cut(j.Refusal.Error(), ":")
		}
		got = append(got, text)
		if j.Socket != 1 || j.Renewal.Sequence != 1 {
			t.Errorf("judgement %+v", j)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("judgements (-want +got):\n%s", diff)
	}
}

func TestNodeRequestsNeedASession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, err := NewPallet(PalletConfig{URL: "ws://relay/", Wall: time.Now, NodeID: "node-a", Dial: carriertest.NewNetwork().Dial})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		_, bound := p.Binding()
		_, windowed := p.Window()
		if bound || windowed || p.ServesDNS() {
			t.Error("a node that was not started has a session or a window")
		}
		for name, call := range map[string]func() error{
			"send":     func() error { _, err := p.Send(t.Context(), "anything", []byte("{}")); return err },
			"body":     func() error { _, err := p.SendBody(t.Context(), "anything", []byte("{}")); return err },
			"register": func() error { return p.Register(t.Context()) },
			"vpn":      func() error { _, err := p.GetManagedVPNCredential(t.Context()); return err },
			"logs":     func() error { _, err := p.ReportLogs(t.Context(), batch(1)); return err },
		} {
			if err := call(); !errors.Is(err, ErrNotRegistered) {
				t.Errorf("%s: %v", name, err)
			}
		}
		p.StopReading()
	})
}

// The node binds the answers to its own requests.
func TestAnswersToTheNodeAreJudged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHop(t)
		h.answer(registerNode, func(r *typedsocket.Request) { r.Answer([]byte(sessionAnswer(goodSession))) })
		p := h.pallet(nil, "node-a", nil)
		registered(t, p, 0)
		projection := testProjection()
		p.AdmitProjection(projection)
		reply := func(method, answer string) {
			h.answer(method, func(r *typedsocket.Request) { r.Answer([]byte(answer)) })
		}
		logs := `{"status":"not-kept","assignmentId":"assignment-1","captureId":"capture-1","sequence":1}`
		reply("reportRuntimeAssignmentLogs", logs)
		if status, err := p.ReportLogs(soon(t), batch(1)); err != nil || status != "not-kept" {
			t.Errorf("logs: %q, %v", status, err)
		}
		vpn := `{"session":` + goodSession + `,"projection":` + string(projection.Reference.AppendJSON(nil)) + `,"transport":"quic","hub":{},` +
			`"authorityId":"m","serverPublicKey":"` + contract.NoiseKey{1}.String() + `","clientKeyPair":{},"expiresAt":1}`
		reply("getRuntimeManagedVpnCredential", vpn)
		if _, err := p.GetManagedVPNCredential(soon(t)); err != nil {
			t.Errorf("vpn: %v", err)
		}
		wantViolations(t, p.Violations())
		bad := 0
		for _, w := range [][2]string{{"assignment-1", "other"}, {"capture-1", "other"}, {`"sequence":1`, `"sequence":2`}, {`"not-kept"`, `""`}, {`{"status"`, `{"a":1,"status"`}} {
			reply("reportRuntimeAssignmentLogs", strings.Replace(logs, w[0], w[1], 1))
			if _, err := p.ReportLogs(soon(t), batch(1)); err == nil {
				t.Errorf("logs: %v passes", w)
			}
			bad++
		}
		for _, w := range [][2]string{{`"sessionEpoch":1`, `"sessionEpoch":2`}, {`"generation":1`, `"generation":2`}, {"quic", "tcp"}, {"AQAA", "AAA="}, {`"hub":{},`, ""}} {
			reply("getRuntimeManagedVpnCredential", strings.Replace(vpn, w[0], w[1], 1))
			if _, err := p.GetManagedVPNCredential(soon(t)); err == nil {
				t.Errorf("vpn: %v passes", w)
			}
			bad++
		}
		if got := rulesOf(p.Violations()); len(got) != bad || got[0] != AnswerNotBound {
			t.Errorf("violations %v", got)
		}
	})
}
