package soak_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/simulate"
)

// wantFaults checks that a judge finds exactly what is wrong, each by a part of what it
// says; nothing where nothing is.
func wantFaults(t *testing.T, found []string, want ...string) {
	t.Helper()
	if len(found) != len(want) {
		t.Fatalf("found %q, want %d faults", found, len(want))
	}
	for _, says := range want {
		if !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, says) }) {
			t.Errorf("found %q, none of which says %q", found, says)
		}
	}
}

// An answer that was lost is no fault, an answer without a message is; and so is a message
// that was taken twice, never sent, or is not over.
func TestTheLedgerRefuses(t *testing.T) {
	const told = "relay-not-ready"
	for name, test := range map[string]struct {
		do   func(l *ledger)
		want []string
	}{
		"right": {func(l *ledger) {
			answered, refused, lost := l.send("a"), l.send("a"), l.send("b")
			l.take(answered)
			l.over(answered, "")
			l.over(refused, told)
			l.take(lost)
			l.over(lost, told)
		}, nil},
		"right over a quiet point": {func(l *ledger) {
			first := l.send("a")
			l.take(first)
			l.over(first, "")
			l.close()
			second := l.send("a")
			l.take(second)
			l.over(second, "")
		}, nil},
		"an answer that nobody gave": {func(l *ledger) { l.over(l.send("a"), "") },
			[]string{"up: 1 of a was answered, and the other end has not taken it"}},
		"taken twice": {func(l *ledger) {
			a := l.send("a")
			l.take(a)
			l.take(a)
			l.over(a, "")
		}, []string{"1 of a was taken 2 times"}},
		"taken twice without an answer": {func(l *ledger) {
			a := l.send("a")
			l.over(a, told)
			l.take(a)
			l.take(a)
		}, []string{"1 of a was taken 2 times"}},
		"taken as another node's": {func(l *ledger) {
			l.over(l.send("a"), told)
			l.take(account{"b", 1})
		}, []string{"1 of b was taken, and 0 were sent"}},
		"taken behind a quiet point": {func(l *ledger) {
			a := l.send("a")
			l.over(a, told)
			l.close()
			l.take(a)
		}, []string{"1 of a was taken long after it was over"}},
		"never over": {func(l *ledger) { l.take(l.send("a")) }, []string{"1 of a is not over"}},
		"told what nobody says": {func(l *ledger) { l.over(l.send("a"), "relay-on-fire") },
			[]string{`1 senders were told "relay-on-fire"`}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger("up", told)
			test.do(l)
			wantFaults(t, l.faults(), test.want...)
		})
	}
}

// A slot comes once for each time that it was released, in its window and in order, and
// is not released again when it was acknowledged.
func TestTheSlotsRefuse(t *testing.T) {
	now := time.Now()
	first, second := slot{"a", 10}, slot{"a", 11}
	comes := func(x slot, after time.Duration) arrival { return arrival{slot: x, at: now.Add(after)} }
	for name, test := range map[string]struct {
		do   func(s *slots)
		want []string
	}{
		"right": {func(s *slots) {
			for _, x := range []slot{first, second} {
				s.release(x)
				s.arrived(comes(x, time.Minute+30*time.Second))
				s.acknowledge(x)
			}
		}, nil},
		"right, with an answer that came too late": {func(s *slots) {
			for range 2 {
				s.release(first)
				s.arrived(comes(first, time.Second))
			}
			s.acknowledge(first)
		}, nil},
		"a push that nobody had decided": {func(s *slots) { s.arrived(comes(first, time.Second)) },
			[]string{"10 reached a 1 times, and was released 0 times"}},
		"twice for one release": {func(s *slots) {
			s.release(first)
			s.arrived(comes(first, time.Second))
			s.arrived(comes(first, time.Second))
		}, []string{"10 reached a 2 times, and was released 1 times"}},
		"again when it was acknowledged": {func(s *slots) {
			s.release(first)
			s.arrived(comes(first, time.Second))
			s.acknowledge(first)
			s.release(first)
		}, []string{"10 was released to a again when it was acknowledged"}},
		"acknowledged twice": {func(s *slots) {
			s.release(first)
			s.arrived(comes(first, time.Second))
			s.acknowledge(first)
			s.acknowledge(first)
		}, []string{"10 of a was acknowledged 2 times"}},
		"acknowledged by nobody": {func(s *slots) { s.release(first); s.acknowledge(first); s.look() },
			[]string{"10 of a was acknowledged, and has not reached it"}},
		"acknowledged since what has arrived was looked at": {func(s *slots) { s.look(); s.release(first); s.acknowledge(first) }, nil},
		"too early": {func(s *slots) { s.release(second); s.arrived(comes(second, time.Minute-time.Millisecond)) },
			[]string{"11 reached a 1ms before its window opened"}},
		"too late": {func(s *slots) { s.release(first); s.arrived(comes(first, 2*time.Minute)) },
			[]string{"10 reached a 0s after its window had ended"}},
		"of another node": {func(s *slots) { x := slot{"b", 10}; s.release(x); s.arrived(comes(x, time.Second)) },
			[]string{"10 reached b, and was never handed over"}},
		"refused": {func(s *slots) {
			s.release(first)
			s.arrived(arrival{first, now, errors.New("why")})
		}, []string{"10 was refused by a: why"}},
		"right, when custody ends and began anew": {func(s *slots) {
			s.release(first)
			s.drop()
			s.arrived(comes(first, time.Second)) // it was under way
			s.fence()
			third := slot{"a", 20}
			s.hand(third, held{now, now.Add(time.Minute)})
			s.release(third)
			s.arrived(comes(third, time.Second))
			s.acknowledge(third)
		}, nil},
		"released when custody had ended": {func(s *slots) { s.drop(); s.release(first) },
			[]string{"10 was released to a, and custody had ended"}},
		"acknowledged when custody had ended": {func(s *slots) {
			s.release(first)
			s.arrived(comes(first, time.Second))
			s.drop()
			s.acknowledge(first)
		}, []string{"10 was counted as acknowledged by a, and custody had ended"}},
		"sent when custody had ended": {func(s *slots) {
			s.release(first)
			s.drop()
			s.fence()
			s.arrived(comes(first, time.Second))
		}, []string{"10 reached a, and custody had ended"}},
		"a lower one behind a higher one": {func(s *slots) {
			for _, x := range []slot{second, first} {
				s.release(x)
				s.arrived(comes(x, time.Minute+time.Second))
			}
		}, []string{"10 reached a behind 11"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSlots()
			s.hand(first, held{now, now.Add(2 * time.Minute)})
			s.hand(second, held{now.Add(time.Minute), now.Add(3 * time.Minute)})
			test.do(s)
			wantFaults(t, s.faults(), test.want...)
		})
	}
}

// A packet is let pass by a law that can have been in force between its sending and its
// arrival, and by none before one that was settled when something in front of it was sent.
func TestTheLawsRefuse(t *testing.T) {
	a, b := sender{1, 0}, sender{2, 0}
	there := way{a, b}
	open, shut := law{there: true}, law{}
	for name, test := range map[string]struct {
		do   func(l *laws)
		want []string
	}{
		"granted": {func(l *laws) { l.settle(l.begin(open)); l.arrived(there, l.stamp()) }, nil},
		"withdrawn while it was under way": {func(l *laws) {
			l.settle(l.begin(open))
			stamp := l.stamp()
			l.settle(l.begin(shut))
			l.arrived(there, stamp)
		}, nil},
		"withdrawn, and not settled": {func(l *laws) {
			l.settle(l.begin(open))
			l.begin(shut)
			l.arrived(there, l.stamp())
		}, nil},
		"granted by one that has begun": {func(l *laws) {
			stamp := l.stamp()
			l.begin(open)
			l.begin(shut)
			l.arrived(there, stamp)
		}, nil},
		"never granted": {func(l *laws) { l.settle(l.begin(law{way{b, a}: true})); l.arrived(there, l.stamp()) },
			[]string{"a packet from member 1 (life 0) to member 2 (life 0) came, which no law from 1 to 1 lets pass (1 times)"}},
		"sent when the withdrawal was settled": {func(l *laws) {
			l.settle(l.begin(open))
			l.settle(l.begin(shut))
			l.arrived(there, l.stamp())
		}, []string{"no law from 2 to 2"}},
		"behind a packet that was sent when it was settled": {func(l *laws) {
			l.settle(l.begin(open))
			stamp := l.stamp()
			l.settle(l.begin(shut))
			l.fence(b, l.stamp())
			l.arrived(there, stamp)
			l.arrived(there, stamp)
		}, []string{"no law from 2 to 2 lets pass (2 times)"}},
		"behind such a packet at another member": {func(l *laws) {
			l.settle(l.begin(open))
			stamp := l.stamp()
			l.settle(l.begin(shut))
			l.fence(a, l.stamp())
			l.arrived(there, stamp)
		}, nil},
		"by a key that was replaced": {func(l *laws) {
			l.settle(l.begin(law{way{sender{1, 1}, b}: true}))
			l.arrived(there, l.stamp())
		}, []string{"member 1 (life 0)"}},
		"with a number that nobody gave": {func(l *laws) { l.arrived(there, 7) }, []string{"a law that has not begun"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLaws()
			test.do(l)
			wantFaults(t, l.faults(), test.want...)
		})
	}
}

// A message that breaks off is let pass once for each end of custody on its socket, and
// nothing else that a peer noticed is.
func TestTheViolationsRefuse(t *testing.T) {
	half := func(socket int) simulate.Violation {
		return simulate.Violation{Rule: simulate.MalformedEnvelope, Socket: socket}
	}
	other := simulate.Violation{Rule: simulate.AfterCustody, Socket: 4}
	broken := map[int]int{4: 2}
	for range 2 { // each look is at all of them
		got := withoutBroken([]simulate.Violation{half(4), other, half(4), half(5), half(4)}, broken)
		if want := []simulate.Violation{other, half(5), half(4)}; !slices.Equal(got, want) {
			t.Errorf("%v are left, want %v", got, want)
		}
	}
}

func TestTheWeightRefuses(t *testing.T) {
	earlier := weight{goroutines: 100, heap: 10 << 20}
	wantFaults(t, weight{100, 10<<20 + heapAllowance}.faults(earlier))
	wantFaults(t, weight{90, 9 << 20}.faults(earlier))
	wantFaults(t, weight{101, 10 << 20}.faults(earlier), "101 goroutines, and 100 at a like earlier point")
	wantFaults(t, weight{100, 10<<20 + heapAllowance + 1}.faults(earlier), "bytes on the heap")
}

// What is read of the profiles is what stands there; of goroutines all but those that the
// question itself has begun.
func TestProfiles(t *testing.T) {
	const stacks = "2 @ 0x1 0x2\n#\t0x1\tmain.run+0x1\tmain.go:1\n\n"
	for profile, want := range map[string]int{
		"goroutine profile: total 3\n" + stacks + "1 @ 0x3\n#\t0x3\tmain.main+0x1\tmain.go:2\n\n":                          3,
		"goroutine profile: total 3\n" + stacks + "1 @ 0x3\n#\t0x3\tnet/http.(*connReader).backgroundRead+0x1\ts.go:2\n\n": 2,
		"goroutine profile: total 3\n" + stacks + "1 @ 0x3\n\n":                                                            2,
	} {
		if got, err := readGoroutines(profile); got != want || err != nil {
			t.Errorf("%q holds %d, %v, want %d", profile, got, err, want)
		}
	}
	for _, profile := range []string{"", "a profile is being taken already", "goroutine profile: total x\n"} {
		if got, err := readGoroutines(profile); err == nil {
			t.Errorf("%q holds %d", profile, got)
		}
	}
	if _, err := readGoroutines("goroutine profile: total 1\n1 @ 0x3\n#\t0x3\tserve.zone/relay/forward.(*Forward).runRecall+0x1\tr.go:2\n\n"); !errors.Is(err, errRecalling) {
		t.Errorf("a relay that recalls nodes: %v", err)
	}
	if got, err := readHeap("heap profile: 1\n# Alloc = 7\n# HeapAlloc = 12\n"); got != 12 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := readHeap("# Alloc = 7\n"); err == nil {
		t.Error("a profile without the heap was read")
	}
}

// Every event is drawn once before one is drawn again, and the same seed draws the same.
func TestTheDeck(t *testing.T) {
	draw := func(seed uint64, long bool) (names []string) {
		d := newDeck(randomOf(seed), long)
		for range 2 * len(d.all) {
			names = append(names, d.draw().name)
		}
		return names
	}
	one, again, other, short := draw(1, true), draw(1, true), draw(2, true), draw(1, false)
	if !slices.Equal(one, again) || slices.Equal(one, other) {
		t.Error("a schedule is not that of its seed")
	}
	half := slices.Clone(one[:len(events)])
	slices.Sort(half)
	if half = slices.Compact(half); len(half) != len(events) {
		t.Errorf("of %d events %d were drawn", len(events), len(half))
	}
	for _, e := range events {
		if e.slow == slices.Contains(short, e.name) {
			t.Errorf("%s is slow: %t, and stands in a short schedule: %t", e.name, e.slow, !e.slow)
		}
	}
}
