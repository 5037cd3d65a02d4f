package startup_test

import (
	"fmt"
	"testing"
	"time"

	"serve.zone/relay/forward"
	"serve.zone/relay/integration/rig"
)

// How long a start takes until Cloudly has accepted the relay, files and caches warm.
// The budget is 300 ms (design §11). It is printed, and judged by nobody: the machine
// has other work.
func TestBudget_StartToRegistered(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.WaitReady()
	best := time.Hour
	for n := 2; n <= 4; n++ {
		if code := r.Stop(); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		begun := time.Now()
		r.Start()
		waitRegistrations(t, r, n)
		best = min(best, r.Cloudly.Registrations()[n-1].At.Sub(begun))
	}
	t.Logf("start to registered: %s at best of three", best.Round(100*time.Microsecond))
	waitSequences(t, r, 0, 0, 0, 0)
}

// What an idle session of a node costs. The budget is 60 KiB (design §11). It is
// printed; under the race detector it says nothing. What is asserted is that the
// sessions are there when it is measured, and that they go.
func TestBudget_IdleNodeSessions(t *testing.T) {
	t.Parallel()
	const nodes = 48
	r := rig.New(t)
	r.WaitReady()
	// The first brings what all share.
	newPuppet(t, r, "node-0")
	before := memory(t, r)
	var all []*puppet
	for n := range nodes {
		all = append(all, newPuppet(t, r, fmt.Sprint("node-", n+1)))
	}
	held := func(want int) {
		t.Helper()
		r.Eventually(fmt.Sprint(want, " sessions"), func() error {
			if got := len(rig.SectionOf[forward.Status](r, forward.Name).Nodes); got != want {
				return fmt.Errorf("%d are held", got)
			}
			return nil
		})
	}
	held(nodes + 1)
	after := memory(t, r)
	for _, p := range all {
		p.Cut()
	}
	held(1)
	gone := memory(t, r)
	t.Logf("heap and stacks of an idle node session: %.1f KiB; left when it has gone: %.1f KiB",
		(after-before)/nodes/1024, (gone-before)/nodes/1024)
}

// memory returns the bytes of heap and stacks that are in use after a collection.
func memory(t *testing.T, r *rig.Rig) float64 {
	t.Helper()
	if page := r.Get("/debug/pprof/heap?gc=1"); page.Code != 200 {
		t.Fatalf("a collection: %d", page.Code)
	}
	m := r.Metrics()
	heap, ok := m.Value("go_memstats_heap_alloc_bytes")
	stacks, found := m.Value("go_memstats_stack_inuse_bytes")
	if !ok || !found {
		t.Fatal("the runtime's metrics are not there")
	}
	return heap + stacks
}
