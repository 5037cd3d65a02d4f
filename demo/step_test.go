package demo

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// kept is a printer that keeps what it is told.
type kept struct {
	begun  []string
	ended  []Result
	live   []Live
	opened Opening
	closed Summary
	err    error
	after  int // ended steps, behind which err is the one of Err
}

func (k *kept) Open(o Opening)  { k.opened = o }
func (k *kept) Begin(r Result)  { k.begun = append(k.begun, r.Name) }
func (k *kept) Step(r Result)   { k.ended = append(k.ended, r) }
func (k *kept) Live(l Live)     { k.live = append(k.live, l) }
func (k *kept) Close(s Summary) { k.closed = s }
func (k *kept) Err() error {
	if len(k.ended) < k.after {
		return nil
	}
	return k.err
}

// scripted are steps of which each takes a second, and the one of a name does as told.
func scripted(name string, does func(context.Context, *evidence) error) []step {
	var steps []step
	for _, n := range []string{"one", "two", "three"} {
		run := func(_ context.Context, e *evidence) error {
			time.Sleep(time.Second)
			e.add(fromStatus, "fact of "+n, "n", len(n))
			return nil
		}
		if n == name {
			run = does
		}
		steps = append(steps, step{name: n, title: "step " + n, run: run})
	}
	return steps
}

func resultOf(number int, name string, o Outcome) Result {
	r := Result{Number: number, Name: name, Title: "step " + name, Outcome: o, Facts: []Fact{}}
	if o == Held {
		r.Seconds = 1
		r.Facts = []Fact{{From: fromStatus, Says: "fact of " + name, Values: map[string]any{"n": len(name)}}}
	}
	return r
}

// A step that does not hold ends the walk: it says why, and the rest is skipped by name.
func TestStepsBehindOneThatDoesNotHoldAreSkipped(t *testing.T) {
	failed := func(seconds float64, expected, found string) Result {
		r := resultOf(2, "two", Failed)
		r.Seconds, r.Expected, r.Found = seconds, expected, found
		return r
	}
	skipped := resultOf(3, "three", Skipped)
	tests := map[string]struct {
		does func(context.Context, *evidence) error
		want []Result // behind the first
		held bool
	}{
		"all hold": {nil, []Result{resultOf(2, "two", Held), resultOf(3, "three", Held)}, true},
		"a mismatch, however it is wrapped": {
			func(context.Context, *evidence) error { return fmt.Errorf("node-a: %w", mismatch("a", "%d of b", 2)) },
			[]Result{failed(0, "a", "2 of b"), skipped}, false,
		},
		"any other error": {
			func(context.Context, *evidence) error { return errors.New("no room") },
			[]Result{failed(0, "no error", "no room"), skipped}, false,
		},
		"a step that hangs": {
			func(ctx context.Context, _ *evidence) error { <-ctx.Done(); return ctx.Err() },
			[]Result{failed(stepWait.Seconds(), "no error", "context deadline exceeded"), skipped}, false,
		},
		"what held of a step is shown": {
			func(_ context.Context, e *evidence) error { e.add("cloudly", "saw it"); return errors.New("no room") },
			[]Result{{Number: 2, Name: "two", Title: "step two", Outcome: Failed, Facts: []Fact{{From: "cloudly", Says: "saw it"}}, Expected: "no error", Found: "no room"}, skipped}, false,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &kept{}
				steps := scripted("", nil)
				if test.does != nil {
					steps = scripted("two", test.does)
				}
				r := runner{to: k, steps: steps}
				r.perform(t.Context(), 1)
				r.perform(t.Context(), len(r.steps))
				want := append([]Result{resultOf(1, "one", Held)}, test.want...)
				if diff := cmp.Diff(want, k.ended); diff != "" {
					t.Errorf("steps (-want +got):\n%s", diff)
				}
				if r.held() != test.held {
					t.Errorf("held: %t", r.held())
				}
				counted := map[Outcome]int{}
				for _, x := range want {
					counted[x.Outcome]++
				}
				if diff := cmp.Diff(counted, r.summary().Steps); diff != "" || r.summary().Held != test.held {
					t.Errorf("summary %+v", r.summary())
				}
			})
		})
	}
}

// A signal interrupts the step that runs: that is no finding about the relay.
func TestASignalInterruptsTheStepThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		k := &kept{}
		r := runner{to: k, steps: scripted("one", func(ctx context.Context, _ *evidence) error {
			cancel()
			return eventually(ctx, time.Hour, func() error { return mismatch("a", "b") })
		})}
		r.perform(ctx, 3)
		if diff := cmp.Diff([]Result{resultOf(1, "one", Interrupted), resultOf(2, "two", Skipped), resultOf(3, "three", Skipped)}, k.ended); diff != "" {
			t.Errorf("steps (-want +got):\n%s", diff)
		}
	})
}

// Nothing more is shown to an output that takes nothing.
func TestAnOutputThatIsNotTakenEndsTheWalk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kept{err: errors.New("broken pipe"), after: 2}
		r := runner{to: k, steps: scripted("", nil)}
		r.perform(t.Context(), 3)
		if len(k.begun) != 2 || len(k.ended) != 2 {
			t.Errorf("begun %v, ended %v", k.begun, k.ended)
		}
	})
}

func TestEventually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		looks := 0
		if err := eventually(t.Context(), time.Minute, func() error {
			if looks++; looks < 4 {
				return errors.New("not yet")
			}
			return nil
		}); err != nil || time.Since(began) != 3*lookEvery {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		looks = 0
		err := eventually(t.Context(), time.Second, func() error { looks++; return fmt.Errorf("look %d", looks) })
		if err == nil || err.Error() != fmt.Sprintf("look %d", looks) || looks < 2 {
			t.Errorf("what was seen last is not told: %v of %d", err, looks)
		}
	})
}

func TestMismatchSaysBoth(t *testing.T) {
	if got := mismatch("three nodes", "%d nodes", 2).Error(); got != "expected three nodes; found 2 nodes" {
		t.Errorf("says %q", got)
	}
}
