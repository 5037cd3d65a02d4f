package appliance

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStartRegisterCarryAndDrain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{})
		r.registered(0)
		p := r.node("node-a")
		if _, err := p.Send(r.soon(), "reportRuntimeNetworkProtection", []byte(`{"b":1}`)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.cloudly.CallNode(r.soon(), "node-a", "applyRuntimeAssignment", []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		if status, body := r.get("/readyz"); status != 200 {
			t.Errorf("ready: %d %s", status, body)
		}
		if diff := cmp.Diff([]string{"registered first", "configured stated", "bound node-a"}, r.rec.take()); diff != "" {
			t.Errorf("the duties were told (-want +got):\n%s", diff)
		}
		r.wantNoViolations(p)

		began := time.Now()
		if err := r.halt(); err != nil {
			t.Errorf("run: %v", err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("an idle relay drained for %s\n%s", took, r.log)
		}
		synctest.Wait()
		told := r.rec.take()
		if len(told) == 0 || told[0] != "quiesced" {
			t.Errorf("the duties were told %v: the end comes without notice", told)
		}
		slices.Sort(told) // the node goes and the duty drains beside each other
		if diff := cmp.Diff([]string{"drained", "lost", "quiesced", "unbound node-a"}, told); diff != "" {
			t.Errorf("the duties were told (-want +got):\n%s", diff)
		}
	})
}
