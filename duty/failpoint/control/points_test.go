package control

import (
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// held starts a goroutine that comes to a place, and returns what tells how long it
// waited there.
func held(p *Points, place string) <-chan time.Duration {
	waited := make(chan time.Duration, 1)
	began := time.Now()
	go func() {
		p.Reach(place)
		waited <- time.Since(began)
	}()
	return waited
}

func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New("a", "b")
		if waited := <-held(p, "a"); waited != 0 {
			t.Errorf("without a hold it waited %s", waited)
		}
		if err := p.hold("a", 2, time.Second); err != nil {
			t.Fatal(err)
		}
		first, second := held(p, "a"), held(p, "a")
		synctest.Wait()
		if waited := <-held(p, "a"); waited != 0 {
			t.Errorf("the third waited %s, and two are to", waited)
		}
		if waited := <-held(p, "b"); waited != 0 {
			t.Errorf("at another place it waited %s", waited)
		}
		for _, waited := range []<-chan time.Duration{first, second} {
			if d := <-waited; d != time.Second {
				t.Errorf("one waited %s", d)
			}
		}
		p.hold("a", 1, MaximumWait)
		last := held(p, "a")
		time.Sleep(300 * time.Millisecond)
		p.release("a")
		if d := <-last; d != 300*time.Millisecond {
			t.Errorf("released after %s", d)
		}
		if waited := <-held(p, "a"); waited != 0 {
			t.Errorf("behind the release it waited %s", waited)
		}
	})
}

func TestRefused(t *testing.T) {
	p := New("a")
	for line, says := range map[string]string{
		"":                       "malformed",
		"nothing":                "malformed",
		"hold a 1":               "malformed",
		"hold a 1 1s more":       "malformed",
		"hold a -1 1s":           "malformed",
		"hold a x 1s":            "malformed",
		"hold a 1 x":             "malformed",
		"hold x 1 1s":            `no failpoint "x"`,
		"hold a 0 1s":            "at least one",
		"hold a 1 0s":            "at most 10s",
		"hold a 1 10.000000001s": "at most 10s",
		"release":                "malformed",
		"release x":              `no failpoint "x"`,
		"cut a 0":                "malformed",
		"cut a * -1":             "malformed",
		"cut x * 0":              `no failpoint "x"`,
		"cut a * 0":              "no connection a is open",
		"mend":                   "malformed",
		"mend x":                 `no failpoint "x"`,
		"stall a 0 11s":          "malformed",
		"stall a 0 1s":           "no connection a is open",
		"clock":                  "malformed",
		"clock x":                "malformed",
	} {
		if err := p.do(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want one that says %q", line, err, says)
		}
	}
}

func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		now := time.Now()
		if got := p.Now(now); got != now {
			t.Errorf("%s where it was not set, want %s with its monotonic reading", got, now)
		}
		p.do([]string{"clock", "-1h30m0s"})
		if got := p.Now(now); !got.Equal(now.Add(-90*time.Minute)) || got != got.Round(0) {
			t.Errorf("%s", got)
		}
	})
}

// pipe returns two ends, the first of which is a connection "c" of p.
func pipe(p *Points) (own, peer net.Conn) {
	a, b := net.Pipe()
	return p.Conn("c", a), b
}

func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New("c")
		own, peer := pipe(p)
		defer peer.Close()
		defer own.Close()
		began := time.Now()
		arrived := make(chan time.Duration, 1)
		read := func(from net.Conn) {
			if _, err := from.Read(make([]byte, 1)); err != nil {
				t.Error(err)
			}
			arrived <- time.Since(began)
		}
		// A read in progress waits as one that begins, and loses nothing.
		go read(own)
		synctest.Wait()
		if err := p.do(strings.Fields("stall c 0 2s")); err != nil {
			t.Fatal(err)
		}
		peer.Write([]byte("x"))
		if d := <-arrived; d != 2*time.Second {
			t.Errorf("read after %s", d)
		}
		p.do(strings.Fields("stall c * 1s"))
		go own.Write([]byte("x"))
		read(peer)
		if d := <-arrived; d != 3*time.Second {
			t.Errorf("written after %s", d)
		}
		p.do(strings.Fields("stall c 0 9s"))
		own.SetDeadline(time.Now().Add(time.Second))
		for name, do := range map[string]func([]byte) (int, error){"read": own.Read, "write": own.Write} {
			var late net.Error
			if _, err := do(make([]byte, 1)); !errors.As(err, &late) || !late.Timeout() {
				t.Errorf("a %s ends with %v", name, err)
			}
		}
		if d := time.Since(began); d != 4*time.Second {
			t.Errorf("the deadline came after %s", d)
		}
		own.SetDeadline(time.Time{})
		go func() { time.Sleep(time.Second); own.Close() }()
		if _, err := own.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a read ends with %v where the owner closes", err)
		}
		if d := time.Since(began); d != 5*time.Second {
			t.Errorf("the end came after %s", d)
		}
	})
}

// What is asked for ends with the socket that it was asked on.
func TestTheEndUndoesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New("a", "c")
		own, peer := pipe(p)
		defer peer.Close()
		defer own.Close()
		program, test := net.Pipe()
		over := make(chan error, 1)
		go func() { over <- p.Serve(program) }()
		say := func(line, want string) {
			t.Helper()
			test.Write([]byte(line + "\n"))
			answer := make([]byte, maximumLine)
			n, err := test.Read(answer)
			if got := string(answer[:n]); got != want+"\n" {
				t.Errorf("%q was answered %q, %v", line, got, err)
			}
		}
		say("hold a 2 10s", "ok")
		say("stall c * 10s", "ok")
		say("clock 1h", "ok")
		say("x", "error malformed")
		waited := held(p, "a")
		line := make([]byte, maximumLine)
		if n, _ := test.Read(line); string(line[:n]) != "reached a\n" {
			t.Errorf("told was %q", line[:n])
		}
		began := time.Now()
		time.Sleep(time.Second)
		test.Close()
		if err := <-over; err != nil {
			t.Error(err)
		}
		if d := <-waited; d != time.Second {
			t.Errorf("it waited %s", d)
		}
		if d := <-held(p, "a"); d != 0 {
			t.Errorf("another one waited %s", d)
		}
		go peer.Write([]byte("x"))
		if _, err := own.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d != time.Second {
			t.Errorf("read after %s", d)
		}
		if now := time.Now(); p.Now(now) != now {
			t.Error("the clock is off still")
		}
	})
}
