package startup_test

import (
	"fmt"
	"testing"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/typedsocket"
)

// R26: whatever ends the socket, five times, the relay registers each time anew, on
// another socket and with the next number. The waits between grow; how far, and that
// they begin anew, is held with an injected clock. Here the last two are ended by a new
// bearer, which a wait after a loss gives way to.
func TestR26_FiveKills(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.WaitReady()
	kills := []func(){
		r.Upstream.Cut,
		func() { r.Cloudly.CloseSockets(typedsocket.CloseRestart) },
		r.Cloudly.CutSockets,
		func() { r.Cloudly.CloseSockets(typedsocket.CloseNormal) },
		func() { r.Upstream.Outage(); resume(r) },
	}
	const hurried = 3
	var numbers []int64
	for i, kill := range kills {
		socket, ok := r.Cloudly.Registered()
		if !ok {
			t.Fatalf("before kill %d no relay is registered", i)
		}
		from := r.NextSeq()
		kill()
		r.WaitEvent(string(cloudly.EventSessionLost), from)
		if i >= hurried {
			afresh(r)
		}
		if _, err := r.Cloudly.WaitRegistered(r.Soon(), socket); err != nil {
			t.Fatalf("after kill %d: %v", i, err)
		}
		r.WaitReady()
		// None has stood for long enough to count as one that stood.
		if session := rig.SectionOf[cloudly.Status](r, cloudly.Name); session.Failures != i+1 {
			t.Errorf("after kill %d %d failures in a row", i, session.Failures)
		}
	}
	for n := range len(kills) + 1 {
		numbers = append(numbers, int64(n))
	}
	waitSequences(t, r, numbers...)
	if got, ok := r.Metrics().Value("relay_cloudly_sessions_lost_total"); !ok || got != float64(len(kills)) {
		t.Errorf("counted are %v lost sessions", got)
	}
	// Half a second up to one, twice that, and twice that again, as the relay says.
	var waits []float64
	for _, e := range r.Events(0) {
		if e.Type == string(cloudly.EventAttemptFailed) {
			if wait, ok := e.Fields["nextSeconds"].(float64); ok {
				waits = append(waits, wait)
			}
		}
	}
	if err := growing(waits); err != nil {
		t.Error(err)
	}
}

// growing judges the first waits that were told, of the 1st, 2nd and 4th failure.
func growing(waits []float64) error {
	bounds := []float64{1, 2, 8}
	if len(waits) != len(bounds) {
		return fmt.Errorf("%d waits were told: %v", len(waits), waits)
	}
	for i, wait := range waits {
		// What is told is what is left of the wait, on a machine that may be busy.
		if most := bounds[i]; wait < most/4 || wait > most {
			return fmt.Errorf("wait %d is %vs, want from %v to %v", i, wait, most/2, most)
		}
	}
	return nil
}

// resume ends an outage. As with occupy, the address may be in use for some moments.
func resume(r *rig.Rig) {
	r.Eventually("the proxy's address", r.Upstream.Resume)
}
