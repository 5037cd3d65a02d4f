package duty

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"serve.zone/relay/duty/field"
)

// Metrics is what one duty counts. A duty makes its counters once, when it is
// built; what the methods below refuse is a mistake of the program, so they
// panic and any test that builds the duty finds it. It is safe for concurrent
// use.
type Metrics struct {
	prefix string // relay_<duty>_

	mu       sync.Mutex
	families map[string]family // guarded by mu
}

// family is one name with all its series, which exist from the start.
type family struct {
	help    string
	kind    MetricKind
	samples []source
}

// source is one series and where its number comes from.
type source struct {
	labels  []Label
	read    func() float64
	buckets func() (upTo []uint64, all uint64) // of a histogram
}

// NewMetrics returns an empty set for the duty of this name.
func NewMetrics(duty string) *Metrics {
	if !field.IsName(duty) {
		panic(fmt.Sprintf("duty: metrics: %q is not the name of a duty", duty))
	}
	return &Metrics{prefix: "relay_" + strings.ReplaceAll(duty, "-", "_") + "_", families: map[string]family{}}
}

// Counter makes a counter. Its name is written in full, so that a search for
// it finds this place: relay_<duty>_<thing>_<unit>_total.
func (m *Metrics) Counter(name, help string) *Counter {
	c := new(Counter)
	m.add(name, help, KindCounter, source{read: c.read})
	return c
}

// Gauge makes a gauge, named relay_<duty>_<thing>_<unit>.
func (m *Metrics) Gauge(name, help string) *Gauge {
	g := new(Gauge)
	m.add(name, help, KindGauge, source{read: g.read})
	return g
}

// Seconds makes a counter of time, named relay_<duty>_<thing>_seconds_total.
func (m *Metrics) Seconds(name, help string) *Seconds {
	s := new(Seconds)
	m.add(name, help, KindCounter, source{read: s.read})
	return s
}

// Func makes a gauge that is read when it is shown, for ages and lengths of
// queues. read must not block and must not read these Metrics.
func (m *Metrics) Func(name, help string, read func() float64) {
	m.add(name, help, KindGauge, source{read: read})
}

func (m *Metrics) add(name, help string, kind MetricKind, samples ...source) {
	if err := checkMetricName(m.prefix, name, kind); err != nil {
		panic("duty: metrics: " + err.Error())
	}
	if help == "" {
		panic("duty: metrics: " + name + " has no help")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, twice := m.families[name]; twice {
		panic("duty: metrics: " + name + " is made twice")
	}
	m.families[name] = family{help: help, kind: kind, samples: samples}
}

// scaledUnits are not used: all times are in seconds and all sizes in bytes,
// so that no reader has to look a factor up.
var scaledUnits = []string{
	"ns", "us", "ms", "nanoseconds", "microseconds", "milliseconds", "minutes", "hours", "days",
	"bits", "kb", "mb", "gb", "kib", "mib", "gib", "kilobytes", "megabytes", "percent",
}

// checkMetricName holds the names to design §9: relay_<duty>_<thing>_<unit>,
// with _total for counters and for them alone.
func checkMetricName(prefix, name string, kind MetricKind) error {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return fmt.Errorf("%s does not begin with %s", name, prefix)
	}
	rest, total := strings.CutSuffix(rest, "_total")
	if total != (kind == KindCounter) {
		return fmt.Errorf("%s: counters end in _total, and nothing else does", name)
	}
	words := strings.Split(rest, "_")
	if len(words) < 2 {
		return fmt.Errorf("%s names a thing without its unit", name)
	}
	for _, word := range words {
		if !isMetricWord(word) {
			return fmt.Errorf("%s is not of words of lower-case letters and digits", name)
		}
	}
	if unit := words[len(words)-1]; slices.Contains(scaledUnits, unit) {
		return fmt.Errorf("%s counts in %s instead of the base unit", name, unit)
	}
	return nil
}

func isMetricWord(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}
