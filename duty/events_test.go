package duty

import (
	"encoding/json"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"serve.zone/relay/duty/field"
)

const (
	nodeBound      EventType = "node-bound"
	custodyDropped EventType = "custody-dropped"
)

var forwardKinds = []EventKind{
	{nodeBound, "forward", slog.LevelInfo, "A node's registration was accepted."},
}

var cloudlyKinds = []EventKind{
	{custodyDropped, "cloudly", slog.LevelWarn, "Everything held for the nodes was dropped."},
}

func catalogue(t testing.TB) *Catalogue {
	t.Helper()
	c, err := NewCatalogue(forwardKinds, cloudlyKinds)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCatalogue(t *testing.T) {
	if diff := cmp.Diff([]EventKind{cloudlyKinds[0], forwardKinds[0]}, catalogue(t).Kinds()); diff != "" {
		t.Error(diff)
	}
	for _, row := range []struct {
		name string
		kind EventKind
		want string
	}{
		{"a type of another duty", EventKind{nodeBound, "hub", slog.LevelInfo, "Says."}, "events: node-bound is declared by forward and by hub"},
		{"a type that is no name", EventKind{"Node bound", "hub", slog.LevelInfo, "Says."}, "events: a type of hub is not a name"},
		{"a duty that is no name", EventKind{"member-up", "", slog.LevelInfo, "Says."}, "events: the duty of member-up is not a name"},
		{"a level between two", EventKind{"member-up", "hub", slog.LevelInfo + 1, "Says."}, "events: the level of member-up is none of the four"},
		{"no sentence", EventKind{"member-up", "hub", slog.LevelInfo, ""}, "events: member-up has no sentence"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, err := NewCatalogue(forwardKinds, []EventKind{row.kind})
			if c != nil || err == nil || err.Error() != row.want {
				t.Errorf("%v, %v", c, err)
			}
		})
	}
}

func TestPublish(t *testing.T) {
	var out output
	e := NewEvents(EventsConfig{Catalogue: catalogue(t), Wall: wall, Log: NewLogger(LogConfig{Out: &out, Wall: wall})})
	if seq := e.Publish(nodeBound, field.Node("worker-1"), field.Generation(3), field.Method("not a method")); seq != 1 {
		t.Errorf("the first event has number %d", seq)
	}
	if seq := e.Publish(custodyDropped, field.Refusal("relay-node-foreign")); seq != 2 {
		t.Errorf("the second event has number %d", seq)
	}
	e.Publish("never-declared")

	got, err := json.Marshal(e.Since(0))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"events":[` +
		`{"seq":1,"time":"2026-01-02T03:04:05Z","type":"node-bound","duty":"forward","level":"INFO","fields":{"node":"worker-1","generation":3,"method":"[withheld]"}},` +
		`{"seq":2,"time":"2026-01-02T03:04:05Z","type":"custody-dropped","duty":"cloudly","level":"WARN","fields":{"refusal":"relay-node-foreign"}},` +
		`{"seq":3,"time":"2026-01-02T03:04:05Z","type":"undeclared-event","level":"WARN"}],"lost":0,"next":4,"start":"2026-01-02T03:04:05Z"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	wantLog := head("INFO", "node-bound") + `,"duty":"forward","seq":1,"node":"worker-1","generation":3,"method":"[withheld]"}` + "\n" +
		head("WARN", "custody-dropped") + `,"duty":"cloudly","seq":2,"refusal":"relay-node-foreign"}` + "\n" +
		head("WARN", "undeclared-event") + `,"seq":3}` + "\n"
	if diff := cmp.Diff(wantLog, out.String()); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]float64{
		"relay_events_published_records_total":   3,
		"relay_events_undeclared_records_total":  1,
		"relay_events_withheld_values_total":     1,
		"relay_events_held_records":              3,
		"relay_events_overwritten_records_total": 0,
	} {
		if got := value(e.Metrics(), name); got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
}

func TestEventsAreBounded(t *testing.T) {
	e := NewEvents(EventsConfig{Wall: wall, Count: 3, Bytes: 1 << 20})
	for range 5 {
		e.Publish(nodeBound)
	}
	page := e.Since(2)
	if len(page.Events) != 3 || page.Events[0].Seq != 3 || page.Lost != 1 || page.Next != 6 {
		t.Errorf("bound in count: %d events, %+v", len(page.Events), page)
	}
	if got := value(e.Metrics(), "relay_events_overwritten_records_total"); got != 2 {
		t.Errorf("overwritten %v, want 2", got)
	}

	long := field.Path("/" + strings.Repeat("a/", 100) + "b")
	e = NewEvents(EventsConfig{Wall: wall, Count: 100, Bytes: 1000})
	for range 10 {
		e.Publish(nodeBound, long)
	}
	page = e.Since(1)
	if len(page.Events) != 2 || page.Lost != 8 {
		t.Errorf("bound in bytes: %d events, %d lost", len(page.Events), page.Lost)
	}
	if got := value(e.Metrics(), "relay_events_held_bytes"); got != 2*(eventCost+fieldCost+202) {
		t.Errorf("held %v bytes", got)
	}

	many := make([]field.Field, 0, 64)
	for range 4 {
		many = append(many, field.Node("a"), field.Method("a"), field.Role("a"), field.Outcome("a"), field.Refusal("a"), field.Reason("a"),
			field.State("a"), field.Duty("a"), field.Event("a"), field.Check("a"), field.Source("a"), field.Host("a"), field.Path("a"),
			field.Bytes(1), field.Count(1), field.Limit(1), field.Revision(1), field.Sequence(1))
	}
	e = NewEvents(EventsConfig{Wall: wall})
	e.Publish(nodeBound, many...)
	if got := len(e.Since(1).Events[0].Fields); got != maxEventFields {
		t.Errorf("%d fields, want %d", got, maxEventFields)
	}
	if got := value(e.Metrics(), "relay_events_cut_fields_total"); got != 2 {
		t.Errorf("cut %v fields, want 2", got)
	}
}

// A page stays what it was when its events are overwritten.
func TestPagesAreTheReadersOwn(t *testing.T) {
	e := NewEvents(EventsConfig{Count: 4})
	for i := range 40 {
		first := e.Publish(nodeBound, field.Node("worker-1"))
		page := e.Since(first)
		for range 4 + i%4 { // at every fill of the ring's memory
			e.Publish(nodeBound)
		}
		if got := page.Events[0]; got.Seq != first || len(got.Fields) != 1 {
			t.Errorf("event %d became %+v", first, got)
		}
	}
}

func TestSinceAskedFromAnEarlierLife(t *testing.T) {
	e := NewEvents(EventsConfig{})
	if page := e.Since(900); len(page.Events) != 0 || page.Events == nil || page.Lost != 0 || page.Next != 1 {
		t.Errorf("before the first event: %+v", page)
	}
	e.Publish(nodeBound)
	if page := e.Since(900); len(page.Events) != 0 || page.Lost != 0 || page.Next != 2 {
		t.Errorf("after it: %+v", page)
	}
}

// oracle is the ring as it would be with memory without end: every event
// ever published, and what may still be held derived from the whole.
type oracle struct {
	all                []Event
	maxCount, maxBytes int
}

func (o *oracle) firstHeld() uint64 {
	bytes, count := 0, 0
	for i := len(o.all) - 1; i >= 0; i-- {
		bytes += cost(o.all[i])
		count++
		if count > 1 && (count > o.maxCount || bytes > o.maxBytes) {
			return o.all[i].Seq + 1
		}
	}
	return 1
}

func (o *oracle) since(seq uint64) (events []Event, lost uint64) {
	seq = max(seq, 1)
	first := o.firstHeld()
	for _, e := range o.all {
		switch {
		case e.Seq < seq:
		case e.Seq < first:
			lost++
		default:
			events = append(events, e)
		}
	}
	return events, lost
}

func TestRingAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxCount := rapid.IntRange(1, 12).Draw(t, "count")
		maxBytes := rapid.IntRange(1, 3000).Draw(t, "bytes")
		r := ring{maxCount: maxCount, maxBytes: maxBytes}
		o := oracle{maxCount: maxCount, maxBytes: maxBytes}
		overwritten := 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				var e Event
				for n := rapid.IntRange(0, 3).Draw(t, "fields"); n > 0; n-- {
					e.Fields = append(e.Fields, field.Node(strings.Repeat("n", rapid.IntRange(1, 128).Draw(t, "length"))))
				}
				seq, n := r.push(e)
				overwritten += n
				e.Seq = uint64(len(o.all)) + 1
				o.all = append(o.all, e)
				if seq != e.Seq {
					t.Fatalf("number %d, want %d", seq, e.Seq)
				}
			},
			"since": func(t *rapid.T) {
				seq := rapid.Uint64Range(0, uint64(len(o.all))+3).Draw(t, "seq")
				got, lost := r.since(seq)
				want, wantLost := o.since(seq)
				if lost != wantLost {
					t.Fatalf("since %d: lost %d, want %d", seq, lost, wantLost)
				}
				if len(got) != len(want) {
					t.Fatalf("since %d: %d events, want %d", seq, len(got), len(want))
				}
				for i := range got {
					if got[i].Seq != want[i].Seq || len(got[i].Fields) != len(want[i].Fields) {
						t.Fatalf("since %d: event %d is %+v", seq, i, got[i])
					}
				}
			},
			"": func(t *rapid.T) {
				if held := len(o.all) - overwritten; held != len(r.held) {
					t.Fatalf("%d held, want %d", len(r.held), held)
				}
				bytes := 0
				for _, e := range r.held {
					bytes += cost(e)
				}
				if bytes != r.bytes || len(r.held) > 1 && (len(r.held) > maxCount || bytes > maxBytes) {
					t.Fatalf("%d events of %d bytes, counted as %d", len(r.held), bytes, r.bytes)
				}
			},
		})
	})
}

// A watcher sees every event once, in order, however fast they come, and
// nobody who publishes waits for it.
func TestChangedWakesEveryWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewEvents(EventsConfig{})
		const watchers, events = 3, 200
		var wg sync.WaitGroup
		for range watchers {
			wg.Go(func() {
				for next := uint64(1); next <= events; {
					changed := e.Changed()
					page := e.Since(next)
					for i, event := range page.Events {
						if event.Seq != next+uint64(i) {
							t.Errorf("event %d came as %d", next+uint64(i), event.Seq)
						}
					}
					if next = page.Next; next <= events {
						<-changed
					}
				}
			})
		}
		for i := range events {
			e.Publish(nodeBound)
			if i%50 == 0 {
				time.Sleep(time.Second)
			}
		}
		wg.Wait()
	})
}

func TestPublishConcurrently(t *testing.T) {
	var out output
	e := NewEvents(EventsConfig{Catalogue: catalogue(t), Count: 64, Log: NewLogger(LogConfig{Out: &out})})
	var wg sync.WaitGroup
	seen := make([]map[uint64]bool, 8)
	for i := range seen {
		seen[i] = map[uint64]bool{}
		wg.Go(func() {
			for range 100 {
				seen[i][e.Publish(nodeBound, field.Node("a"))] = true
				e.Since(1)
			}
		})
	}
	wg.Wait()
	all := map[uint64]bool{}
	for _, s := range seen {
		for seq := range s {
			all[seq] = true
		}
	}
	if len(all) != 800 || !all[1] || !all[800] {
		t.Errorf("%d distinct numbers, want 1 to 800", len(all))
	}
	page := e.Since(1)
	if len(page.Events) != 64 || page.Lost != 736 || page.Events[63].Seq != 800 {
		t.Errorf("%d events, %d lost", len(page.Events), page.Lost)
	}
}

// An event must not keep alive the frame its texts were cut from.
func TestEventsKeepTextsOfTheirOwn(t *testing.T) {
	frame := []byte(`{"nodeId":"worker-1"}`)
	part := frame[11:19]
	node := unsafe.String(&part[0], len(part)) // as a careless caller might
	e := NewEvents(EventsConfig{})
	e.Publish(nodeBound, field.Node(node))
	clear(frame)
	if got := e.Since(1).Events[0].Fields[0].String(); got != "worker-1" {
		t.Errorf("the field now says %q", got)
	}
}

// Whoever publishes at the same time: times go in the order of the numbers.
func TestTimesGoInTheOrderOfNumbers(t *testing.T) {
	catalogue, err := NewCatalogue([]EventKind{{Type: "x-happened", Duty: "x", Says: "It happened."}})
	if err != nil {
		t.Fatal(err)
	}
	var clock atomic.Int64
	e := NewEvents(EventsConfig{Catalogue: catalogue, Wall: func() time.Time {
		now := time.UnixMicro(clock.Add(1))
		runtime.Gosched() // others go on with a later time
		return now
	}})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				e.Publish("x-happened")
			}
		})
	}
	all.Wait()
	events := e.Since(0).Events
	for i := 1; i < len(events); i++ {
		if !events[i].Time.After(events[i-1].Time) {
			t.Fatalf("event %d is of %s, the one before of %s", events[i].Seq, events[i].Time, events[i-1].Time)
		}
	}
	if len(events) != 1600 {
		t.Errorf("%d events", len(events))
	}
}
