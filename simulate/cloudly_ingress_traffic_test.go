package simulate

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// pager is a relay that answers each question for counters with the next text.
type pager struct {
	pages   []string
	cursors []string // that it was asked with
}

func (p *pager) ServeRequest(r *typedsocket.Request) {
	request, err := contract.ReadTrafficRequest(r.Body())
	if err != nil || len(p.pages) == 0 {
		r.Refuse("no", nil)
		return
	}
	cursor := ""
	if request.Cursor != nil {
		cursor = *request.Cursor
	}
	p.cursors = append(p.cursors, cursor)
	page := p.pages[0]
	p.pages = p.pages[1:]
	r.Answer([]byte(page))
}

func bucket(day, hostname, node string, requests int64) string {
	return string(TrafficBucket{DayUTC: day, Hostname: hostname, NodeID: node, Traffic: Traffic{Requests: requests, Failures: BackendFailures{1, 2, 3}}}.AppendJSON(nil))
}

func pageOf(next string, buckets ...string) string {
	if next != "" {
		next = `,"nextCursor":"` + next + `"`
	}
	return `{"statistics":[` + strings.Join(buckets, ",") + `]` + next + `}`
}

const day1, day2, day3 = "2000-01-01", "2000-01-02", "2000-01-03"

// counted is a Cloudly with two ingresses behind a pager.
func counted(t *testing.T) (*stage, *pager) {
	t.Helper()
	s, p := newStage(t, nil), &pager{}
	c := s.relay(p)
	bearer, err := s.DesignateIngress("node-a", "node-b")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"node-a", "node-b"} {
		c.must(registerIngress, ingressRegistration(id, bearer))
	}
	return s, p
}

// R75: the simulated Cloudly reads pages to the last, each at the cursor that the one
// before gave.
func TestR75_TrafficIsReadPageByPage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, p := counted(t)
		p.pages = []string{
			pageOf("one", bucket(day1, "a.example", "node-a", 1), bucket(day1, "b.example", "node-a", 2)),
			pageOf("two", bucket(day2, "a.example", "node-a", 3)),
			pageOf("three"), // an ingress with nothing to say
			pageOf("", bucket(day1, "a.example", "node-b", 4)),
		}
		got, err := s.ReadTraffic(soon(t), day1, day2, 2)
		if err != nil {
			t.Fatal(err)
		}
		of := func(day, hostname, node string, n int64) TrafficBucket {
			return TrafficBucket{day, hostname, node, Traffic{Requests: n, Failures: BackendFailures{1, 2, 3}}}
		}
		want := []TrafficBucket{of(day1, "a.example", "node-a", 1), of(day1, "b.example", "node-a", 2), of(day2, "a.example", "node-a", 3), of(day1, "a.example", "node-b", 4)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("read (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, s.Traffic()); diff != "" {
			t.Errorf("kept (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"", "one", "two", "three"}, p.cursors); diff != "" {
			t.Error(diff)
		}
		wantViolations(t, s.Violations())
		if _, err := s.ReadTraffic(soon(t), day1, day2, 2); !errors.As(err, new(*typedsocket.RemoteError)) {
			t.Errorf("refused: %v", err)
		}
		wantViolations(t, s.Violations())
	})
}

// Each wrong page, and each page that is wrong behind the one before it.
func TestWrongTrafficPages(t *testing.T) {
	good := bucket(day1, "a.example", "node-a", 1)
	const invalid = "the answer does not bind to the request: invalid getClusterTrafficStatistics answer: "
	for _, test := range []struct {
		name  string
		pages []string
		rule  Rule
		want  string
	}{
		{"no page", []string{`{}`}, TrafficPageRule, "statistics: is missing"},
		{"no day", []string{pageOf("", bucket("2026-13-45", "a", "node-a", 1))}, TrafficPageRule, "statistics[0].dayUtc: is not a utc day"},
		{"negative", []string{pageOf("", bucket(day1, "a", "node-a", -1))}, TrafficPageRule, "statistics[0].requests: is not a count"},
		{"a day outside", []string{pageOf("", bucket(day3, "a", "node-a", 1))}, TrafficPageRule, "statistics[0].dayUtc: is outside the days that were asked for"},
		{"too many", []string{pageOf("", good, bucket(day1, "b", "node-a", 1), bucket(day1, "c", "node-a", 1))}, TrafficPageRule, "statistics: has more elements than were asked for"},
		{"two nodes", []string{pageOf("", good, bucket(day1, "b", "node-b", 1))}, TrafficPageRule, "statistics[1].nodeId: is not that of the page's first bucket"},
		{"a node without an ingress", []string{pageOf("", bucket(day1, "b", "node-c", 1))}, TrafficPageRule, "statistics[0].nodeId: has no ingress whose registration was accepted"},
		{"an empty cursor", []string{`{"statistics":[],"nextCursor":""}`}, TrafficPageRule, "nextCursor: is not 1 to 5634 bytes long"},
		{"no failures", []string{pageOf("", strings.Replace(good, `"failures"`, `"novel"`, 1))}, TrafficContent, "statistics[0].failures: is missing (and 1 more)"},
		{"failures of another kind", []string{pageOf("", strings.Replace(good, `"connect":1`, `"connect":-1`, 1))}, TrafficContent, "statistics[0].failures.connect: is not a count"},
		{"a node that comes back", []string{pageOf("x", bucket(day1, "a", "node-b", 1)), pageOf("", good)}, TrafficOrder, "statistics[0].nodeId: is before that of an earlier page"},
		{"a bucket twice", []string{pageOf("x", good), pageOf("", good)}, TrafficOrder, "statistics[0]: repeats a bucket of this read"},
		{"a cursor twice", []string{pageOf("x", good), pageOf("x")}, TrafficOrder, "nextCursor: came before in this read"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, p := counted(t)
				p.pages = test.pages
				got, err := s.ReadTraffic(soon(t), day1, day2, 2)
				if !errors.Is(err, ErrAnswer) || strings.TrimPrefix(err.Error(), invalid) != test.want || got != nil {
					t.Errorf("got %v\nwant %s", err, test.want)
				}
				wantViolations(t, s.Violations(), test.rule)
				if v := s.Violations()[0]; v.Method != askTraffic || v.Socket != 1 {
					t.Errorf("%v", v)
				}
				if len(s.Traffic()) != 0 {
					t.Error("what was read before an error is kept")
				}
			})
		})
	}
}

// R75: a simulated ingress's counters of yesterday and today are read again on every
// pass. What was counted stays, and a day that was read when it had closed does not
// change.
func TestR75_CountersOnlyGrow(t *testing.T) {
	other := bucket(day1, "b.example", "node-a", 1)
	today := func(n int64) string { return pageOf("", bucket(day1, "a.example", "node-a", n), other) }
	bubble(t, func(t *testing.T) {
		s, p := counted(t)
		read := func(page string) error {
			p.pages = []string{page}
			_, err := s.ReadTraffic(soon(t), day1, day1, 9)
			return err
		}
		wrong := func(name, want string, err error) {
			t.Helper()
			if !errors.Is(err, ErrAnswer) || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s: %v", name, err)
			}
			if got := rulesOf(s.Violations()); got[len(got)-1] != TrafficWentBack {
				t.Errorf("%s: %v", name, got)
			}
		}
		for _, n := range []int64{5, 5, 6} {
			if err := read(today(n)); err != nil {
				t.Error(err)
			}
		}
		wantViolations(t, s.Violations())
		wrong("less", "bucket 0: holds less than before", read(today(5)))
		wrong("less of another count", "bucket 0: holds less than before", read(strings.Replace(today(5), `"request":3`, `"request":2`, 1)))
		wrong("a bucket is gone", "statistics: lack a bucket that was there before", read(pageOf("", other)))
		if err := read(pageOf("")); err != nil {
			t.Errorf("an ingress that has left: %v", err)
		}
		s.clock.step(24*time.Hour + dayGrace - time.Second) // not long enough for the day to be closed
		if err := read(today(7)); err != nil {
			t.Error(err)
		}
		if err := read(today(8)); err != nil {
			t.Errorf("right after midnight: %v", err)
		}
		s.clock.step(time.Second)
		for _, n := range []int64{9, 9} {
			if err := read(today(n)); err != nil {
				t.Error(err)
			}
		}
		wrong("a closed day grows", "bucket 0: has changed after its day had closed", read(today(10)))
		if n := len(s.Violations()); n != 4 {
			t.Errorf("%v", s.Violations())
		}
	})
}

func TestTrafficReadsEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, func(cfg *CloudlyConfig) { cfg.RecordLimit = -1 })
		n := 0
		s.relay(typedsocket.HandlerFunc(func(r *typedsocket.Request) {
			n++
			r.Answer([]byte(pageOf(fmt.Sprint(n))))
		}))
		if _, err := s.ReadTraffic(timeout(t, time.Hour), day1, day1, 1); !errors.Is(err, ErrAnswer) || n != maximumTrafficPages {
			t.Errorf("%d pages, %v", n, err)
		}
	})
}
