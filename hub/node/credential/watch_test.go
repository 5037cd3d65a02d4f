package credential

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/hub/node"
)

// watched is a Watcher in a bubble, with a file that a test writes.
type watched struct {
	again chan struct{}
	stop  func() // ends Run and waits for it

	mu      sync.Mutex    // guards what follows
	content string        // what Read parses
	hangs   chan struct{} // if not nil, Read waits for it
	wrong   string        // "read" or "take" panics, with the content
	log     bytes.Buffer
	reads   int
	took    []string // what Take was told: the day of the expiry and the authority, or the error
}

// change changes what Read finds.
func (w *watched) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// looks is how often the file was read.
func (w *watched) looks() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads
}

func watch(t *testing.T) *watched {
	w := &watched{content: whole, again: make(chan struct{}, 1)}
	held, err := parse([]byte(whole), "")
	if err != nil {
		t.Fatal(err)
	}
	watcher := Watcher{
		Read: func() (node.Credential, error) {
			w.mu.Lock()
			w.reads++
			content, hangs, wrong := w.content, w.hangs, w.wrong
			w.mu.Unlock()
			if wrong == "read" {
				panic(content)
			}
			if hangs != nil {
				<-hangs
			}
			return parse([]byte(content), "")
		},
		Held: held, Again: w.again,
		Take: func(c node.Credential, err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.wrong == "take" {
				panic(w.content)
			}
			if err != nil {
				w.took = append(w.took, err.Error())
				return
			}
			w.took = append(w.took, c.ExpiresAt.Format(time.DateOnly)+" "+c.AuthorityID)
		},
	}
	watcher.Log = duty.NewLogger(duty.LogConfig{Out: &w.log})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); watcher.Run(ctx) }()
	w.stop = func() { cancel(); <-ended }
	t.Cleanup(w.stop)
	return w
}

// ask is what SIGHUP does.
func (w *watched) ask() {
	w.again <- struct{}{}
	synctest.Wait()
}

// tells compares what Take was told since the last time.
func (w *watched) tells(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.took) != len(want) {
		t.Fatalf("told %q, want %q", w.took, want)
	}
	for i := range want {
		if w.took[i] != want[i] {
			t.Errorf("told %q, want %q", w.took, want)
		}
	}
	w.took = nil
}

// write gives the file another expiry and authority.
func (w *watched) write(day, authority string) {
	w.change(func() {
		w.content = "hub: 192.0.2.10:4433\nhub-public-key: " + public + "\nauthority-id: " + authority + "\nprivate-key: " + private +
			"\nexpires-at: " + day + "T00:00:00Z\n"
	})
}

func TestWatcher(t *testing.T) {
	const broken = "line 1: it is not a plain mapping of keys to texts"
	synctest.Test(t, func(t *testing.T) {
		w := watch(t)
		time.Sleep(10 * LookEvery)
		w.tells(t)
		if n := w.looks(); n < 9 {
			t.Errorf("looked %d times", n)
		}

		// Another one is found within the time, once.
		w.write("2025-12-02", "authority-1")
		time.Sleep(LookEvery)
		w.tells(t, "2025-12-02 authority-1")
		time.Sleep(3 * LookEvery)
		w.tells(t)

		// One that is no successor is told too: who takes it judges.
		w.write("2025-12-02", "authority-2")
		time.Sleep(LookEvery)
		w.tells(t, "2025-12-02 authority-2")
		w.write("2025-12-02", "authority-1")
		time.Sleep(LookEvery)
		w.tells(t, "2025-12-02 authority-1")

		// A file that is written while it is read is wrong once.
		w.change(func() { w.content = "half" })
		time.Sleep(LookEvery)
		w.tells(t)
		w.write("2025-12-03", "authority-1")
		time.Sleep(LookEvery)
		w.tells(t, "2025-12-03 authority-1")

		// One that stays wrong is told once.
		w.change(func() { w.content = "half" })
		time.Sleep(2 * LookEvery)
		w.tells(t, broken)
		time.Sleep(3 * LookEvery)
		w.tells(t)
		w.write("2025-12-03", "authority-1")
		time.Sleep(LookEvery)
		w.tells(t, "2025-12-03 authority-1")
	})
}

// Who asks is told at once, also what is no news and what may be half written.
func TestWatcher_Asked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t)
		begin := time.Now()
		w.ask()
		w.tells(t, "2025-12-01 authority-1")
		w.ask()
		w.tells(t, "2025-12-01 authority-1")
		w.change(func() { w.content = "half" })
		w.ask()
		w.tells(t, "line 1: it is not a plain mapping of keys to texts")
		if !time.Now().Equal(begin) {
			t.Errorf("it took %v", time.Since(begin))
		}
		time.Sleep(2 * LookEvery)
		w.tells(t)
	})
}

// A file system that hangs is told, costs one goroutine, and is forgotten when it
// answers. It does not hold up the end.
func TestWatcher_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t)
		synctest.Wait()
		hangs := make(chan struct{})
		w.change(func() { w.hangs = hangs })
		time.Sleep(LookEvery + readWait)
		w.tells(t)
		time.Sleep(LookEvery + readWait)
		w.tells(t, "the file system does not answer")
		before := w.looks()
		time.Sleep(10 * LookEvery)
		if more := w.looks() - before; more != 0 {
			t.Errorf("%d reads hang", 1+more)
		}
		w.change(func() { w.hangs = nil })
		close(hangs)
		time.Sleep(2 * LookEvery)
		w.tells(t, "2025-12-01 authority-1")
	})
	synctest.Test(t, func(t *testing.T) {
		w := watch(t)
		synctest.Wait()
		hangs := make(chan struct{})
		w.change(func() { w.hangs = hangs })
		w.again <- struct{}{}
		synctest.Wait()
		begin := time.Now()
		w.stop()
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("the end took %v", waited)
		}
		close(hangs)
	})
}

// Who asks while an older read hangs is told what is there now and not what that read
// saw, when it answers: within the time that it is given, or later.
func TestWatcher_AskedBehindAHangingRead(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := watch(t)
			synctest.Wait()
			hangs := make(chan struct{})
			w.change(func() { w.hangs = hangs })
			time.Sleep(LookEvery) // a look begins the read
			synctest.Wait()
			w.change(func() { w.hangs = nil })
			w.write("2025-12-02", "authority-1")
			for w.ask(); len(w.again) > 0; synctest.Wait() {
				time.Sleep(readWait) // until that look, and perhaps others, have given it up
			}
			w.change(func() { w.took = nil })
			if late {
				time.Sleep(readWait)
				w.tells(t, "the file system does not answer")
			}
			close(hangs)
			w.tells(t, "2025-12-02 authority-1")
			time.Sleep(3 * LookEvery)
			w.tells(t)
		})
	}
}

// A panic, whose value may be the content, is not shown and ends nothing: it looks again.
func TestWatcher_Panics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t)
		told := func(panics int) {
			t.Helper()
			w.stop() // nobody writes to the log any more
			if n := strings.Count(w.log.String(), `"panic-recovered"`); n != panics || strings.Contains(w.log.String(), private) {
				t.Errorf("the log tells of %d panics, want %d:\n%s", n, panics, &w.log)
			}
		}
		w.change(func() { w.wrong = "read" })
		time.Sleep(2 * LookEvery)
		w.tells(t, "a mistake of this program kept it from being read; the log has more")
		w.change(func() { w.wrong = "" })
		w.write("2025-12-02", "authority-1")
		time.Sleep(LookEvery)
		w.tells(t, "2025-12-02 authority-1")

		w.change(func() { w.wrong = "take" })
		w.write("2025-12-03", "authority-1")
		time.Sleep(LookEvery)
		synctest.Wait()
		w.change(func() { w.wrong = "" })
		w.tells(t)
		w.write("2025-12-04", "authority-1")
		time.Sleep(LookEvery)
		w.tells(t, "2025-12-04 authority-1")
		told(3)
	})
}
