package duty

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// stuck is an output that takes nothing until it is let go.
type stuck struct {
	output
	gate chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.gate
	return s.output.Write(p)
}

func TestLineWriterNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{gate: make(chan struct{})}
		w := NewLineWriter(out, 100)
		line := func(i int) string { return fmt.Sprintf("line %4d\n", i) } // 10 bytes
		var taken strings.Builder
		for i := range 15 {
			n, err := w.Write([]byte(line(i)))
			switch {
			case i < 10 && (n != 10 || err != nil), i >= 10 && (n != 0 || !errors.Is(err, errQueueFull)):
				t.Errorf("line %d: %d, %v", i, n, err)
			case err == nil:
				taken.WriteString(line(i))
			}
			synctest.Wait() // the first line is in the output's hands, and still counts
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("closed with lines waiting: %v", err)
		}
		if n, err := w.Write([]byte("late")); n != 0 || err == nil {
			t.Errorf("after Close: %d, %v", n, err)
		}
		close(out.gate)
		if err := w.Close(t.Context()); err != nil {
			t.Errorf("closed at last: %v", err)
		}
		if got := out.String(); got != taken.String() {
			t.Errorf("%q, want %q", got, taken.String())
		}
	})
}

func TestLineWriterKeepsOrder(t *testing.T) {
	var out output
	w := NewLineWriter(&out, 0)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				if _, err := w.Write([]byte("a line\n")); err != nil {
					t.Errorf("a line was refused: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if _, err := w.Write([]byte("last\n")); err != nil {
		t.Error(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := out.String(); got != strings.Repeat("a line\n", 400)+"last\n" {
		t.Errorf("%d bytes", len(got))
	}
}

func TestLineWriterTellsThatTheOutputFails(t *testing.T) {
	w := NewLineWriter(failing{}, 0)
	if _, err := w.Write([]byte("line\n")); err != nil {
		t.Error(err)
	}
	if err := w.Close(t.Context()); err == nil || err.Error() != "log: full" {
		t.Errorf("%v", err)
	}
}

// A log that nobody reads must not hold an event up.
func TestPublishDoesNotWaitForTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{gate: make(chan struct{})}
		w := NewLineWriter(out, 1000)
		l := NewLogger(LogConfig{Out: w})
		e := NewEvents(EventsConfig{Log: l})
		for range 500 {
			e.Publish(nodeBound)
		}
		if got := len(e.Since(1).Events); got != 500 {
			t.Errorf("%d events, want 500", got)
		}
		lost := value(l.Metrics(), "relay_log_lost_lines_total")
		if written := value(l.Metrics(), "relay_log_written_lines_total", "warn"); lost == 0 || lost+written != 500 {
			t.Errorf("lost %v, written %v", lost, written)
		}
		close(out.gate)
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestLinesThatTheOutputDidNotTakeAreCounted, each of them, and no other.
func TestLinesThatTheOutputDidNotTakeAreCounted(t *testing.T) {
	for taken, want := range map[int]uint64{0: 3, len("one\n"): 2, len("one\ntw"): 2, len("one\ntwo\nthree\n"): 0} {
		synctest.Test(t, func(t *testing.T) {
			w := NewLineWriter(partWriter{taken}, 0)
			if _, err := w.Write([]byte("one\ntwo\nthree\n")); err != nil {
				t.Fatal(err)
			}
			w.Close(context.Background())
			if got := w.Lost(); got != want {
				t.Errorf("%d bytes taken: %d lines lost, want %d", taken, got, want)
			}
		})
	}
}

// partWriter takes some bytes of each write and fails.
type partWriter struct{ taken int }

func (w partWriter) Write([]byte) (int, error) { return w.taken, errors.New("no space left") }
