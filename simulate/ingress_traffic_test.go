package simulate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
)

func question(from, to string, limit int64, cursor string) []byte {
	request := contract.TrafficRequest{FromDayUTC: from, ToDayUTC: to, Limit: limit}
	if cursor != "" {
		request.Cursor = &cursor
	}
	return request.AppendJSON(nil)
}

func someTraffic() []TrafficBucket {
	var list []TrafficBucket
	for n, at := range [][2]string{{day1, "a.example"}, {day1, "b.example"}, {day2, "a.example"}, {day3, "a.example"}} {
		list = append(list, TrafficBucket{DayUTC: at[0], Hostname: at[1], Traffic: Traffic{Requests: int64(n) + 1, BytesIn: 10, BytesOut: 20, Connections: 1,
			Failures: BackendFailures{3, 2, 1}}})
	}
	return list
}

// R75: a simulated ingress gives pages of at most the limit, in order, with a cursor
// wherever more follows.
func TestR75_AnIngressPagesItsCounters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		i, _, c := ingressAlone(t, answers{}, func(cfg *IngressConfig) { cfg.Traffic = someTraffic() })
		read := func(from, to string, limit int64) (pages []string) {
			t.Helper()
			for cursor := ""; ; {
				page, err := contract.ReadTrafficPage([]byte(c.must(askTraffic, question(from, to, limit, cursor))))
				if err != nil {
					t.Fatal(err)
				}
				var keys []string
				for _, b := range page.Statistics {
					keys = append(keys, fmt.Sprintf("%s %s %s %d", b.DayUTC[8:], b.Hostname[:1], b.NodeID, b.Requests))
				}
				pages = append(pages, strings.Join(keys, ","))
				if page.NextCursor == nil {
					return pages
				}
				cursor = *page.NextCursor
				if strings.Contains(cursor, "example") {
					t.Errorf("the cursor %s is not opaque", cursor)
				}
			}
		}
		for want, got := range map[string][]string{
			"01 a node-a 1,01 b node-a 2|02 a node-a 3,03 a node-a 4": read(day1, day3, 2),
			"01 a node-a 1|01 b node-a 2|02 a node-a 3":               read(day1, day2, 1),
			"02 a node-a 3":                 read(day2, day2, 256),
			"":                              read("2001-01-01", "2001-01-01", 1),
			"01 b node-a 2,02 a node-a 3|x": {"01 b node-a 2,02 a node-a 3", "x"},
		} {
			if strings.Join(got, "|") != want {
				t.Errorf("pages %q, want %q", got, want)
			}
		}
		first := c.must(askTraffic, question(day1, day1, 1, ""))
		want := `{"statistics":[{"dayUtc":"2000-01-01","hostname":"a.example","nodeId":"node-a","requests":1,"bytesIn":10,"bytesOut":20,"connections":1,` +
			`"failures":{"connect":3,"handshake":2,"request":1}}],"nextCursor":"`
		if !strings.HasPrefix(first, want) {
			t.Errorf("got %s", first)
		}
		wantViolations(t, i.Violations())
	})
}

// Every wrong question is refused, and noted: the relay has to notice first.
func TestWrongTrafficQuestions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		i, _, c := ingressAlone(t, answers{}, func(cfg *IngressConfig) { cfg.Traffic = someTraffic() })
		good := question(day1, day2, 1, "")
		bad := [][]byte{
			swap(t, good, day1, "2026-13-45"), swap(t, good, `"limit":1`, `"limit":257`), swap(t, good, `"limit":1`, `"limit":0`),
			question(day2, day1, 1, ""), swap(t, good, `"limit"`, `"nodeId":"node-a","limit"`), []byte(`{}`),
		}
		for _, body := range bad {
			c.refuses(askTraffic, unread(t, string(body), contract.ReadTrafficRequest, body))
		}
		wantViolations(t, i.Violations(), repeated(TrafficQuestion, len(bad))...)

		page, err := contract.ReadTrafficPage([]byte(c.must(askTraffic, good)))
		if err != nil {
			t.Fatal(err)
		}
		given := *page.NextCursor
		const foreign = "cursor: is none that this ingress gave for these days"
		for name, body := range map[string][]byte{
			"made up":           question(day1, day2, 1, "x"),
			"changed":           question(day1, day2, 1, given[:len(given)-2]+"AA"),
			"wrapped":           question(day1, day2, 1, contract.TrafficCursor{NodeID: "node-a", Inner: given}.Text()),
			"of other days":     question(day1, day3, 1, given),
			"spelt otherwise":   question(day1, day2, 1, given[:4]+"\n"+given[4:]),
			"shorter than ours": question(day1, day2, 1, given[:10]),
		} {
			c.refuses(askTraffic, wrong{name, body, foreign, ""})
		}
		wantViolations(t, i.Violations()[len(bad):], repeated(ForeignCursor, 6)...)
		c.must(askTraffic, question(day1, day2, 256, given)) // the limit may change
	})
}

func TestCountersAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		i, err := NewIngress(IngressConfig{Wall: time.Now, NodeID: "node-a"})
		if err != nil {
			t.Fatal(err)
		}
		for n := range maximumBuckets + 2 {
			if err := i.AddTraffic(TrafficBucket{DayUTC: day2, Hostname: fmt.Sprintf("h%05d", n), Traffic: Traffic{Requests: 1}}); err != nil {
				t.Fatal(err)
			}
		}
		got := i.Counters()
		if len(got) != maximumBuckets || got[0].Hostname != "h00002" || i.traffic.dropped != 2 {
			t.Errorf("%d buckets from %s, %d dropped", len(got), got[0].Hostname, i.traffic.dropped)
		}
		much := TrafficBucket{DayUTC: day2, Hostname: "H00002", NodeID: "node-a", Traffic: Traffic{BytesIn: contract.MaximumSafeInteger}}
		for range 2 {
			if err := i.AddTraffic(much); err != nil {
				t.Fatal(err)
			}
		}
		if got := i.Counted("h00002"); got != (Traffic{Requests: 1, BytesIn: contract.MaximumSafeInteger}) {
			t.Errorf("counted %+v", got)
		}
		for name, b := range map[string]TrafficBucket{
			"day": {DayUTC: "2026-13-45", Hostname: "a"}, "hostname": {DayUTC: day1, Hostname: "*"}, "node": {DayUTC: day1, Hostname: "a", NodeID: "node-b"},
			"count": {DayUTC: day1, Hostname: "a", Traffic: Traffic{Failures: BackendFailures{Request: -1}}},
		} {
			if i.AddTraffic(b) == nil {
				t.Errorf("%s: added", name)
			}
		}
	})
}

func TestTrafficIsAtLeast(t *testing.T) {
	all := Traffic{2, 2, 2, 2, BackendFailures{2, 2, 2}}
	if !all.atLeast(all) || !cmp.Equal(all.plus(Traffic{}), all) {
		t.Error("not at least itself")
	}
	for n := range all.counts() {
		less := all
		*[]*int64{&less.Requests, &less.BytesIn, &less.BytesOut, &less.Connections, &less.Failures.Connect, &less.Failures.Handshake, &less.Failures.Request}[n] = 1
		if less.atLeast(all) || !all.atLeast(less) {
			t.Errorf("count %d is not compared", n)
		}
	}
}
