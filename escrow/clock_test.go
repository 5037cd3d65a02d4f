package escrow

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// O36: what makes the clock suspect, and what ends that.
func TestO36_ClockIsSuspectAfterAStepBack(t *testing.T) {
	type reading struct{ mono, off time.Duration } // off is how far the wall clock is off
	for name, row := range map[string]struct {
		readings []reading
		want     string // a letter for each: s for suspect
	}{
		"steady":                    {[]reading{{1, 0}, {2, 0}, {3600, 0}}, "..."},
		"30 s back":                 {[]reading{{10, -30}, {11, -30}, {50, -30}}, "..."},
		"31 s back until caught up": {[]reading{{10, -31}, {11, -31}, {40, -31}, {41, -31}, {42, -31}}, "sss.."},
		"31 s in two steps":         {[]reading{{10, -15}, {20, -31}}, ".."},
		"back and put right":        {[]reading{{10, -600}, {20, 0}, {21, 0}}, "s.."},
		"back and half put right":   {[]reading{{10, -600}, {20, -300}, {300, -300}, {309, -300}, {310, -300}}, "ssss."},
		"forward":                   {[]reading{{10, 600}, {20, 600}}, ".."},
		"forward and put right":     {[]reading{{10, 600}, {20, 0}, {619, 0}, {620, 0}, {630, 0}}, ".ss.."},
		"twice back":                {[]reading{{10, -40}, {20, -100}, {109, -100}, {110, -100}}, "sss."},
		"30 s back and 31 s back":   {[]reading{{10, -30}, {20, -61}, {70, -61}, {71, -61}}, ".ss."},
		"a step seen late":          {[]reading{{1000, -31}, {1030, -31}, {1031, -31}}, "ss."},
	} {
		var c clock
		c.mark(instant{wall: begin})
		got := ""
		for _, r := range row.readings {
			c.see(instant{begin.Add((r.mono + r.off) * time.Second), r.mono * time.Second})
			if c.suspect {
				got += "s"
			} else {
				got += "."
			}
		}
		if got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

// O36: while the clock is suspect nothing is released, and what is in flight is
// withdrawn; the due one follows as soon as it has caught up.
func TestO36_NothingIsReleasedWhileTheClockIsSuspect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a", "node-b")
		r.must(grid(spec{}, begin, 23))
		r.must(grid(spec{node: "node-b"}, begin, 23))
		r.answering(unsent)
		r.SessionLost()
		time.Sleep(25*time.Minute + 300*time.Millisecond) // true and wall time 00:25:00.300
		r.taken()
		r.clock.step(-8 * time.Minute)
		time.Sleep(700 * time.Millisecond)
		synctest.Wait()
		if n := r.metrics.ended.Of(outcomeWithdrawn).Value(); n < 2 {
			t.Errorf("%d were withdrawn", n)
		}
		r.taken()
		r.answering(nil)
		if s := r.Status().(Status); !s.ClockSuspect || !s.ClockTrusted.Equal(begin.Add(25*time.Minute+time.Second)) {
			t.Errorf("the status shows %+v", s)
		}
		// The wall clock passes 00:20 again; nothing follows from that.
		time.Sleep(8*time.Minute - time.Millisecond)
		r.wantTaken()
		time.Sleep(time.Millisecond)
		// By now the window of 00:20 is current by the wall clock (00:25:01).
		r.wantTaken("node-a 3 @00:33:01.000", "node-b 3 @00:33:01.000")
		if s := r.Status().(Status); s.ClockSuspect || !s.ClockTrusted.IsZero() {
			t.Errorf("the status shows %+v", s)
		}
		want := []string{"clock-suspect expiresAt=2000-01-01T00:25:01.000Z", "clock-trusted reason=caught-up"}
		if got := r.eventsOf(ClockSuspect, ClockTrusted); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("events %q", got)
		}
	})
}

// A clock that is set right, or forward, is noticed within a second.
func TestO36_StepsForwardAreNoticedWithinASecond(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a")
		r.must(grid(spec{}, begin, 23))
		r.SessionLost()
		time.Sleep(5*time.Minute + 250*time.Millisecond)
		r.taken()
		r.clock.step(30 * time.Minute) // 00:35
		time.Sleep(750 * time.Millisecond)
		r.wantTaken("node-a 4 @00:05:01.000")
		time.Sleep(5*time.Minute - time.Second)
		r.wantTaken("node-a 5 @00:10:00.000")

		r.clock.step(-40 * time.Minute)
		time.Sleep(time.Second)
		r.clock.step(40 * time.Minute)
		time.Sleep(10*time.Minute - 2*time.Second)
		r.wantTaken()
		time.Sleep(time.Second)
		r.wantTaken("node-a 6 @00:20:00.000")
	})
}

// O36: a session to Cloudly ends the suspicion, and what the clock did while one
// stood does not count.
func TestO36_ASessionEndsTheSuspicion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a")
		r.must(grid(spec{}, begin, 23))
		r.SessionLost()
		r.wantTaken("node-a 1 @00:00:00.000")
		time.Sleep(11 * time.Minute)
		r.wantTaken("node-a 2 @00:10:00.000")
		r.clock.step(-time.Hour)
		time.Sleep(time.Second)
		r.SessionRegistered()
		r.clock.step(109 * time.Minute) // 01:00:01
		r.Bound(bindingOf("node-a", 1))
		time.Sleep(time.Minute)
		r.clock.step(-41 * time.Minute) // 00:20:01
		// The windows that had ended went while the clock stood there, and Cloudly
		// hands over a run again.
		r.must(grid(spec{}, begin, 23))
		r.SessionLost()
		r.wantTaken("node-a 3 @00:12:01.000")
		want := []string{"clock-suspect expiresAt=2000-01-01T00:11:01.000Z", "clock-trusted reason=session-registered"}
		if got := r.eventsOf(ClockSuspect, ClockTrusted); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("events %q", got)
		}
		// An end of custody begins anew as well.
		r.clock.step(-time.Hour)
		r.DropCustody("relay-node-unknown")
		if r.Status().(Status).ClockSuspect {
			t.Error("suspect after custody ended")
		}
	})
}

// B064: times far away overflow nothing.
func TestB064_TimesFarAway(t *testing.T) {
	for _, year := range []int{1960, 1970, 2039, 2107, 2263, 9999} {
		at := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		m := newMachine(instant{wall: at})
		m.registered(instant{wall: at})
		m.bound(instant{wall: at}, bindingOf("node-a", 1))
		first := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
		_, refused := m.hold(instant{wall: at}, runOf(spec{unsealed: true}, windowsOf(first, 2)), nil)
		if (refused == nil) != at.Before(first) {
			t.Errorf("year %d: %v", year, refused)
		}
		if wake, ok := m.wake(); ok != (refused == nil) || ok && (wake <= 0 || wake > longestSleep) {
			t.Errorf("year %d: wake in %s, %v", year, wake, ok)
		}
		m.lost(instant{wall: at})
		if due := m.tick(instant{wall: at, mono: 1}); len(due) != 0 {
			t.Errorf("year %d: %d are due", year, len(due))
		}
		if wake, ok := m.wake(); ok && (wake <= 1 || wake > 1+clockCheck) {
			t.Errorf("year %d: detached, wake in %s", year, wake)
		}
	}
}

// The loop rests while nothing can become due.
func TestWakesOnlyWhenSomethingMayBeDue(t *testing.T) {
	at := instant{wall: begin}
	m := newMachine(at)
	want := func(what string, want time.Duration, any bool) {
		t.Helper()
		if got, ok := m.wake(); ok != any || any && got != want {
			t.Errorf("%s: wake at %s, %v", what, got, ok)
		}
	}
	want("at the start", 0, false)
	m.registered(at)
	m.bound(at, bindingOf("node-a", 1))
	want("nothing is held", 0, false)
	m.hold(at, grid(spec{}, begin.Add(time.Minute), 3), nil)
	want("attached", 16*time.Minute, true) // the first window ends
	m.lost(at)
	m.tick(at)
	want("detached", clockCheck, true)
	at = instant{begin.Add(time.Minute - time.Millisecond), time.Minute - time.Millisecond}
	m.tick(at)
	want("1 ms before a slot", time.Minute, true)
	at = instant{begin.Add(time.Minute), time.Minute}
	p := m.tick(at)
	want("in flight", time.Minute+clockCheck, true)
	m.ended(at, p[0], outcomeRefused)
	later := func(d time.Duration, off time.Duration) instant {
		return instant{at.wall.Add(d + off), at.mono + d}
	}
	m.tick(later(firstRetry-100*time.Millisecond, 0))
	want("0.1 s before it is tried again", at.mono+firstRetry, true)
	m.suspend(later(firstRetry-50*time.Millisecond, 0))
	m.tick(later(2*firstRetry-150*time.Millisecond, 0))
	want("0.1 s before the end of a suspension", at.mono+2*firstRetry-50*time.Millisecond, true)
	m.tick(later(15*time.Minute-100*time.Millisecond, -11*time.Minute))
	want("suspect", at.mono+15*time.Minute+900*time.Millisecond, true)
	m.tick(later(26*time.Minute-200*time.Millisecond, -11*time.Minute))
	want("0.1 s before it has caught up", at.mono+26*time.Minute-100*time.Millisecond, true)
	m.drain(later(27*time.Minute, -11*time.Minute))
	want("draining", 0, false)
}

// The clock is not suspect any more when registered has returned, whether or not
// anything happens then.
func TestO36_RegisteredMachineTrustsItsClock(t *testing.T) {
	m := newMachine(instant{wall: begin})
	m.tick(instant{begin, time.Hour})
	if !m.clock.suspect {
		t.Fatal("a step back by an hour is none")
	}
	m.registered(instant{begin, time.Hour})
	if m.clock.suspect {
		t.Error("suspect under a session")
	}
}

// A wall clock with a monotonic reading would hide its own steps.
func TestO36_TheWallClockIsReadAlone(t *testing.T) {
	if text := New(Config{}).now().wall.String(); strings.Contains(text, "m=") {
		t.Errorf("read as %s", text)
	}
}

// A pause between the readings of the two clocks, as of a machine that was stopped,
// is no step.
func TestO36_APauseBetweenTheReadingsIsNoStep(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var pause time.Duration
		e := New(Config{Wall: func() time.Time {
			time.Sleep(pause)
			pause = 0
			return time.Now()
		}})
		e.SessionRegistered()
		e.SessionLost()
		for range 3 {
			pause = 2 * time.Minute
			e.Unbound("node-a")
			e.Unbound("node-a")
			if e.Status().(Status).ClockSuspect {
				t.Fatal("suspect")
			}
		}
	})
}
