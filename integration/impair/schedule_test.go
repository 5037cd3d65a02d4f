package impair

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

var begun = time.Unix(1_800_000_000, 0)

// What waits leaves as a list says that is sorted by time, and is bounded in bytes.
func TestScheduleIsASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s schedule
		var want []parcel
		now, bytes, number := begun, 0, uint64(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "add") {
				at := now.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "in")))
				b := make([]byte, rapid.SampledFrom([]int{0, 1, 1400, maxWaiting / 3}).Draw(t, "length"))
				fits := bytes+len(b)+entryCost <= maxWaiting
				if s.add(nil, b, at) != fits {
					t.Fatalf("%d bytes beside %d: taken %v", len(b), bytes, !fits)
				}
				if fits {
					want = append(want, parcel{at: at, number: number, bytes: b})
					bytes += len(b) + entryCost
					number++
				}
			} else {
				now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "later")))
				slices.SortStableFunc(want, func(a, b parcel) int { return a.at.Compare(b.at) })
				x, in, ok := s.due(now)
				switch {
				case ok != (len(want) > 0):
					t.Fatalf("waits: %v with %d", ok, len(want))
				case ok && want[0].at.After(now):
					if in != want[0].at.Sub(now) {
						t.Fatalf("in %v, want %v", in, want[0].at.Sub(now))
					}
				case ok:
					if in != 0 || x.number != want[0].number {
						t.Fatalf("number %d in %v, want %d", x.number, in, want[0].number)
					}
					bytes -= len(x.bytes) + entryCost
					want = want[1:]
				}
			}
			if s.bytes != bytes || s.queue.Len() != len(want) {
				t.Fatalf("%d bytes of %d, want %d of %d", s.bytes, s.queue.Len(), bytes, len(want))
			}
		}
		if n := s.clear(); n != len(want) || s.bytes != 0 {
			t.Fatalf("cleared %d of %d", n, len(want))
		}
	})
}

// Without reordering nothing overtakes, each is late by its own delay at least, and the
// rate is kept; what would wait for more than the buffer has no room.
func TestDeparturesKeepOrderAndRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Path{
			Delay: time.Second, Jitter: time.Second,
			Rate: rapid.SampledFrom([]int{0, 1000, 1_000_000}).Draw(t, "rate"), Buffer: 5000,
		}
		var s schedule
		now, last := begun, begun
		left, queued := begun, 0.0 // when the link is free again, and what waits for it
		for n := range uint64(rapid.IntRange(1, 100).Draw(t, "datagrams")) {
			step := time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "pause"))
			now = now.Add(step)
			queued = max(queued-step.Seconds()*float64(p.Rate), 0)
			size := rapid.IntRange(1, 1500).Draw(t, "size")
			d := p.Decide(1, ToClient, 0, n)
			at, ok := s.departure(p, d, size, now)
			if p.Rate > 0 {
				fits := queued+float64(size) <= 5000
				if near := queued + float64(size) - 5000; near > -1 && near < 1 {
					return // rounding
				}
				if ok != fits {
					t.Fatalf("%d bytes behind %v: taken %v", size, queued, ok)
				}
				if !ok {
					continue
				}
				queued += float64(size)
				left = later(left, now).Add(time.Duration(float64(size) / float64(p.Rate) * float64(time.Second)))
			} else {
				left = now
			}
			if want := later(last, left.Add(d.Delay)); !ok || at != want {
				t.Fatalf("leaves %v, want %v", at.Sub(begun), want.Sub(begun))
			}
			last = at
		}
	})
}

// The buffer has a size also where the path names none.
func TestRateHasABuffer(t *testing.T) {
	var s schedule
	taken := 0
	for range 1000 {
		if _, ok := s.departure(Path{Rate: 1}, Decision{}, 1024, begun); ok {
			taken++
		}
	}
	if taken != defaultBuffer/1024 {
		t.Errorf("%d KiB wait", taken)
	}
}

// A datagram that is held is late by its own time alone, and those behind overtake it.
func TestAHeldDatagramIsOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Path{Reordering: 0.3, Delay: 10 * time.Millisecond, ReorderBy: 15 * time.Millisecond}
		type arrival struct {
			n     byte
			after time.Duration
		}
		var got []arrival
		begun := time.Now()
		l := newLine(ToUpstream, 3, p, func(x parcel) (Reason, bool) {
			got = append(got, arrival{x.bytes[0], time.Since(begun)})
			return 0, true
		})
		done, over := make(chan struct{}), make(chan struct{})
		go func() { defer close(over); l.run(done) }()
		f := &flow{}
		var want []arrival
		held := 0
		for n := range byte(20) {
			after := time.Since(begun) + p.Delay
			if p.Decide(3, ToUpstream, 0, uint64(n)).Held {
				after += p.ReorderBy
				held++
			}
			want = append(want, arrival{n, after})
			l.offer(f, uint64(n), []byte{n}, false, time.Now())
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		close(done)
		<-over
		slices.SortStableFunc(want, func(a, b arrival) int { return int(a.after - b.after) })
		if !slices.Equal(got, want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
		if c := l.read(); held < 3 || held > 17 || c.Reordered != uint64(held) || c.Passed != 20 {
			t.Errorf("%d were held, %v", held, c)
		}
	})
}

// A line that nothing drains holds what it may, and closes.
func TestALineIsBounded(t *testing.T) {
	l := newLine(ToClient, 1, Path{Delay: maxDelay, Duplication: 1}, func(parcel) (Reason, bool) {
		t.Error("sent too early")
		return 0, true
	})
	datagram := make([]byte, 1400)
	for n := range uint64(10_000) {
		l.offer(&flow{}, n, datagram, false, begun)
	}
	c := l.read()
	if fit := maxWaiting / (1400 + entryCost); c.Waiting != fit || c.Came+c.Duplicated != uint64(fit)+c.Dropped[QueueFull] {
		t.Errorf("%v; %d fit", c, fit)
	}
	if l.schedule.bytes > maxWaiting {
		t.Errorf("%d bytes wait", l.schedule.bytes)
	}
	waited := c.Waiting
	l.close()
	l.offer(&flow{}, 0, datagram, false, begun)
	if c := l.read(); c.Waiting != 0 || c.Dropped[Closed] != uint64(waited)+1 {
		t.Errorf("%v", c)
	}
}
