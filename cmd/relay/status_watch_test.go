package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/demo"
)

// watched is a run of `relay status --watch` in the bubble of a synctest.
type watched struct {
	t       *testing.T
	out     safeBuffer
	errs    safeBuffer
	signals chan os.Signal
	code    chan int
	begun   time.Time
	times   []time.Duration // of the looks, since the begin
}

// startWatch starts it. ask is asked at each look, with its number from 1 on.
func startWatch(t *testing.T, ask func(ctx context.Context, n int) ([]byte, error)) *watched {
	t.Helper()
	w := &watched{t: t, signals: make(chan os.Signal, 1), code: make(chan int, 1), begun: time.Now()}
	p := process{stdout: &w.out, stderr: &w.errs, signals: func() (<-chan os.Signal, func()) { return w.signals, func() {} }}
	go func() {
		w.code <- watch(p, func(ctx context.Context) ([]byte, error) {
			w.times = append(w.times, time.Since(w.begun))
			return ask(ctx, len(w.times))
		})
	}()
	synctest.Wait()
	return w
}

// ends sends a signal and wants the end at once, with 0.
func (w *watched) ends(sig os.Signal) {
	w.t.Helper()
	w.signals <- sig
	synctest.Wait()
	select {
	case code := <-w.code:
		if code != exitClean {
			w.t.Errorf("%v: ended with %d", sig, code)
		}
	default:
		w.t.Fatalf("%v: has not ended", sig)
	}
	if w.errs.String() != "" {
		w.t.Errorf("standard error has %q", w.errs.String())
	}
}

// tick is a small status, n looks after the first.
func tick(n int) []byte {
	now := time.Date(2026, 12, 1, 4, 0, 2*n, 0, time.UTC).Format(time.RFC3339)
	return fmt.Appendf(nil, `{"schema":1,"start":"2026-12-01T03:59:58Z","now":%q,"readiness":{"ready":true},"duties":{"forward":{"attached":true,`+
		`"nodes":[{"id":"node-a","since":"2026-12-01T04:00:00Z","confirmed":true,"toCloudly":{"bytes":%d}}]}}}`, now, n*4096)
}

// block is what is shown of tick.
func block(age string, clock int, session, up, down string) string {
	return "relay is ready\nstarted " + age + fmt.Sprintf(" ago; its clock says 2026-12-01 04:00:%02d UTC\n\nNothing is wrong.\n\n", clock) +
		"Nodes        1 registered\n             no request waits for an answer\n" +
		"  NODE    SESSION  NAMES LAST  WAITING  TO CLOUDLY/s  FROM CLOUDLY/s  REFUSED\n" +
		fmt.Sprintf("  node-a  %-7s           -        -  %12s  %14s  -\nHub          none\n", session, up, down)
}

// A block a look, every two seconds, with the rates between two; a relay that cannot be
// asked is said to be so and asked again, and no rate goes over the gap.
func TestStatusWatch(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		synctest.Test(t, func(t *testing.T) {
			w := startWatch(t, func(_ context.Context, n int) ([]byte, error) {
				switch n {
				case 3, 4, 8:
					return nil, errors.New("ask the relay for /status: \x1b[2Jrefused")
				case 5:
					return []byte("[]"), nil
				}
				return tick(n), nil
			})
			time.Sleep(15 * time.Second)
			w.ends(sig)
			const (
				again  = "             Is it running, and is --operator where it has its operator endpoint? It is asked again.\n"
				cannot = "WRONG        The relay cannot be asked"
			)
			want := strings.Join([]string{
				block("4s", 2, "2s", "-", "-"), block("6s", 4, "4s", "2.0 KiB", "0 B"),
				cannot + ": ask the relay for /status: \uFFFD[2Jrefused\n" + again,
				cannot + " for 2s now: ask the relay for /status: \uFFFD[2Jrefused\n" + again,
				cannot + " for 4s now: ask the relay for /status: the answer is JSON,\n             and no status document\n" + again,
				block("14s", 12, "12s", "-", "-"), block("16s", 14, "14s", "2.0 KiB", "0 B"),
				cannot + ": ask the relay for /status: \uFFFD[2Jrefused\n" + again,
			}, "\n")
			if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(w.out.String(), "\n")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for i, at := range w.times {
				if at != time.Duration(i)*watchEvery {
					t.Errorf("look %d was after %v", i+1, at)
				}
			}
		})
	}
}

// A signal ends a look that is under way, and says nothing of it.
func TestStatusWatch_EndsWithinALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWatch(t, func(ctx context.Context, _ int) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		time.Sleep(time.Minute)
		w.ends(syscall.SIGINT)
		if w.out.String() != "" {
			t.Errorf("%q", w.out.String())
		}
	})
}

// stuck is an output that takes nothing until it is let go.
type stuck chan struct{}

func (s stuck) Write([]byte) (int, error) {
	<-s
	return 0, errors.New("let go")
}

// Nor does an output that nobody reads hold up the end for longer than it may.
func TestStatusWatch_EndsWhileStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, signals, code, errs := make(stuck), make(chan os.Signal), make(chan int, 1), safeBuffer{}
		p := process{stdout: out, stderr: &errs, signals: func() (<-chan os.Signal, func()) { return signals, func() {} }}
		go func() { code <- watch(p, func(context.Context) ([]byte, error) { return tick(1), nil }) }()
		synctest.Wait()
		begun := time.Now()
		signals <- syscall.SIGTERM
		if code := <-code; code != exitClean || time.Since(begun) != watchEnd {
			t.Errorf("ended with %d after %v", code, time.Since(begun))
		}
		close(out)
		synctest.Wait()
	})
}

// A closed output ends the watch.
func TestStatusWatch_BrokenOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs safeBuffer
		p := process{stdout: broken{}, stderr: &errs, signals: func() (<-chan os.Signal, func()) { return nil, func() {} }}
		code := watch(p, func(context.Context) ([]byte, error) { return tick(1), nil })
		if code != exitFailed || !strings.HasPrefix(errs.String(), "relay: could not write the answer: ") {
			t.Errorf("ended with %d, %q", code, errs.String())
		}
	})
}

// A terminal is written over from its top, its first look on an empty one; what it has
// no room for is left out and counted.
func TestStatusWatch_Terminal(t *testing.T) {
	var out safeBuffer
	rows := 0
	w := watcher{
		p: process{stdout: &out}, on: demo.Terminal{Rewrite: true, Colour: true}, size: func() (int, int) { return 80, rows },
	}
	lines := []line{{{strong, "one"}}, {{normal, "two"}}, {}, {{bad, "four"}}}
	const all = "\x1b[1mone\x1b[0m\x1b[K\ntwo\x1b[K\n\x1b[K\n\x1b[31mfour\x1b[0m\x1b[K\n\x1b[J"
	want := ""
	for _, step := range []struct {
		rows int
		want string
	}{
		{0, "\x1b[H\x1b[2J" + all}, {5, "\x1b[H" + all},
		{4, "\x1b[H\x1b[1mone\x1b[0m\x1b[K\ntwo\x1b[K\n\x1b[2m2 more lines have no room here\x1b[0m\x1b[K\n\x1b[J"},
		{1, "\x1b[H\x1b[2m4 more lines have no room here\x1b[0m\x1b[K\n\x1b[J"},
	} {
		rows, want = step.rows, want+step.want
		if code := w.show(lines); code != exitClean || out.String() != want {
			t.Errorf("%d rows: %d\n%q, want\n%q", rows, code, out.String(), want)
		}
	}
	// Without colour nothing but the screen is dealt with.
	var plainOut safeBuffer
	w = watcher{p: process{stdout: &plainOut}, on: demo.Terminal{Rewrite: true}, size: w.size}
	rows = 0
	w.show(lines)
	if want := "\x1b[H\x1b[2Jone\x1b[K\ntwo\x1b[K\n\x1b[K\nfour\x1b[K\n\x1b[J"; plainOut.String() != want {
		t.Errorf("%q, want %q", plainOut.String(), want)
	}
}

// A watch is as wide as its terminal.
func TestStatusWatch_Width(t *testing.T) {
	document, _ := documentText(t, "away")
	w := watcher{ask: func(context.Context) ([]byte, error) { return []byte(document), nil }, size: func() (int, int) { return 70, 0 }}
	wellBehaved(t, w.look(t.Context()), 70)
	w.ask = func(context.Context) ([]byte, error) { return nil, errors.New(strings.Repeat("ask the relay ", 20)) }
	wellBehaved(t, w.look(t.Context()), 70)
}
