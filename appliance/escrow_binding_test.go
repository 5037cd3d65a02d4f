package appliance

import (
	"bytes"
	"context"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/escrow"
	"serve.zone/relay/simulate"
)

// R52, contract §9.6: a run that is held stays held for a node whose socket breaks while
// Cloudly is away. In the next outage it is released under the binding that the node
// obtained in between, and under no other: another session after a restart of the node,
// the same one on another socket after a break. The bytes are those that came.
func TestR52_ReleasedUnderTheBindingOfTheReturn(t *testing.T) {
	for name, test := range map[string]struct {
		breaks func(*simulate.Pallet)
		epoch  int64
	}{
		"the node begins anew": {(*simulate.Pallet).Restart, 2},
		"its connection broke": {(*simulate.Pallet).Reconnect, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				const id = "node-a"
				r := newRig(t, change{})
				r.registered(0)
				p := r.node(id)
				projection, err := r.cloudly.Project(id)
				if err != nil {
					t.Fatal(err)
				}
				p.AdmitProjection(projection)
				first := simulate.SlotOf(time.Now()) + 1
				run, err := r.cloudly.Run(id, first, simulate.GridRun)
				if err != nil {
					t.Fatal(err)
				}
				handed := bytes.ReplaceAll(run.AppendJSON(nil), []byte(`,"`), []byte(` , "`)) // as no encoder writes it
				if _, err := r.cloudly.Call(r.soon(), contract.MethodHoldDNSLeaseRenewals, handed); err != nil {
					t.Fatal(err)
				}

				until := func(slot int64, after time.Duration) {
					t.Helper()
					after += time.Until(simulate.SlotStart(first - 1 + slot))
					time.Sleep(after)
				}
				until(0, 5*time.Minute)
				r.cloudly.Outage()
				until(2, 5*time.Minute) // slots 1 and 2
				test.breaks(p)
				until(3, 3*time.Minute)
				socket := r.cloudly.Opened()
				r.cloudly.Return()
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				if _, err := r.cloudly.WaitRegistered(ctx, socket); err != nil {
					t.Fatal(err)
				}
				until(4, 5*time.Minute) // Cloudly is there, and silent
				r.cloudly.Outage()
				until(5, time.Minute) // slots 4, at once, and 5

				bound, _ := p.Binding()
				state, _ := r.cloudly.Node(id)
				if !bytes.Equal(bound.Received, state.Session) || state.Epoch != test.epoch || p.Dials() < 2 {
					t.Errorf("the node holds %s after %d dials, want that of epoch %d: %s", bound.Received, p.Dials(), test.epoch, state.Session)
				}
				want := []struct {
					slot  int64
					after time.Duration
					again bool // on the socket of the return
				}{{1, 0, false}, {2, 0, false}, {4, 5 * time.Minute, true}, {5, 0, true}}
				judged := p.Judgements()
				if len(judged) != len(want) {
					t.Fatalf("the node was given %d renewals: %+v", len(judged), judged)
				}
				number, _ := p.Registered()
				pushed := p.Frames().Received(contract.MethodApplyDNSLeaseRenewal)
				for i, w := range want {
					at := simulate.SlotStart(first - 1 + w.slot).Add(w.after)
					j := judged[i]
					if j.Admission != simulate.Admitted || j.Renewal.Sequence != w.slot || !j.At.Equal(at) || (j.Socket == number) != w.again {
						t.Errorf("push %d was of slot %d at %s on socket %d of %d: %q, %v", i, j.Renewal.Sequence, clockText(j.At), j.Socket, number, j.Admission, j.Refusal)
					}
					request, err := contract.ReadApplyDNSLeaseRenewalRequest(pushed[i].Body)
					if err != nil || !bytes.Contains(handed, request.Signed.Received) || len(request.Signed.Received) < 300 {
						t.Errorf("push %d does not bear a record as it was handed over: %v", i, err)
					}
					if w.again && !bytes.Equal(request.Session, bound.Received) {
						t.Errorf("push %d is under %s", i, request.Session)
					}
				}
				if said := r.says(escrow.NodeUnreachable, "node"); len(said) != 1 || said[0] != id {
					t.Errorf("unreachable nodes: %v", said)
				}
				r.wantNoViolations(p)
			})
		})
	}
}
