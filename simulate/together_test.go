package simulate

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// A Pallet and a Cloudly on both sides of the least relay there is.
func TestPalletAndCloudly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		p := newHop(t).under(s).pallet(s, "node-a", nil)
		registered(t, p, 0)
		held, _ := s.Node("node-a")
		if binding, _ := p.Binding(); string(binding.Received) != string(held.Session) || held.Nonce != p.Nonce() {
			t.Errorf("the node holds %s", []byte(binding.Received))
		}
		for _, m := range contract.Methods() {
			if m.Takes(contract.NodeToRelay) && m.Name != registerNode &&
				m.Name != "reportRuntimeAssignmentLogs" && m.Name != "getRuntimeManagedVpnCredential" {
				if _, err := p.Send(soon(t), m.Name, []byte("{}")); err != nil {
					t.Errorf("%s: %v", m.Name, explain(err))
				}
			}
		}
		for sequence, want := range map[int64]string{1: "accepted"} {
			if status, err := p.ReportLogs(soon(t), batch(sequence)); err != nil || status != want {
				t.Errorf("logs: %q, %v", status, err)
			}
		}
		projection, err := s.Project("node-a")
		if err != nil {
			t.Fatal(err)
		}
		p.AdmitProjection(projection)
		if _, err := p.GetManagedVPNCredential(soon(t)); err != nil {
			t.Errorf("vpn credential: %v", err)
		}
		for method, members := range map[string][2]string{
			"applyRuntimeAssignment":        {`{"assignment":{"generation":1}}`, `{"status":"accepted"}`},
			"applyRuntimeLocalStorageClaim": {`{"claim":{"id":"c"}}`, `{"status":"accepted","state":"pending","claim":{"id":"c"}}`},
			"readRuntimeAssignmentStats":    {`{"assignment":{"id":"a"}}`, `{"status":"not-running","assignment":{"id":"a"}}`},
		} {
			if got, err := s.CallNode(soon(t), "node-a", method, []byte(members[0])); err != nil || string(got) != members[1] {
				t.Errorf("%s: %s, %v", method, []byte(got), err)
			}
		}
		wantViolations(t, s.Violations())
		wantViolations(t, p.Violations())
	})
}

// R32: a simulated node replays and rotates on its live socket, gets the sessions that
// Cloudly holds, and disturbs no other node.
func TestR32_RotationOnTheLiveSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		h := newHop(t).under(s)
		a, b := h.pallet(s, "node-a", nil), h.pallet(s, "node-b", nil)
		socket := registered(t, a, 0)
		registered(t, b, 0)
		before, _ := a.Binding()
		other, _ := b.Binding()
		if err := a.Register(soon(t)); err != nil {
			t.Fatalf("replay: %v", err)
		}
		if replayed, _ := a.Binding(); string(replayed.Received) != string(before.Received) {
			t.Error("a replay changes the binding")
		}
		next, err := s.RotateNodeCredential("node-a")
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Rotate(soon(t), next); err != nil {
			t.Fatal(err)
		}
		rotated, _ := a.Binding()
		state, _ := s.Node("node-a")
		if string(rotated.Received) != string(state.Session) || state.Epoch != 2 || state.Generation != 2 || state.Nonce != a.Nonce() {
			t.Errorf("after the rotation the node holds %s, cloudly %+v", []byte(rotated.Received), state)
		}
		if number, _ := a.Registered(); number != socket || a.Dials() != 1 {
			t.Error("a rotation needs another socket")
		}
		if again, _ := b.Binding(); string(again.Received) != string(other.Received) || b.Dials() != 1 {
			t.Error("the other node was disturbed")
		}
		wantViolations(t, append(a.Violations(), b.Violations()...))
	})
}

// R42: a simulated node that is told to register again, is cut or reconnects keeps its
// nonce and with it its session; a restarted one has another.
func TestR42_ReconnectWithTheUnchangedNonce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		h := newHop(t).under(s)
		p := h.pallet(s, "node-a", nil)
		socket := registered(t, p, 0)
		nonce := p.Nonce()
		before, _ := p.Binding()
		for _, end := range []func(){
			func() { h.last().Close(typedsocket.CloseRegisterAgain, "register again") },
			func() { h.last().Cut(typedsocket.CloseGoingAway, "gone") },
			p.Reconnect,
		} {
			time.Sleep(stableAfter)
			began := time.Now()
			end()
			socket = registered(t, p, socket)
			if took := time.Since(began); took > DefaultFirstBackoff {
				t.Errorf("registered again after %s", took)
			}
			if binding, _ := p.Binding(); string(binding.Received) != string(before.Received) || p.Nonce() != nonce {
				t.Error("an unchanged registration has another binding")
			}
		}
		p.Restart()
		registered(t, p, socket)
		if state, _ := s.Node("node-a"); p.Nonce() == nonce || state.Epoch != 2 || state.Nonce != p.Nonce() {
			t.Errorf("after a restart cloudly holds %+v", state)
		}
		wantViolations(t, p.Violations())
	})
}

// R29: a simulated node may spell its bodies as it likes, and the simulated Cloudly
// reads them the same.
func TestR29_UnusualSpelling(t *testing.T) {
	spaced := func(body []byte) []byte {
		return []byte(strings.ReplaceAll(strings.ReplaceAll(string(body), `":`, `" : `), `{`, "{ \n"))
	}
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		p := newHop(t).under(s).pallet(s, "node-a", func(cfg *PalletConfig) { cfg.Spell = spaced })
		registered(t, p, 0)
		if err := p.Register(soon(t)); err != nil {
			t.Errorf("replay: %v", err)
		}
		if _, err := p.Send(soon(t), "reportRuntimeNetworkProtection", []byte(`{"b":1,"a":{}}`)); err != nil {
			t.Errorf("report: %v", explain(err))
		}
		for _, method := range []string{registerNode, "reportRuntimeNetworkProtection"} {
			sent, received := p.Frames().Sent(method), s.Frames().Received(method)
			for i := range sent {
				if string(sent[i].Body) != string(received[i].Body) || !strings.Contains(string(sent[i].Body), "{ \n") {
					t.Errorf("%s %d: sent %s, received %s", method, i, sent[i].Body, received[i].Body)
				}
			}
		}
		wantViolations(t, append(s.Violations(), p.Violations()...))
	})
}

// R34: of two simulated processes of one node, one with the nonce that it is told, the
// newer socket takes over.
func TestR34_TwoProcessesOfOneNode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		h := newHop(t).under(s)
		first := h.pallet(s, "node-a", func(cfg *PalletConfig) { cfg.Nonce = nonceA })
		registered(t, first, 0)
		second := h.pallet(s, "node-a", nil)
		registered(t, second, 0)
		if state, _ := s.Node("node-a"); first.Nonce() != nonceA || state.Epoch != 2 || state.Nonce != second.Nonce() {
			t.Errorf("cloudly holds %+v", state)
		}
		if _, err := first.Send(soon(t), "reportRuntimeNetworkProtection", []byte("{}")); err == nil {
			t.Error("the session that was fenced reports")
		}
		if _, err := s.CallNode(soon(t), "node-a", "applyRuntimeAssignment", []byte("{}")); err != nil {
			t.Errorf("push: %v", explain(err))
		}
		if len(first.Frames().Received("applyRuntimeAssignment")) != 0 || len(second.Frames().Received("applyRuntimeAssignment")) != 1 {
			t.Error("the push went to the older process")
		}
	})
}

// Four hours on the grid with a relay that stays: every slot is delivered once,
// none early, and the relay always holds what follows.
func TestCloudlyKeepsLeasesRenewed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		h, held := newHop(t).holding(s)
		p := h.pallet(s, "node-a", nil)
		registered(t, p, 0)
		if err := s.KeepRenewed(); err != nil {
			t.Fatal(err)
		}
		if err := s.KeepRenewed(); err != nil {
			t.Fatalf("again: %v", err)
		}
		projection, err := s.Project("node-a")
		if err != nil {
			t.Fatal(err)
		}
		p.AdmitProjection(projection)
		own := SlotOf(s.clock.now())
		// The first delivery is lost, the second refused: both come again.
		p.Script(contract.MethodApplyDNSLeaseRenewal, Ignore(), Refuse("not now", nil))
		time.Sleep(4*time.Hour + time.Minute)
		synctest.Wait()

		wantEverySlotOnce(t, p, own, 24)
		if len(*held) != 25 {
			t.Errorf("%d runs were handed over, want 25", len(*held))
		}
		for i, run := range *held {
			if first := run.Renewals[0].Renewal; len(run.Renewals) != GridRun || first.Sequence != int64(i)+1 {
				t.Errorf("run %d begins with sequence %d and has %d", i, first.Sequence, len(run.Renewals))
			}
		}
		if !p.ServesDNS() {
			t.Error("the node's window has ended")
		}
		// The node registers again elsewhere: the relay is given the run again.
		p.Restart()
		registered(t, p, 1)
		if err := s.Wait(soon(t), "a run for the new session", func() bool { return len(s.Frames().Sent(contract.MethodHoldDNSLeaseRenewals)) == 26 }); err != nil {
			t.Error(err)
		}
		wantViolations(t, append(s.Violations(), p.Violations()...))
	})
}

// wantEverySlotOnce checks that the node admitted each of the n slots after the
// given one once, within its first minute, and judged nothing else.
func wantEverySlotOnce(t *testing.T, p *Pallet, after int64, n int) {
	t.Helper()
	var slots, want []int64
	for i := range n {
		want = append(want, int64(i)+1)
	}
	for _, j := range p.Judgements() {
		slot := SlotOf(time.UnixMilli(j.Renewal.DNS.IssuedAt))
		if j.Admission != Admitted || j.At.Before(SlotStart(slot)) || j.At.After(SlotStart(slot).Add(time.Minute)) {
			t.Errorf("slot %d at %s: %q, %v", slot-after, j.At.Sub(SlotStart(slot)), j.Admission, j.Refusal)
		}
		slots = append(slots, slot-after)
	}
	if diff := cmp.Diff(want, slots); diff != "" {
		t.Errorf("delivered slots (-want +got):\n%s", diff)
	}
}
