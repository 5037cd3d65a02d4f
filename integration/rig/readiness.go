package rig

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
)

// Readiness is what /readyz says.
type Readiness struct {
	Ready    bool      `json:"ready"`
	Findings []Finding `json:"findings"`
}

// Finding is one check of one duty.
type Finding struct {
	Duty   string         `json:"duty"`
	Check  string         `json:"check"`
	Advice bool           `json:"advice"`
	State  string         `json:"state"`  // ok, pending, failing
	Reason string         `json:"reason"` // "" while the state is ok
	Hint   string         `json:"hint"`
	Facts  map[string]any `json:"facts"`
}

// Find returns the finding of a check, and false when there is none.
func (x Readiness) Find(duty, check string) (Finding, bool) {
	for _, f := range x.Findings {
		if f.Duty == duty && f.Check == check {
			return f, true
		}
	}
	return Finding{}, false
}

// Against returns "duty/check: state reason" of every required check that is not
// ok.
func (x Readiness) Against() []string {
	var against []string
	for _, f := range x.Findings {
		if !f.Advice && f.State != "ok" {
			against = append(against, f.Duty+"/"+f.Check+": "+f.State+" "+f.Reason)
		}
	}
	return against
}

// Readiness asks /readyz. The HTTP status must agree with what is said.
func (r *Rig) Readiness() Readiness {
	r.t.Helper()
	readiness, err := r.readiness()
	if err != nil {
		r.t.Fatal(err)
	}
	return readiness
}

func (r *Rig) readiness() (Readiness, error) {
	page, err := r.fetch("/readyz?verbose&format=json")
	if err != nil {
		return Readiness{}, err
	}
	var readiness Readiness
	if err := json.Unmarshal(page.Body, &readiness); err != nil {
		return Readiness{}, fmt.Errorf("/readyz: %w", err)
	}
	want := http.StatusServiceUnavailable
	if readiness.Ready {
		want = http.StatusOK
	}
	if page.Code != want {
		return Readiness{}, fmt.Errorf("/readyz: status %d where ready is %t", page.Code, readiness.Ready)
	}
	return readiness, nil
}

// Ready reports whether /readyz answers 200.
func (r *Rig) Ready() bool {
	r.t.Helper()
	return r.Readiness().Ready
}

// WaitReady waits until the relay is ready.
func (r *Rig) WaitReady() {
	r.t.Helper()
	r.Eventually("readiness", func() error {
		readiness, err := r.readiness()
		if err == nil && !readiness.Ready {
			err = fmt.Errorf("not ready: %q", readiness.Against())
		}
		return err
	})
}

// WaitCheck waits until a check has a state, for one of the reasons if any are
// given, and returns what is then said of it.
func (r *Rig) WaitCheck(duty, check, state string, reasons ...string) Finding {
	r.t.Helper()
	var found Finding
	r.Eventually(duty+"/"+check+" "+state, func() error {
		readiness, err := r.readiness()
		if err != nil {
			return err
		}
		f, ok := readiness.Find(duty, check)
		if !ok {
			return errors.New("there is no such check")
		}
		if f.State != state || len(reasons) > 0 && !slices.Contains(reasons, f.Reason) {
			return fmt.Errorf("it is %s %s", f.State, f.Reason)
		}
		found = f
		return nil
	})
	return found
}
