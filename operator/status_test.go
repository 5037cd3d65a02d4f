package operator

import (
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket/carriertest"
)

// line returns a line of a text, counted from 0.
func line(text string, n int) string {
	return append(strings.Split(text, "\n"), make([]string, n+1)...)[n]
}

// Odd is a section that cannot be encoded.
type Odd struct{ Ratio float64 }

// Shouting is a section whose encoding panics.
type Shouting struct{}

func (Shouting) MarshalJSON() ([]byte, error) { panic("a secret!") }

const ownSection = `"operator":{"state":"serving","address":"127.0.0.1:9465","connections":{"open":1,"limit":64},` +
	`"answers":{"open":1,"limit":16},"polls":{"open":0,"limit":16},"requests":0}`

const ownFindings = `{"duty":"operator","check":"staying","advice":true,"state":"ok","since":"2000-01-01T00:00:00Z","ageSeconds":2},` +
	`{"duty":"operator","check":"bound","advice":true,"state":"ok","facts":{"address":"127.0.0.1:9465"},"since":"2000-01-01T00:00:00Z","ageSeconds":2},` +
	`{"duty":"operator","check":"connections","advice":true,"state":"ok","facts":{"count":1,"limit":64},"since":"2000-01-01T00:00:00Z","ageSeconds":2}`

func TestStatusDocument(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			c.Build = Build{Version: "1.2.3", Revision: "abc"}
			c.Duties = []duty.Duty{says("tls", ok("certificate")), says("cloudly", unknownNode)}
		})
		time.Sleep(2 * time.Second)
		got := r.get("/status")
		want := fmt.Sprintf(`{"schema":1,"build":{"version":"1.2.3","revision":"abc","goVersion":%q},`, runtime.Version()) +
			`"start":"2000-01-01T00:00:00Z","now":"2000-01-01T00:00:02Z","draining":false,` +
			`"readiness":{"ready":false,"findings":[` +
			`{"duty":"tls","check":"certificate","advice":false,"state":"ok","since":"2000-01-01T00:00:00Z","ageSeconds":2},` +
			`{"duty":"cloudly","check":"session","advice":false,"state":"failing","reason":"relay-node-unknown","hint":"Enrol the node first.","since":"2000-01-01T00:00:00Z","ageSeconds":2},` +
			ownFindings + `]},` +
			`"duties":{"cloudly":{"fine":true},` + ownSection + `,"tls":{"fine":true}},"missing":[]}` + "\n"
		if diff := cmp.Diff(want, got.body); diff != "" {
			t.Error(diff)
		}
	})
}

func TestBuildThatNobodyKnows(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		if got := r.get("/status").body; !strings.HasPrefix(got, `{"schema":1,"build":{"version":"unknown","revision":"unknown","goVersion":"go`) {
			t.Errorf("%.100s", got)
		}
	})
}

// One duty's mistake costs its own section and no other.
func TestSectionsThatCannotBeHad(t *testing.T) {
	release := make(chan struct{})
	tests := []struct {
		name   string
		status func() any
		reason string
	}{
		{"a panic", func() any { panic("a secret!") }, "panicked"},
		{"a panic of its encoding", func() any { return Shouting{} }, "panicked"},
		{"no answer", func() any { <-release; return StubStatus{} }, "unresponsive"},
		{"no schema", func() any { return map[string]string{"a": "secret!"} }, "unusable"},
		{"nothing", func() any { return nil }, "unusable"},
		{"a number that JSON has not", func() any { return Odd{math.NaN()} }, "unusable"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			carriertest.Bubble(t, func(t *testing.T) {
				release = make(chan struct{})
				defer close(release)
				r := newRig(t, duties(&stub{name: "hub", status: test.status}, says("cloudly", ok("session"))))
				got := r.get("/status")
				var d struct {
					Duties  map[string]json.RawMessage
					Missing []missing
				}
				if err := json.Unmarshal([]byte(got.body), &d); err != nil || got.status != 200 {
					t.Fatal(got.status, err)
				}
				if diff := cmp.Diff([]missing{{Duty: "hub", Reason: test.reason}}, d.Missing); diff != "" {
					t.Error(diff)
				}
				if string(d.Duties["cloudly"]) != `{"fine":true}` || d.Duties["operator"] == nil || len(d.Duties) != 2 {
					t.Errorf("the others: %v", d.Duties)
				}
				if want := `{"duty":"hub","check":"` + test.reason + `","advice":true,"state":"failing","reason":"status",`; !strings.Contains(got.body, want) {
					t.Errorf("no finding in %s", got.body)
				}
				for _, output := range []string{got.body, r.log.String(), r.get("/events").body, r.get("/metrics").body} {
					if strings.Contains(output, "secret!") {
						t.Errorf("leaked: %s", output)
					}
				}
				if !strings.Contains(r.log.String(), `"duty":"hub"`) {
					t.Errorf("the log does not say so: %s", r.log)
				}
			})
		})
	}
}

// A duty that hangs holds one goroutine, however often it is asked, and is asked
// again once it has let go.
func TestADutyThatHangsIsAskedOnce(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		release, asked := make(chan struct{}), make(chan struct{}, 100)
		r := newRig(t, duties(&stub{name: "hub", status: func() any { asked <- struct{}{}; <-release; return StubStatus{} }}))
		before := time.Now()
		for range 3 {
			if got := r.get("/status").body; !strings.Contains(got, `"missing":[{"duty":"hub","reason":"unresponsive"}]`) {
				t.Errorf("%s", got)
			}
		}
		// The section within askWait, then the checks: they hang behind it.
		if took := time.Since(before); took != 3*2*askWait {
			t.Errorf("took %v", took)
		}
		if len(asked) != 1 {
			t.Errorf("asked %d times", len(asked))
		}
		if n := r.metrics.questions.Of(askedStatus, unresponsive).Value(); n != 3 {
			t.Errorf("counted %d", n)
		}
		close(release)
		if got := r.get("/status").body; !strings.Contains(got, `"hub":{"fine":false}`) || !strings.Contains(got, `"missing":[]`) {
			t.Errorf("after it: %s", got)
		}
	})
}

func TestDrainingIsInTheDocument(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.SetDraining()
		time.Sleep(time.Second)
		r.SetDraining()
		got := r.get("/status").body
		want := `{"duty":"operator","check":"staying","advice":false,"state":"failing","reason":"draining",` +
			`"hint":"The relay is leaving; nothing is to be done unless it should stay.","since":"2000-01-01T00:00:00Z","ageSeconds":1}`
		if !strings.Contains(got, `"draining":true`) || !strings.Contains(got, want) {
			t.Errorf("%s", got)
		}
	})
}
