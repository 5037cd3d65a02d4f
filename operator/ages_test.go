package operator

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket/carriertest"
)

// Design §9: a check is shown with its age. One whose duty does not know it has
// been as it is since the endpoint saw it change, and since the start when it
// never did.
func TestAgesThatADutyDoesNotKnow(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		checks := []duty.Check{ok("network")} // at the start
		var broken bool
		r := newRig(t, duties(&stub{name: "hub", checks: func() []duty.Check {
			if broken {
				panic("x")
			}
			return checks
		}}))
		failing := func(reason string) duty.Check {
			return duty.Check{Name: "network", State: duty.Failing, Reason: reason, Hint: "Wait."}
		}
		steps := []struct {
			says  []duty.Check
			panic bool
			want  []float64 // the ages in seconds; a minute lies between two steps
		}{
			{says: []duty.Check{ok("network")}, want: []float64{60}},
			{says: []duty.Check{ok("network")}, want: []float64{120}},
			{says: []duty.Check{failing("no-network")}, want: []float64{0}},
			{says: []duty.Check{failing("no-network"), ok("keys")}, want: []float64{60, 0}},
			{says: []duty.Check{failing("network-expired"), ok("keys")}, want: []float64{0, 60}},
			{panic: true, want: []float64{0}},
			{says: []duty.Check{failing("network-expired"), ok("keys")}, want: []float64{120, 180}},
			{says: []duty.Check{ok("keys")}, want: []float64{240}},
			// One that went away and came back was not seen meanwhile.
			{says: []duty.Check{failing("network-expired"), ok("keys")}, want: []float64{0, 300}},
			// Who knows it itself is believed, also once it does not any more.
			{says: []duty.Check{{Name: "network", State: duty.OK, Since: time.Now().Add(9*time.Minute + 30*time.Second)}, ok("keys")}, want: []float64{30, 360}},
			{says: []duty.Check{ok("network"), ok("keys")}, want: []float64{90, 420}},
		}
		for i, step := range steps {
			time.Sleep(time.Minute)
			checks, broken = step.says, step.panic
			given := append([]duty.Check{}, checks...)
			var shown struct {
				Findings []struct {
					Duty       string
					AgeSeconds float64
				}
			}
			if err := json.Unmarshal([]byte(r.get("/readyz?verbose&format=json").body), &shown); err != nil {
				t.Fatal(err)
			}
			var ages []float64
			for _, f := range shown.Findings {
				if f.Duty == "hub" {
					ages = append(ages, f.AgeSeconds)
				}
			}
			if diff := cmp.Diff(step.want, ages); diff != "" {
				t.Errorf("step %d: ages (-want +got):\n%s", i, diff)
			}
			for n := range given {
				if !given[n].Since.Equal(checks[n].Since) {
					t.Errorf("step %d: the duty's own checks were changed", i)
				}
			}
		}
	})
}

// A duty that counts from when it first judged a check is asked at the start, not only
// when somebody wants to know.
func TestAgesThatBeginWithTheFirstQuestion(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		var judged duty.Check
		r := newRig(t, duties(&stub{name: "hub", checks: func() []duty.Check {
			c := ok("network")
			c.Since = time.Now()
			judged = c.After(judged)
			return []duty.Check{judged}
		}}))
		time.Sleep(time.Hour)
		if got := r.get("/readyz?verbose").body; !strings.Contains(got, "ok hub network [required, for 1h0m0s since ") {
			t.Errorf("%s", got)
		}
	})
}

// What is remembered is what was shown last, however many names a duty makes up.
func TestAgesAreBounded(t *testing.T) {
	a := newAges(time.Now())
	now := time.Now()
	for range 100 {
		now = now.Add(time.Second)
		a.fill([]duty.Check{ok(now.Format("a150405")), ok(now.Format("b150405"))}, now)
	}
	if len(a.seen) != 2 {
		t.Errorf("%d checks are remembered", len(a.seen))
	}
}
