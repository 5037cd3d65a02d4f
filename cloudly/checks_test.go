package cloudly

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/duty/field"
)

// figures are the facts of the check of the session, in the words of a log line.
func (w *world) figures() string { return figuresOf(w.session.Checks(time.Now())[checkSession].Facts) }

func figuresOf(fields field.List) string {
	var all []string
	for _, f := range fields {
		all = append(all, f.Key().String()+"="+f.String())
	}
	return strings.Join(all, " ")
}

// While there is no session, check and event say how long it is to the next attempt, by
// a name that says so; while one stands there is none to speak of.
func TestTheWaitForTheNextAttemptIsShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.wantState("registered")
		if got := w.figures(); got != "" {
			t.Errorf("while a session stands: %s", got)
		}
		w.set(func() { w.down = true })
		w.kill()
		synctest.Wait()
		for n := uint64(1); n <= 2; n++ {
			s := w.status()
			wait := time.Until(s.NextAttemptAt)
			if want := fmt.Sprintf("attempt=%d nextSeconds=%v", n, wait.Round(time.Microsecond).Seconds()); wait <= 0 || w.figures() != want {
				t.Errorf("while it waits: %s, want %s", w.figures(), want)
			}
			var last string
			for _, e := range w.events.Since(0).Events {
				if e.Type == EventAttemptFailed {
					last = figuresOf(e.Fields)
				}
			}
			if want := fmt.Sprintf(" attempt=%d nextSeconds=%v", n, wait.Round(time.Microsecond).Seconds()); !strings.HasSuffix(last, want) {
				t.Errorf("event: %s, want %s at its end", last, want)
			}
			time.Sleep(wait)
			synctest.Wait()
		}
		w.set(func() { w.down = false })
		time.Sleep(longestDelay)
		w.wantState("registered")
		if got := w.figures(); got != "" {
			t.Errorf("while another session stands: %s", got)
		}
	})
}
