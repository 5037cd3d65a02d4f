package duty

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestAHistogramCountsByLength(t *testing.T) {
	m := NewMetrics("hub")
	h := HistogramBy(m, "relay_hub_wait_seconds", "Help.", "lane", laneCount)
	for _, d := range []time.Duration{-time.Second, 0, leastBucket, leastBucket + 1, 2 * leastBucket, time.Hour} {
		h.Of(datagram).Observe(d)
	}
	family := m.Snapshot()[0]
	if family.Kind.String() != "histogram" || len(family.Samples) != 2 {
		t.Fatalf("%+v", family)
	}
	bounds, sample := BucketBounds(), family.Samples[datagram]
	if len(bounds) != len(sample.Buckets) || bounds[0] != leastBucket.Seconds() || bounds[1] != 2*bounds[0] {
		t.Errorf("bounds %v for %d buckets", bounds, len(sample.Buckets))
	}
	if diff := cmp.Diff([]uint64{3, 5, 5}, sample.Buckets[:3]); diff != "" {
		t.Errorf("buckets (-want +got):\n%s", diff)
	}
	if sample.Count != 6 || sample.Buckets[len(sample.Buckets)-1] != 5 {
		t.Errorf("%d in all, %d in buckets", sample.Count, sample.Buckets[len(sample.Buckets)-1])
	}
	if want := (5*leastBucket + 1 + time.Hour).Seconds() - leastBucket.Seconds(); sample.Value != want {
		t.Errorf("sum %v, want %v", sample.Value, want)
	}
	if quiet := family.Samples[direct]; quiet.Count != 0 || quiet.Value != 0 {
		t.Errorf("another lane has %+v", quiet)
	}
}

// A duration lies in the first bucket whose end it does not pass.
func TestBucketsAgainstALinearSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(-10, int64(40*time.Second)).Draw(t, "duration"))
		want := 0
		for want < numBuckets && d > leastBucket<<want {
			want++
		}
		if got := bucketOf(d); got != want {
			t.Fatalf("%d lies in %d, want %d", d, got, want)
		}
	})
}

func TestObserveAllocatesNothing(t *testing.T) {
	var h Histogram
	if n := testing.AllocsPerRun(100, func() { h.Observe(time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
