package duty

import (
	"fmt"

	"serve.zone/relay/duty/field"
)

// Enum is a closed set of names, such as the reasons for a drop: constants
// counted from 0 by iota, whose String method returns the name. The constant
// behind the last one is the number of them and is what the constructors
// below are given, so that a value added to the enum has its series at once;
// one without a name fails every test that builds the duty.
type Enum interface {
	~uint8
	String() string
}

// maxSeries bounds the series of one name, so that a page of metrics stays
// one that a person can read.
const maxSeries = 256

// By is one metric for each value of an enum. All of them exist from the
// start, so that a rate over one that never happened is 0 and not unknown.
type By[E Enum, M any] struct{ at []M }

// Of returns the metric of a value. A value outside the enum panics.
func (b *By[E, M]) Of(e E) *M { return &b.at[e] }

// By2 is one metric for each pair of values of two enums.
type By2[A, B Enum, M any] struct {
	at    []M
	width int
}

// Of returns the metric of a pair. A value outside its enum panics.
func (b *By2[A, B, M]) Of(a A, e B) *M {
	row := b.at[int(a)*b.width:][:b.width]
	return &row[e]
}

// CounterBy makes a counter for each value of an enum of count values, with
// the value's name as a label.
func CounterBy[E Enum](m *Metrics, name, help, label string, count E) *By[E, Counter] {
	b := &By[E, Counter]{at: make([]Counter, count)}
	addBy(m, name, help, KindCounter, namesOf(name, label, count), func(i int) source { return source{read: b.at[i].read} })
	return b
}

// GaugeBy makes a gauge for each value of an enum of count values.
func GaugeBy[E Enum](m *Metrics, name, help, label string, count E) *By[E, Gauge] {
	b := &By[E, Gauge]{at: make([]Gauge, count)}
	addBy(m, name, help, KindGauge, namesOf(name, label, count), func(i int) source { return source{read: b.at[i].read} })
	return b
}

// SecondsBy makes a counter of time for each value of an enum.
func SecondsBy[E Enum](m *Metrics, name, help, label string, count E) *By[E, Seconds] {
	b := &By[E, Seconds]{at: make([]Seconds, count)}
	addBy(m, name, help, KindCounter, namesOf(name, label, count), func(i int) source { return source{read: b.at[i].read} })
	return b
}

// CounterBy2 makes a counter for each pair of values of two enums.
func CounterBy2[A, B Enum](m *Metrics, name, help, labelA string, countA A, labelB string, countB B) *By2[A, B, Counter] {
	if labelA == labelB {
		panic("duty: metrics: " + name + " has one label twice")
	}
	b := &By2[A, B, Counter]{at: make([]Counter, int(countA)*int(countB)), width: int(countB)}
	pairs := make([][]Label, 0, len(b.at))
	for _, first := range namesOf(name, labelA, countA) {
		for _, second := range namesOf(name, labelB, countB) {
			pairs = append(pairs, []Label{first[0], second[0]})
		}
	}
	addBy(m, name, help, KindCounter, pairs, func(i int) source { return source{read: b.at[i].read} })
	return b
}

// FuncBy makes a counter for each value of an enum that is read when it is shown.
// read must not block, must not read these Metrics, and its numbers only grow.
func FuncBy[E Enum](m *Metrics, name, help, label string, count E, read func(E) float64) {
	addBy(m, name, help, KindCounter, namesOf(name, label, count), func(i int) source {
		return source{read: func() float64 { return read(E(i)) }}
	})
}

func addBy(m *Metrics, name, help string, kind MetricKind, labels [][]Label, at func(int) source) {
	if len(labels) == 0 || len(labels) > maxSeries {
		panic(fmt.Sprintf("duty: metrics: %s has %d series, want 1 to %d", name, len(labels), maxSeries))
	}
	sources := make([]source, len(labels))
	for i := range labels {
		sources[i] = at(i)
		sources[i].labels = labels[i]
	}
	m.add(name, help, kind, sources...)
}

// namesOf returns the label of every value of an enum.
func namesOf[E Enum](name, label string, count E) [][]Label {
	if !isMetricWord(label) {
		panic(fmt.Sprintf("duty: metrics: %s: %q is not the name of a label", name, label))
	}
	seen := map[string]bool{}
	labels := make([][]Label, 0, count)
	for e := range count {
		value := e.String()
		if !field.IsName(value) || seen[value] {
			panic(fmt.Sprintf("duty: metrics: %s: value %d of %s has no name of its own", name, uint8(e), label))
		}
		seen[value] = true
		labels = append(labels, []Label{{Name: label, Value: value}})
	}
	return labels
}
