package bench

import (
	"math"
	"testing"
	"time"

	"serve.zone/relay/typedsocket/envelope"
)

func TestPercentilesOfAHistogram(t *testing.T) {
	// 100 in all: 50 up to 1 s, 40 between 1 and 2 s, 10 between 2 and 4 s.
	h := histogram{[]float64{1, 2, 4, math.Inf(1)}, []float64{50, 90, 100, 100}}
	for _, test := range []struct {
		rank float64
		want time.Duration
	}{
		{0, 0}, {25, 500 * time.Millisecond}, {50, time.Second}, {70, 1500 * time.Millisecond}, {95, 3 * time.Second}, {100, 4 * time.Second},
	} {
		if got := h.at(test.rank); got != test.want {
			t.Errorf("rank %v: %s, want %s", test.rank, got, test.want)
		}
	}
	// Of the 90 that are left without ten, the median has 45 before it when the ten
	// are the longest, and 55 when they are the shortest.
	if least, most := h.without(10, 50); least != 900*time.Millisecond || most != 1125*time.Millisecond {
		t.Errorf("between %s and %s", least, most)
	}
	if least, most := h.without(0, 99); least != most {
		t.Errorf("between %s and %s though all are looked at", least, most)
	}
	if got := h.minus(histogram{h.bounds, []float64{50, 50, 50, 50}}).at(20); got != 1500*time.Millisecond {
		t.Errorf("since the earlier look: %s", got)
	}
}

func TestInsideIsReadFromMetrics(t *testing.T) {
	const page = `# TYPE relay_forward_inside_seconds histogram
relay_forward_inside_seconds_bucket{message="answer",le="1.6e-05"} 1
relay_forward_inside_seconds_bucket{message="answer",le="+Inf"} 2
relay_forward_inside_seconds_sum{message="answer"} 0.5
relay_forward_inside_seconds_bucket{message="request",le="1.6e-05"} 3
relay_forward_inside_seconds_bucket{message="request",le="+Inf"} 4
`
	x, err := readInside([]byte(page))
	if err != nil || x.request.count() != 4 || x.answer.count() != 2 || x.request.upTo[0] != 3 {
		t.Errorf("%+v, %v", x, err)
	}
	if _, err := readInside(nil); err == nil {
		t.Error("an empty page was read")
	}
}

func TestMessagesAreNumbered(t *testing.T) {
	m := compose(reportMethod, sessionOf("node-1"), reportSize)
	text := m.numbered(12_345)
	var f envelope.Frame
	if err := envelope.Scan(text, &f); err != nil || len(text) != reportSize {
		t.Fatalf("%d bytes: %v\n%s", len(text), err, text)
	}
	if f.Kind() != envelope.KindRequest || string(f.ID) != "00012345" || string(f.Instance) != "00012345" {
		t.Errorf("ids %s and %s", f.ID, f.Instance)
	}
	for _, test := range []struct {
		errorValue []byte
		failed     bool
	}{{nil, false}, {[]byte(`{"text":"no"}`), true}} {
		answer := envelope.AppendResponseTail([]byte(`{"method":"m","request":null,"response":null`), f.IDToken, f.InstanceToken, test.errorValue, nil)
		if k, failed := numberOf(answer); k != 12_345 || failed != test.failed {
			t.Errorf("%s: %d, failed %t", answer, k, failed)
		}
	}
	if k, _ := numberOf([]byte(`{}`)); k != -1 {
		t.Errorf("no answer has the number %d", k)
	}
}

func TestSchedulesAreFixedInAdvance(t *testing.T) {
	const rate = 1000.0
	a, again, other := schedules(rate, time.Second, 1), schedules(rate, time.Second, 1), schedules(rate, time.Second, 2)
	if len(a) != loadNodes {
		t.Fatalf("%d schedules", len(a))
	}
	sent, same := 0, 0
	for i, due := range a {
		sent += len(due)
		for k, at := range due {
			if at != again[i][k] {
				t.Fatalf("node %d differs", i)
			}
			if k < len(other[i]) && other[i][k] == at {
				same++
			}
			if at < 0 || at >= time.Second || k > 0 && at < due[k-1] {
				t.Fatalf("node %d: %s at %d", i, at, k)
			}
		}
	}
	// Five standard deviations of a Poisson process.
	if math.Abs(float64(sent)-rate) > 5*math.Sqrt(rate) || same > 0 {
		t.Errorf("%d requests in a second, %d of them as under another seed", sent, same)
	}
}

func TestTheFullestWindowOfDials(t *testing.T) {
	at := func(ms ...int) (times []time.Time) {
		for _, m := range ms {
			times = append(times, time.Unix(0, 0).Add(time.Duration(m)*time.Millisecond))
		}
		return times
	}
	for _, test := range []struct {
		times []time.Time
		want  int
	}{
		{nil, 0}, {at(5), 1}, {at(0, 100, 200), 1}, {at(0, 99, 100, 150, 400, 401), 3},
	} {
		if got := mostWithin(test.times, 100*time.Millisecond); got != test.want {
			t.Errorf("%v: %d, want %d", test.times, got, test.want)
		}
	}
}
