package node

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var at = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func newMachine(random float64) *machine {
	return &machine{random: func() float64 { return random }, state: StateIdle}
}

func TestMachineWay(t *testing.T) {
	m := newMachine(0)
	steps := []struct {
		e     event
		after time.Duration
		want  action
		state State
		next  time.Duration // behind the step, 0 for none
	}{
		{event{kind: due}, 0, carryOn, StateIdle, 0},
		{event{kind: begun}, 0, dial, StateDialling, 0},
		{event{kind: begun}, 0, carryOn, StateDialling, 0},
		{event{kind: confirmed}, 0, carryOn, StateDialling, 0},
		{event{kind: connected}, 1, carryOn, StateHandshaking, 0},
		{event{kind: renewed}, 0, carryOn, StateHandshaking, 0},
		{event{kind: confirmed}, 1, carryOn, StateUp, 0},
		{event{kind: due}, 0, carryOn, StateUp, 0},
		// It stood: the first attempt is made at once.
		{event{kind: ended, reason: Silent}, stood, wait, StateWaiting, 0},
		{event{kind: ended, reason: Silent}, 0, carryOn, StateWaiting, 0},
		{event{kind: due}, 0, dial, StateDialling, 0},
		{event{kind: ended, reason: Unreachable}, time.Second, wait, StateWaiting, time.Second},
		{event{kind: renewed}, 0, carryOn, StateWaiting, time.Second},
		{event{kind: due}, time.Second, dial, StateDialling, 0},
		{event{kind: ended, reason: Unreachable}, 0, wait, StateWaiting, 2 * time.Second},
		{event{kind: due}, 0, dial, StateDialling, 0},
		{event{kind: connected}, 0, carryOn, StateHandshaking, 0},
		{event{kind: ended, reason: HubNotAdmitted}, 0, wait, StateWaiting, 16 * time.Second},
		{event{kind: renewed}, 0, dial, StateDialling, 0},
		{event{kind: connected}, 0, carryOn, StateHandshaking, 0},
		{event{kind: confirmed}, 0, carryOn, StateUp, 0},
		// It did not stand: a failure like any other.
		{event{kind: ended, reason: HubDone}, stood - 1, wait, StateWaiting, 500 * time.Millisecond},
		{event{kind: due}, 0, dial, StateDialling, 0},
		{event{kind: connected}, 0, carryOn, StateHandshaking, 0},
		{event{kind: confirmed}, 0, carryOn, StateUp, 0},
		{event{kind: ended, reason: HubChanged}, stood - 1, wait, StateWaiting, 500 * time.Millisecond},
		{event{kind: stopped}, 0, finish, StateStopped, 0},
		{event{kind: due}, 0, finish, StateStopped, 0},
	}
	now := at
	for i, s := range steps {
		now = now.Add(s.after)
		if got := m.step(s.e, now); got != s.want || m.state != s.state {
			t.Fatalf("step %d: action %d, state %s, want %d, %s", i, got, m.state, s.want, s.state)
		}
		if m.state != StateWaiting && !m.next.IsZero() {
			t.Fatalf("step %d: next attempt stands in state %s", i, m.state)
		}
		if m.state == StateWaiting && m.next.Sub(m.since) != s.next && s.want == wait {
			t.Fatalf("step %d: waits %v, want %v", i, m.next.Sub(m.since), s.next)
		}
	}
}

// A node whose place another one takes again and again comes back at a slower and slower pace,
// however well its tunnels stood between. Other endings are not slower for it.
func TestAContestedKeyIsDialledMoreAndMoreRarely(t *testing.T) {
	m := newMachine(0)
	now := at
	next := m.step(event{kind: begun}, now)
	for n, test := range []struct {
		up     time.Duration
		reason Reason
		want   time.Duration
	}{
		{time.Hour, HubSuperseded, 30 * time.Second},
		{22 * time.Second, HubSuperseded, time.Minute},
		{0, HubDuplicateKey, 2 * time.Minute},
		{0, Unreachable, 2 * time.Second}, // the third failure
		{0, HubDuplicateKey, 4 * time.Minute},
		{22 * time.Second, Silent, 0},
		{22 * time.Second, HubSuperseded, 5 * time.Minute},
		{stoodAlone - 1, HubSuperseded, 5 * time.Minute},
		{stoodAlone, HubSuperseded, 30 * time.Second},
		{0, HubSuperseded, time.Minute},
	} {
		if next != dial {
			t.Fatalf("step %d: action %d", n, next)
		}
		m.step(event{kind: connected}, now)
		if test.up > 0 {
			m.step(event{kind: confirmed}, now)
			now = now.Add(test.up)
		}
		m.step(event{kind: ended, reason: test.reason}, now)
		if got := m.next.Sub(now); got != test.want {
			t.Errorf("step %d: waits %v after %s, want %v", n, got, test.reason, test.want)
		}
		now = m.next
		next = m.step(event{kind: due}, now)
	}
}

func TestWaits(t *testing.T) {
	tests := []struct {
		reason   Reason
		failures int
		after    time.Duration
		random   float64
		want     time.Duration
	}{
		{Unreachable, 1, 0, 0, 500 * time.Millisecond},
		{Unreachable, 1, 0, 0.5, 375 * time.Millisecond},
		{Unreachable, 2, 0, 0, time.Second},
		{Unreachable, 6, 0, 0, 16 * time.Second},
		{Unreachable, 7, 0, 0, 30 * time.Second},
		{Unreachable, 1 << 40, 0, 0, 30 * time.Second},
		{Silent, 1, 0, 0.9, 0},
		{Silent, 2, 0, 0, 500 * time.Millisecond},
		{HubNotAdmitted, 1, 0, 0, 2 * time.Second},
		{HubNotAdmitted, 6, 0, 0, time.Minute},
		{HubSuperseded, 1, 0, 0, 30 * time.Second},
		{HubSuperseded, 5, 0, 0, 5 * time.Minute},
		{HubDraining, 1, 2 * time.Second, 0, 2 * time.Second},
		{HubDraining, 1, 2 * time.Second, 0.5, 2500 * time.Millisecond},
		{HubDraining, 1, time.Hour, 0.5, 5 * time.Minute},
		{HubBusy, 1, time.Millisecond, 0, time.Millisecond},
	}
	for _, test := range tests {
		if got := test.reason.wait(test.failures, test.after, test.random); got != test.want {
			t.Errorf("%s, failure %d, asked %v, random %v: %v, want %v",
				test.reason, test.failures, test.after, test.random, got, test.want)
		}
	}
}

// Whatever happens to a machine, no wait is longer than the longest, it never makes two
// attempts at once, and of any three in a row that led to nothing at most one came without a pause.
func TestMachineNeverHurriesAndNeverGivesUp(t *testing.T) {
	reasons := Reasons()
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(rapid.Float64Range(0, 0.999).Draw(t, "random"))
		now := at
		attempting := m.step(event{kind: begun}, now) == dial
		hurried := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "pause")))
			e := event{
				kind:   rapid.SampledFrom([]eventKind{begun, connected, confirmed, ended, due, renewed}).Draw(t, "kind"),
				reason: rapid.SampledFrom(reasons).Draw(t, "reason"),
				after:  time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "after")),
			}
			if rapid.Bool().Draw(t, "silent") {
				e.after = 0
			}
			switch m.step(e, now) {
			case dial:
				if attempting {
					t.Fatal("two attempts at once")
				}
				attempting = true
			case wait:
				attempting = false
				pause := m.next.Sub(now)
				if pause < 0 || pause > mostWait {
					t.Fatalf("waits %v", pause)
				}
				if pause == 0 && m.last.Up < stood {
					if hurried++; hurried > 1 {
						t.Fatalf("two attempts without a pause, the last after %+v", m.last)
					}
				} else {
					hurried = 0
				}
			case finish:
				t.Fatal("gave up")
			}
			if attempting != m.attempting() {
				t.Fatalf("state %s, attempting %v", m.state, attempting)
			}
		}
	})
}

func TestEveryReasonHasAPace(t *testing.T) {
	for _, r := range Reasons() {
		if p := paces[r]; p.most == 0 || p.first > p.most || p.most > mostWait {
			t.Errorf("%s: %+v", r, p)
		}
	}
}
