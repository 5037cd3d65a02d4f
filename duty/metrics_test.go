package duty

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type lane uint8

const (
	direct lane = iota
	datagram
	laneCount
)

func (l lane) String() string { return [laneCount]string{"direct", "datagram"}[l] }

// drop has a value more than it has names, as when somebody adds a reason
// and forgets its name.
type drop uint8

const (
	dropHairpin drop = iota
	dropForgotten
	dropCount
)

func (d drop) String() string { return [dropCount]string{dropHairpin: "hairpin"}[d] }

// twin has one name twice.
type twin uint8

func (twin) String() string { return "twin" }

// wide has a name for each of its 256 values.
type wide uint8

func (w wide) String() string { return fmt.Sprintf("w%d", uint8(w)) }

func panicOf(f func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	f()
	return ""
}

func TestMetricNames(t *testing.T) {
	m := NewMetrics("route-table")
	counter := func(name string) func() { return func() { m.Counter(name, "Help.") } }
	gauge := func(name string) func() { return func() { m.Gauge(name, "Help.") } }
	for _, row := range []struct {
		name string
		do   func()
		want string // a part of the panic; "" if it is taken
	}{
		{"a counter", counter("relay_route_table_pushed_tables_total"), ""},
		{"a gauge", gauge("relay_route_table_held_bytes"), ""},
		{"time spent", func() { m.Seconds("relay_route_table_push_wait_seconds_total", "Help.") }, ""},
		{"a gauge of a function", func() { m.Func("relay_route_table_age_held_seconds", "Help.", func() float64 { return 1 }) }, ""},
		{"the same name again", gauge("relay_route_table_held_bytes"), "made twice"},
		{"no help", func() { m.Gauge("relay_route_table_x_bytes", "") }, "no help"},
		{"another duty", counter("relay_hub_dropped_packets_total"), "does not begin with relay_route_table_"},
		{"no prefix", counter("route_table_x_bytes_total"), "does not begin with"},
		{"a counter without total", counter("relay_route_table_pushed_tables"), "end in _total"},
		{"a gauge with total", gauge("relay_route_table_pushed_tables_total"), "end in _total"},
		{"no unit", counter("relay_route_table_pushed_total"), "without its unit"},
		{"milliseconds", gauge("relay_route_table_wait_milliseconds"), "instead of the base unit"},
		{"megabytes", gauge("relay_route_table_held_mib"), "instead of the base unit"},
		{"capitals", gauge("relay_route_table_held_Bytes"), "not of words"},
		{"an empty word", gauge("relay_route_table_held__bytes"), "not of words"},
		{"a dash", gauge("relay_route_table_held-x_bytes"), "not of words"},
		{"a duty that is no name", func() { NewMetrics("Hub") }, "not the name of a duty"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := panicOf(row.do)
			if row.want == "" && got != "" || row.want != "" && !strings.Contains(got, row.want) {
				t.Errorf("panic %q, want %q", got, row.want)
			}
		})
	}
}

func TestLabelsComeFromClosedEnums(t *testing.T) {
	m := NewMetrics("hub")
	for _, row := range []struct {
		name string
		do   func()
		want string
	}{
		{"a reason without its name", func() { CounterBy(m, "relay_hub_a_packets_total", "Help.", "reason", dropCount) }, "value 1 of reason has no name of its own"},
		{"two values of one name", func() { GaugeBy(m, "relay_hub_b_packets", "Help.", "kind", twin(2)) }, "value 1 of kind has no name of its own"},
		{"an empty enum", func() { CounterBy(m, "relay_hub_c_packets_total", "Help.", "lane", lane(0)) }, "has 0 series"},
		{"a label that is no word", func() { SecondsBy(m, "relay_hub_d_seconds_total", "Help.", "la-ne", laneCount) }, "not the name of a label"},
		{"one label twice", func() {
			CounterBy2(m, "relay_hub_e_packets_total", "Help.", "lane", laneCount, "lane", laneCount)
		}, "one label twice"},
		{"too many series", func() {
			CounterBy2(m, "relay_hub_f_packets_total", "Help.", "lane", laneCount, "wide", wide(200))
		}, "has 400 series, want 1 to 256"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := panicOf(row.do); !strings.Contains(got, row.want) {
				t.Errorf("panic %q, want %q", got, row.want)
			}
		})
	}
	if got := m.Snapshot(); len(got) != 0 {
		t.Errorf("what was refused is shown: %v", got)
	}
	drops := CounterBy(m, "relay_hub_dropped_packets_total", "Help.", "lane", laneCount)
	if got := panicOf(func() { drops.Of(laneCount).Inc() }); !strings.Contains(got, "index out of range") {
		t.Errorf("a value outside the enum: panic %q", got)
	}
	pairs := CounterBy2(m, "relay_hub_carried_packets_total", "Help.", "from", laneCount, "to", laneCount)
	if got := panicOf(func() { pairs.Of(0, laneCount).Inc() }); !strings.Contains(got, "index out of range") {
		t.Errorf("a second value outside its enum: panic %q", got)
	}
}

func TestSnapshot(t *testing.T) {
	m := NewMetrics("hub")
	pairs := CounterBy2(m, "relay_hub_carried_packets_total", "Packets carried.", "from", laneCount, "to", laneCount)
	held := GaugeBy(m, "relay_hub_held_bytes", "Bytes held.", "lane", laneCount)
	wait := SecondsBy(m, "relay_hub_wait_seconds_total", "Time waited.", "lane", laneCount)
	members := m.Gauge("relay_hub_admitted_members", "Members.")
	busy := m.Seconds("relay_hub_busy_seconds_total", "Time worked.")
	m.Func("relay_hub_network_age_seconds", "Age.", func() float64 { return 2.5 })

	pairs.Of(direct, datagram).Add(3)
	pairs.Of(datagram, direct).Inc()
	held.Of(datagram).Set(7)
	held.Of(datagram).Add(-9)
	wait.Of(direct).Add(1500 * time.Millisecond)
	wait.Of(direct).Add(-time.Hour)
	members.Set(4)
	busy.Add(time.Second)

	label := func(pairs ...string) []Label {
		var labels []Label
		for i := 0; i < len(pairs); i += 2 {
			labels = append(labels, Label{pairs[i], pairs[i+1]})
		}
		return labels
	}
	want := []Family{
		{"relay_hub_admitted_members", "Members.", KindGauge, []Sample{{Value: 4}}},
		{"relay_hub_busy_seconds_total", "Time worked.", KindCounter, []Sample{{Value: 1}}},
		{"relay_hub_carried_packets_total", "Packets carried.", KindCounter, []Sample{
			{Labels: label("from", "direct", "to", "direct"), Value: 0}, {Labels: label("from", "direct", "to", "datagram"), Value: 3},
			{Labels: label("from", "datagram", "to", "direct"), Value: 1}, {Labels: label("from", "datagram", "to", "datagram"), Value: 0},
		}},
		{"relay_hub_held_bytes", "Bytes held.", KindGauge, []Sample{{Labels: label("lane", "direct"), Value: 0}, {Labels: label("lane", "datagram"), Value: -2}}},
		{"relay_hub_network_age_seconds", "Age.", KindGauge, []Sample{{Value: 2.5}}},
		{"relay_hub_wait_seconds_total", "Time waited.", KindCounter, []Sample{{Labels: label("lane", "direct"), Value: 1.5}, {Labels: label("lane", "datagram"), Value: 0}}},
	}
	if diff := cmp.Diff(want, m.Snapshot()); diff != "" {
		t.Error(diff)
	}
	if busy.Value() != time.Second || members.Value() != 4 || pairs.Of(direct, datagram).Value() != 3 {
		t.Errorf("values: %v %v %v", busy.Value(), members.Value(), pairs.Of(direct, datagram).Value())
	}
	if KindCounter.String() != "counter" || KindGauge.String() != "gauge" {
		t.Errorf("kinds: %v, %v", KindCounter, KindGauge)
	}
}

func TestGather(t *testing.T) {
	hub, escrow, again := NewMetrics("hub"), NewMetrics("escrow"), NewMetrics("hub")
	hub.Counter("relay_hub_a_packets_total", "Help.")
	escrow.Counter("relay_escrow_b_runs_total", "Help.")
	got, err := Gather(hub, escrow, again)
	if err != nil || len(got) != 2 || got[0].Name != "relay_escrow_b_runs_total" || got[1].Name != "relay_hub_a_packets_total" {
		t.Errorf("%v, %v", got, err)
	}
	again.Counter("relay_hub_a_packets_total", "Help.")
	if got, err := Gather(hub, escrow, again); err == nil || err.Error() != "metrics: relay_hub_a_packets_total is made by two duties" || got != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestMetricsAllocateNothing(t *testing.T) {
	m := NewMetrics("hub")
	plain := m.Counter("relay_hub_a_packets_total", "Help.")
	gauge := m.Gauge("relay_hub_b_packets", "Help.")
	busy := m.Seconds("relay_hub_c_seconds_total", "Help.")
	by := CounterBy(m, "relay_hub_d_packets_total", "Help.", "lane", laneCount)
	by2 := CounterBy2(m, "relay_hub_e_packets_total", "Help.", "from", laneCount, "to", laneCount)
	if n := testing.AllocsPerRun(100, func() {
		plain.Inc()
		plain.Add(2)
		gauge.Set(1)
		gauge.Add(1)
		busy.Add(time.Microsecond)
		by.Of(datagram).Inc()
		by2.Of(direct, datagram).Add(1)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestMetricsCountConcurrently(t *testing.T) {
	m := NewMetrics("hub")
	by := CounterBy(m, "relay_hub_d_packets_total", "Help.", "lane", laneCount)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				by.Of(datagram).Inc()
				m.Snapshot()
			}
		})
	}
	wg.Wait()
	if got := value(m, "relay_hub_d_packets_total", "datagram"); got != 4000 {
		t.Errorf("counted %v, want 4000", got)
	}
}
