package cloudly

import (
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// nominal is the wait before the nth attempt in a row, without its jitter.
func nominal(n int) time.Duration { return backoff(n, 0) }

// wantGrowing checks the distances of dials that came to nothing from the first
// on: each within half of its nominal wait and the whole. Dials take no time here.
func wantGrowing(t *testing.T, dials []time.Duration, slack time.Duration) {
	t.Helper()
	for i := 1; i < len(dials); i++ {
		gap, want := dials[i]-dials[i-1], nominal(i)
		if gap < want/2 || gap > want+slack {
			t.Fatalf("dial %d after %v, want %v to %v", i+1, gap, want/2, want)
		}
	}
}

// R26: killed five times, it registers each time with a higher number, waiting
// longer each time; after a session that stood for a minute the waits begin anew.
func TestR26_ReconnectWithBackoff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.wantState("registered")
		for i := 1; i <= 5; i++ {
			dials := len(w.dialled())
			killed := time.Since(w.start)
			w.kill()
			time.Sleep(nominal(i) + time.Second)
			w.wantState("registered")
			waited := w.dialled()[dials] - killed
			if waited < nominal(i)/2 || waited > nominal(i) {
				t.Fatalf("loss %d: dialled after %v, want %v to %v", i, waited, nominal(i)/2, nominal(i))
			}
		}
		w.wantSequences(0, 1, 2, 3, 4, 5)
		time.Sleep(standsAfter)
		killed := time.Since(w.start)
		w.kill()
		time.Sleep(2 * time.Second)
		dials := w.dialled()
		if waited := dials[len(dials)-1] - killed; waited < firstDelay/2 || waited > firstDelay {
			t.Fatalf("dialled %v after a session that stood", waited)
		}
		if n, atOnce := w.opened(); n != 7 || atOnce != 1 {
			t.Fatalf("%d sockets, %d at once", n, atOnce)
		}
	})
}

// R26: a session that stood a little less than a minute does not begin the waits anew.
func TestR26_AShortSessionDoesNotResetTheWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		for i := 1; i <= 9; i++ {
			w.wantState("registered")
			// Dials and answers take no time here.
			time.Sleep(standsAfter - time.Second - (time.Since(w.start) - w.dialled()[i-1]))
			killed := time.Since(w.start)
			dials := len(w.dialled())
			w.kill()
			time.Sleep(nominal(i) + time.Millisecond)
			if waited := w.dialled()[dials] - killed; waited < nominal(i)/2 {
				t.Fatalf("loss %d: dialled after %v", i, waited)
			}
		}
	})
}

// B002: a socket that is accepted and dies at once is met ever less often, and
// what happens can be seen.
func TestB002_AcceptedAndDeadAtOnce(t *testing.T) {
	for name, die := range map[string]func(w *world){
		"before the upgrade": func(w *world) { w.onConn = func(c net.Conn) { c.Close() } },
		"after the upgrade": func(w *world) {
			w.on(exchangeMethod, func(_ int, r *typedsocket.Request) bool { r.Drop(); go r.Socket().Cut(1001, "x"); return true })
		},
		"after the registration": func(w *world) {
			w.on(registration, func(n int, r *typedsocket.Request) bool {
				s := r.Socket()
				r.Answer(w.acceptance(int64(n)).AppendJSON(nil))
				go func() { time.Sleep(time.Millisecond); s.Cut(1001, "x") }()
				return true
			})
		},
		"no HTTP at all": func(w *world) { w.onConn = func(c net.Conn) { io.WriteString(c, "SSH-2.0-x\r\n\r\n"); c.Close() } },
		"another HTTP": func(w *world) {
			w.onConn = func(c net.Conn) {
				go io.Copy(io.Discard, c)
				io.WriteString(c, "HTTP/1.1 503 no\r\nContent-Length: 0\r\n\r\n")
				c.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, func(_ *Config, w *world) { die(w) })
				time.Sleep(time.Hour)
				dials := w.dialled()
				wantGrowing(t, dials, 5*time.Second)
				if len(dials) < 60 || len(dials) > 130 {
					t.Fatalf("%d dials in an hour", len(dials))
				}
				s := w.status()
				if int(s.Attempts) != len(dials) || s.Failures < len(dials)-1 || s.LastTrouble == "" {
					t.Fatalf("status %+v after %d dials", s, len(dials))
				}
			})
		})
	}
}

// B013, B014, B016: a day and a week without Cloudly. It still tries, at least once
// a minute; memory, goroutines and events stay flat; how long there has been no
// session can be seen.
func TestB013_B014_B016_AWeekWithoutCloudly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.wantState("registered")
		w.set(func() { w.down = true })
		w.kill()
		measure := func() (heap uint64, goroutines int) {
			synctest.Wait()
			w.set(func() { w.dials = slices.Clip(w.dials[:0:0]) })
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc, runtime.NumGoroutine()
		}
		time.Sleep(time.Hour)
		heap, goroutines := measure()
		events := len(w.published())
		for day := 1; day <= 7; day++ {
			time.Sleep(24 * time.Hour)
			tries := len(w.dialled())
			if tries < 24*60 || tries > 24*120+1 {
				t.Fatalf("%d dials on day %d", tries, day)
			}
			nowHeap, nowGoroutines := measure()
			if nowGoroutines > goroutines+1 {
				t.Fatalf("%d goroutines after %d days, %d after an hour", nowGoroutines, day, goroutines)
			}
			if nowHeap > heap+1<<20 {
				t.Fatalf("%d bytes on the heap after %d days, %d after an hour", nowHeap, day, heap)
			}
		}
		if more := len(w.published()) - events; more > 10 {
			t.Fatalf("%d events in a week of nothing else", more)
		}
		if since := time.Since(w.status().RegisteredChanged); since < 7*24*time.Hour {
			t.Fatalf("without a session since %v", since)
		}
		if got := w.check(CheckSession); got != "failing dial-failed" {
			t.Fatalf("check %s", got)
		}
		w.set(func() { w.down = false })
		time.Sleep(longestDelay)
		w.wantState("registered")
		w.wantSequences(0, 1)
	})
}

// B028: a thousand flaps at random times, of every kind; the loop lives, numbers
// rise, hooks pair up, and nothing is left behind.
func TestB028_AThousandFlaps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		w := newWorld(t)
		w.settle()
		goroutines := runtime.NumGoroutine()
		for range 1000 {
			switch random.IntN(6) {
			case 0:
				w.set(func() { w.down = true })
			case 1, 2:
				w.set(func() { w.down = false })
			case 3:
				method := []string{exchangeMethod, clientSession, registration, getConfiguration}[random.IntN(4)]
				after := time.Duration(random.Int64N(int64(5 * time.Second)))
				w.on(method, func(n int, r *typedsocket.Request) bool {
					if n%3 != 0 {
						return false
					}
					s := r.Socket()
					r.Drop()
					go func() { time.Sleep(after); s.Cut(1001, "flap") }()
					return true
				})
			case 4:
				w.change(1 + random.Int64N(60000))
			default:
				w.set(func() {
					for _, s := range w.sockets {
						go s.Cut(1001, "flap")
					}
				})
			}
			time.Sleep(time.Duration(random.Int64N(int64(90 * time.Second))))
		}
		for _, method := range []string{exchangeMethod, clientSession, registration, getConfiguration} {
			w.on(method, nil)
		}
		w.set(func() { w.down = false })
		time.Sleep(2 * longestDelay)
		w.wantState("registered")
		sequences := w.sequences()
		for i := 1; i < len(sequences); i++ {
			if sequences[i] <= sequences[i-1] {
				t.Fatalf("number %d after %d", sequences[i], sequences[i-1])
			}
		}
		stands := false
		for _, said := range w.heard() {
			switch {
			case said[:4] == "lost":
				if !stands {
					t.Fatal("lost twice")
				}
				stands = false
			case said[:4] == "regi":
				if first := said[len(said)-4:] == "true"; first == stands {
					t.Fatalf("%s while a session stands: %v", said, stands)
				}
				stands = true
			}
		}
		if !stands {
			t.Fatal("the last session was lost")
		}
		// What has ended may be counted for a moment more.
		for tries := 10; ; tries-- {
			time.Sleep(10 * time.Second)
			n := runtime.NumGoroutine()
			if n <= goroutines+2 {
				break
			}
			if tries == 0 {
				t.Fatalf("%d goroutines, %d at the start", n, goroutines)
			}
		}
		if _, atOnce := w.opened(); atOnce != 1 {
			t.Fatalf("%d sockets at once", atOnce)
		}
		t.Logf("%d registrations, %d dials", len(sequences), len(w.dialled()))
	})
}

// B019, B010, B023: a peer that reads everything and answers nothing is given up after
// the bound of a call, dialled again at a bounded pace, and registered with once it
// answers.
func TestB019_APeerThatNeverAnswers(t *testing.T) {
	silent := func(_ int, r *typedsocket.Request) bool { r.Drop(); return true }
	for _, method := range []string{exchangeMethod, clientSession, registration} {
		t.Run(method, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.on(method, silent)
				time.Sleep(callWait + time.Millisecond)
				w.wantState("waiting")
				time.Sleep(time.Hour)
				if n := len(w.dialled()); n < 40 || n > 80 {
					t.Fatalf("%d dials in an hour", n)
				}
				w.on(method, nil)
				time.Sleep(longestDelay + callWait)
				w.wantState("registered")
			})
		})
	}
}

// B029: a line of three seconds each way is slow, not dead: the session is registered
// and stays.
func TestB029_SlowLegs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(_ *Config, w *world) { w.latency = 3 * time.Second })
		time.Sleep(time.Minute)
		w.wantState("registered")
		w.wantHeard("registered 0 first=true", "configuration stated "+testOrigin)
		time.Sleep(24 * time.Hour)
		w.wantState("registered")
		if n := len(w.dialled()); n != 1 {
			t.Fatalf("%d dials", n)
		}
		w.wantSequences(0)
	})
}

// B001, B004: many relays that lose one Cloudly at one instant come back spread
// out, and all of them come back.
func TestB001_B004_AHerdSpreadsItsDials(t *testing.T) {
	const herd = 200
	for outage, peak := range map[time.Duration]int{
		// The most dials in one tenth of a second, against an even spread of 40 over
		// half a second, and of 6 or 7 over half a minute.
		0:               70,
		5 * time.Minute: 20,
	} {
		bubble(t, func(t *testing.T) {
			worlds := make([]*world, herd)
			for i := range worlds {
				worlds[i] = newWorld(t)
			}
			time.Sleep(time.Second)
			for _, w := range worlds {
				w.set(func() { w.down = outage > 0 })
				w.kill()
			}
			back := time.Since(worlds[0].start) + outage
			time.Sleep(outage)
			for _, w := range worlds {
				w.set(func() { w.down = false })
			}
			time.Sleep(longestDelay + time.Second)
			var after []time.Duration
			for _, w := range worlds {
				w.wantState("registered")
				for _, at := range w.dialled() {
					if at >= back {
						after = append(after, at-back)
					}
				}
			}
			slices.Sort(after)
			most := 0
			for i, j := 0, 0; i < len(after); i++ {
				for after[i]-after[j] > 100*time.Millisecond {
					j++
				}
				most = max(most, i-j+1)
			}
			t.Logf("outage %v: %d dials, the last after %v, at most %d within 100 ms", outage, len(after), after[len(after)-1], most)
			if len(after) != herd || most > peak {
				t.Fatalf("outage %v: %d dials, at most %d within 100 ms", outage, len(after), most)
			}
		})
	}
}

// Kick shortens a plain wait, and a try that follows still counts.
func TestKickShortensAPlainWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(_ *Config, w *world) { w.down = true })
		time.Sleep(10 * time.Minute)
		failures := w.status().Failures
		dials := len(w.dialled())
		w.session.Kick()
		w.settle()
		if n := len(w.dialled()); n != dials+1 || w.status().Failures != failures+1 {
			t.Fatalf("%d dials, %d failures", n-dials, w.status().Failures-failures)
		}
		w.set(func() { w.down = false })
		w.session.Kick()
		w.wantState("registered")
	})
}

// B026: a drain while anything is under way makes Run return, OnLost is called for a
// session that stood, and nothing is dialled any more.
func TestB026_DrainAtAnyMoment(t *testing.T) {
	silent := func(_ int, r *typedsocket.Request) bool { r.Drop(); return true }
	for name, test := range map[string]struct {
		set  func(w *world)
		want []string
	}{
		"waiting":        {func(w *world) { w.down = true }, nil},
		"dialing":        {func(w *world) { w.onConn = func(c net.Conn) { io.Copy(io.Discard, c) } }, nil},
		"exchanging":     {func(w *world) { w.scripts[exchangeMethod] = silent }, nil},
		"authenticating": {func(w *world) { w.scripts[clientSession] = silent }, nil},
		"registering":    {func(w *world) { w.scripts[registration] = silent }, nil},
		"refused": {func(w *world) {
			w.scripts[registration] = func(_ int, r *typedsocket.Request) bool { r.Refuse("relay-node-unknown", nil); return true }
		}, []string{"custody relay-node-unknown"}},
		"registered": {func(w *world) {}, []string{"registered 0 first=true", "configuration stated " + testOrigin, "lost stopped"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, func(_ *Config, w *world) { w.set(func() { test.set(w) }) })
				time.Sleep(5 * time.Second)
				w.wantState(name)
				dials := len(w.dialled())
				start := time.Now()
				if err := w.session.Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took > 5*time.Second {
					t.Fatalf("took %v", took)
				}
				w.wantState("stopped")
				w.wantHeard(test.want...)
				w.session.Kick()
				w.session.FactsChanged()
				w.session.Reload()
				time.Sleep(time.Hour)
				if n := len(w.dialled()); n != dials {
					t.Fatalf("dialled %d times after the end", n-dials)
				}
				if got := w.check(CheckSession); got != "failing stopped" {
					t.Fatalf("check %s", got)
				}
			})
		})
	}
}

// B112: a clean stop logs no warning and no error.
func TestB112_ACleanStopLogsNoError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.wantState("registered")
		if err := w.session.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, e := range w.events.Since(0).Events {
			if e.Level > 4 {
				t.Errorf("event %s", e.Type)
			}
		}
		var end *typedsocket.EndError
		if err := w.socket().Err(); err == nil || !asEnd(err, &end) || end.Code != typedsocket.CloseNormal {
			t.Errorf("Cloudly's side ended with %v", err)
		}
	})
}

func asEnd(err error, end **typedsocket.EndError) bool {
	e, ok := err.(*typedsocket.EndError)
	*end = e
	return ok
}

// The first attempt begins at once: a relay that starts is registered as fast as
// its round trips allow.
func TestTheFirstAttemptBeginsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.wantState("registered")
		if at := w.of(contract.MethodRegisterClusterRelay)[0].at; at > time.Microsecond {
			t.Fatalf("registered after %v", at)
		}
	})
}
