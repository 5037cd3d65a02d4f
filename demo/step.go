package demo

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// step is one thing that the demonstration shows. It holds when run returns nil;
// then every fact that it showed was read from the relay or from a peer.
type step struct {
	name  string // how --break, --json and a list of skipped steps call it
	title string // the claim, in one line for a person
	run   func(ctx context.Context, e *evidence) error
	// more is what the step may take beyond stepWait.
	more time.Duration
}

// stepWait bounds one step. The longest takes five seconds on an idle machine; one that
// is a dozen times slower still gets through.
const stepWait = 60 * time.Second

// Fact is one thing that was read back while a step ran.
type Fact struct {
	From   string         `json:"from"`             // a page of the relay's operator endpoint, or the peer whose record it is
	Says   string         `json:"says"`             // for a person
	Values map[string]any `json:"values,omitempty"` // the same for a program; times are RFC 3339, durations seconds, sizes bytes
}

// evidence collects the facts of one step, in order.
type evidence struct{ facts []Fact }

// add adds a fact; values are names and values in turn.
func (e *evidence) add(from, says string, values ...any) {
	f := Fact{From: from, Says: says}
	for i := 0; i+1 < len(values); i += 2 {
		if f.Values == nil {
			f.Values = map[string]any{}
		}
		f.Values[values[i].(string)] = values[i+1]
	}
	e.facts = append(e.facts, f)
}

// Mismatch is why a step did not hold: what it expected, and what it found.
type Mismatch struct{ Expected, Found string }

// Error returns both in one line.
func (m *Mismatch) Error() string { return "expected " + m.Expected + "; found " + m.Found }

// mismatch returns a *Mismatch with a formatted finding.
func mismatch(expected, found string, args ...any) error {
	return &Mismatch{Expected: expected, Found: fmt.Sprintf(found, args...)}
}

// Outcome is how a step ended.
type Outcome string

// The outcomes.
const (
	Held        Outcome = "held"
	Failed      Outcome = "failed"
	Interrupted Outcome = "interrupted" // a signal came while it ran
	Skipped     Outcome = "skipped"     // a step before it did not hold
)

// Result is a step that has ended.
type Result struct {
	Number  int     `json:"step"` // from 1
	Name    string  `json:"name"`
	Title   string  `json:"title"`
	Outcome Outcome `json:"outcome"`
	Seconds float64 `json:"seconds"`
	Facts   []Fact  `json:"evidence"` // never nil; of a failed step what held until then
	// Expected and Found say why a step failed.
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
}

// runner runs steps one after the other, until one does not hold.
type runner struct {
	to      Printer
	steps   []step
	results []Result
	began   time.Time
}

// perform runs the steps that have not run, up to a number of them. Once one has not
// held, the others are skipped by name.
func (r *runner) perform(ctx context.Context, upTo int) {
	if r.began.IsZero() {
		r.began = time.Now()
	}
	for i := len(r.results); i < upTo && r.to.Err() == nil; i++ {
		s := r.steps[i]
		result := Result{Number: i + 1, Name: s.name, Title: s.title, Outcome: Skipped, Facts: []Fact{}}
		if r.held() {
			r.to.Begin(result)
			result = attempt(ctx, s, result)
		}
		r.results = append(r.results, result)
		r.to.Step(result)
	}
}

// held reports whether every step held that has run.
func (r *runner) held() bool {
	for _, x := range r.results {
		if x.Outcome != Held {
			return false
		}
	}
	return true
}

// summary counts how the steps ended.
func (r *runner) summary() Summary {
	s := Summary{Kind: kindEnd, Held: r.held(), Seconds: seconds(time.Since(r.began)), Steps: map[Outcome]int{}}
	for _, x := range r.results {
		s.Steps[x.Outcome]++
	}
	return s
}

// attempt runs one step to its end.
func attempt(ctx context.Context, s step, r Result) Result {
	bounded, cancel := context.WithTimeout(ctx, stepWait+s.more)
	defer cancel()
	var e evidence
	began := time.Now()
	err := s.run(bounded, &e)
	r.Seconds = seconds(time.Since(began))
	r.Facts = append(r.Facts, e.facts...)
	var unlike *Mismatch
	switch {
	case err == nil:
		r.Outcome = Held
	case ctx.Err() != nil:
		r.Outcome = Interrupted
	case errors.As(err, &unlike):
		r.Outcome, r.Expected, r.Found = Failed, unlike.Expected, unlike.Found
	default:
		r.Outcome, r.Expected, r.Found = Failed, "no error", err.Error()
	}
	return r
}

// lookEvery is how often a page or a record is looked at that is waited for: often
// enough that no step is slowed by it, seldom enough that it costs nothing.
const lookEvery = 20 * time.Millisecond

// settleWait bounds the wait for something that happens at once on a machine that is
// not overloaded.
const settleWait = 15 * time.Second

// eventually returns when look returns nil. Otherwise it returns what look said last,
// once the wait or the context has ended.
func eventually(ctx context.Context, wait time.Duration, look func() error) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		err := look()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return err
		}
	}
}
