package duty

import (
	"fmt"
	"slices"
	"strings"
)

// MetricKind is how a metric's numbers are to be read.
type MetricKind uint8

// The kinds of metrics.
const (
	KindCounter   MetricKind = iota // only grows, from 0 at the start
	KindGauge                       // is what it is now
	KindHistogram                   // durations by length, from none at the start
)

// String returns the kind as Prometheus writes it.
func (k MetricKind) String() string {
	switch k {
	case KindCounter:
		return "counter"
	case KindHistogram:
		return "histogram"
	}
	return "gauge"
}

// Family is one metric as it is shown.
type Family struct {
	Name, Help string
	Kind       MetricKind
	Samples    []Sample // in the order of the enum
}

// Sample is one series of a metric.
type Sample struct {
	Labels []Label // shared, not to be changed
	Value  float64 // of a histogram the sum of all durations in seconds
	// Of a histogram alone: how many durations were at most as long as each of
	// BucketBounds, and how many there were in all.
	Buckets []uint64
	Count   uint64
}

// Label is one label of a series.
type Label struct{ Name, Value string }

// Snapshot returns what the metrics stand at, ordered by name. Numbers that
// change meanwhile are each read once, but not all at one instant.
func (m *Metrics) Snapshot() []Family {
	m.mu.Lock()
	families := make([]Family, 0, len(m.families))
	sources := make([][]source, 0, len(m.families))
	for name, f := range m.families {
		families = append(families, Family{Name: name, Help: f.help, Kind: f.kind, Samples: make([]Sample, len(f.samples))})
		sources = append(sources, f.samples)
	}
	m.mu.Unlock()
	// Read without the lock: Func calls the duty, which has locks of its own.
	for i, f := range families {
		for j, s := range sources[i] {
			f.Samples[j] = Sample{Labels: s.labels, Value: s.read()}
			if s.buckets != nil {
				f.Samples[j].Buckets, f.Samples[j].Count = s.buckets()
			}
		}
	}
	slices.SortFunc(families, func(a, b Family) int { return strings.Compare(a.Name, b.Name) })
	return families
}

// Gather returns the snapshots of all sets as one, ordered by name. Two sets
// of one duty, or of duties whose names run into each other, could share a
// name: that is refused.
func Gather(sets ...*Metrics) ([]Family, error) {
	var all []Family
	for _, m := range sets {
		all = append(all, m.Snapshot()...)
	}
	slices.SortStableFunc(all, func(a, b Family) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(all); i++ {
		if all[i].Name == all[i-1].Name {
			return nil, fmt.Errorf("metrics: %s is made by two duties", all[i].Name)
		}
	}
	return all, nil
}
