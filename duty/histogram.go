package duty

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// The buckets of every histogram: the first ends at leastBucket, each of the
// others at twice the one before. That reaches from what a busy core needs for one
// frame to what a caller still waits for, and finding a bucket costs no loop.
const (
	leastBucket = 16 * time.Microsecond
	numBuckets  = 21 // the last ends at 16.8 s
)

// Histogram counts durations by how long they were. The zero value is empty.
type Histogram struct {
	counts [numBuckets + 1]atomic.Uint64 // the last is of what no bucket holds
	ns     atomic.Int64
}

// Observe counts one duration. A negative one is a clock's mistake and counts as
// none at all passed.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	h.counts[bucketOf(d)].Add(1)
	h.ns.Add(int64(d))
}

// bucketOf returns the bucket that holds d, numBuckets for what none holds.
func bucketOf(d time.Duration) int {
	if d <= 0 {
		return 0
	}
	return min(bits.Len64(uint64(d-1)/uint64(leastBucket)), numBuckets)
}

// BucketBounds returns the ends of a histogram's buckets in seconds, ascending. A
// duration that is exactly one lies in that bucket.
func BucketBounds() []float64 {
	bounds := make([]float64, numBuckets)
	for i := range bounds {
		bounds[i] = (leastBucket << i).Seconds()
	}
	return bounds
}

// buckets returns how many durations lie in each bucket or below it, and how many
// there are in all.
func (h *Histogram) buckets() (upTo []uint64, all uint64) {
	upTo = make([]uint64, numBuckets)
	for i := range upTo {
		all += h.counts[i].Load()
		upTo[i] = all
	}
	return upTo, all + h.counts[numBuckets].Load()
}

func (h *Histogram) read() float64 { return time.Duration(h.ns.Load()).Seconds() }

// HistogramBy makes a histogram for each value of an enum, named
// relay_<duty>_<thing>_seconds.
func HistogramBy[E Enum](m *Metrics, name, help, label string, count E) *By[E, Histogram] {
	b := &By[E, Histogram]{at: make([]Histogram, count)}
	addBy(m, name, help, KindHistogram, namesOf(name, label, count), func(i int) source {
		return source{read: b.at[i].read, buckets: b.at[i].buckets}
	})
	return b
}
