package appliance

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

const report = "reportRuntimeNetworkProtection"

// refusedBy returns the name that a call was refused with.
func refusedBy(err error) contract.RefusalName {
	var remote *typedsocket.RemoteError
	if !errors.As(err, &remote) {
		return ""
	}
	name, _, _ := strings.Cut(remote.Text, ":")
	return contract.RefusalName(name)
}

// R97: what is in flight is finished, nothing new is taken, in both directions.
func TestR97_DrainFinishesWhatIsInFlight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{})
		r.registered(0)
		a, b := r.node("node-a"), r.node("node-b")
		r.cloudly.Script(report, simulate.Late(4*time.Second))
		b.Script("applyRuntimeAssignment", simulate.Late(4*time.Second))
		reported, pushed := make(chan error, 1), make(chan error, 1)
		go func() { _, err := a.Send(r.soon(), report, []byte(`{}`)); reported <- err }()
		go func() {
			_, err := r.cloudly.CallNode(r.soon(), "node-b", "applyRuntimeAssignment", []byte(`{}`))
			pushed <- err
		}()
		synctest.Wait()
		began := time.Now()
		r.stop()
		time.Sleep(time.Second)
		if status, _ := r.get("/readyz"); status != 503 {
			t.Errorf("readiness while draining: %d", status)
		}
		if status, _ := r.get("/livez"); status != 200 {
			t.Errorf("liveness while draining: %d", status)
		}
		if _, err := a.Send(r.soon(), report, []byte(`{}`)); refusedBy(err) != contract.RelayNotReady {
			t.Errorf("a new request while draining: %v", err)
		}
		if _, err := r.cloudly.CallNode(r.soon(), "node-a", "applyRuntimeAssignment", []byte(`{}`)); refusedBy(err) != contract.RelayNotReady {
			t.Errorf("a new push while draining: %v", err)
		}
		for what, c := range map[string]chan error{"report": reported, "push": pushed} {
			if err := <-c; err != nil {
				t.Errorf("the %s in flight: %v", what, err)
			}
		}
		if err := r.halt(); err != nil {
			t.Errorf("run: %v", err)
		}
		if took := time.Since(began); took > drainNodes {
			t.Errorf("drained for %s", took)
		}
		r.wantNoViolations(a, b)
	})
}

// R97: what hangs is cut short, and the whole takes ten seconds at most.
func TestR97_DrainCutsShortWhatHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{})
		r.registered(0)
		a := r.node("node-a")
		r.cloudly.Script(report, simulate.Ignore())
		failed := make(chan error, 1)
		go func() { _, err := a.Send(r.soon(), report, []byte(`{}`)); failed <- err }()
		synctest.Wait()
		began := time.Now()
		if err := r.halt(); err != nil {
			t.Errorf("run: %v", err)
		}
		if took := time.Since(began); took < drainNodes || took > drainWait {
			t.Errorf("drained for %s", took)
		}
		if err := <-failed; err == nil {
			t.Error("a request that nobody answered succeeded")
		}
	})
}

// Nodes that are sent away at once would all come back at once.
func TestDrainSpreadsTheClosing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{})
		r.registered(0)
		var nodes []*simulate.Pallet
		for i := range 40 {
			nodes = append(nodes, r.node(fmt.Sprintf("node-%d", i)))
		}
		began := time.Now()
		r.stop()
		var closed [2]int // after 100 ms, after 3 s
		for i, wait := range []time.Duration{100 * time.Millisecond, 2900 * time.Millisecond} {
			time.Sleep(wait)
			for _, p := range nodes {
				if _, ok := p.Registered(); !ok {
					closed[i]++
				}
			}
		}
		if closed[0] > 20 || closed[1] != 40 {
			t.Errorf("of 40 sockets %d were closed after 100 ms, %d after 3 s", closed[0], closed[1])
		}
		if r.halt(); time.Since(began) > 5*time.Second {
			t.Errorf("drained for %s", time.Since(began))
		}
	})
}
