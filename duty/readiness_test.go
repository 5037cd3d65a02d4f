package duty

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"serve.zone/relay/duty/field"
)

// fake is a duty that says what a test wants it to say.
type fake struct {
	name   string
	checks []Check
	status any
}

func (f fake) Name() string                { return f.name }
func (f fake) Checks(time.Time) []Check    { return f.checks }
func (f fake) Status() any                 { return f.status }
func (f fake) DropCustody(string)          {}
func (f fake) Drain(context.Context) error { return nil }

var _ Duty = fake{}

func TestJudge(t *testing.T) {
	check := func(name string, state State) Check { return Check{Name: name, State: state} }
	advice := func(name string, state State) Check { return Check{Name: name, State: state, Advice: true} }
	for _, row := range []struct {
		name    string
		reports []Report
		ready   bool
		against []string
	}{
		{"nothing", nil, false, nil},
		{"duties without checks", []Report{{Duty: "hub"}}, false, nil},
		{"advice alone", []Report{{"hub", []Check{advice("udp-buffers", OK)}}}, false, nil},
		{"all well", []Report{{"hub", []Check{check("a", OK)}}, {"cloudly", []Check{check("b", OK)}}}, true, nil},
		{"failing advice", []Report{{"hub", []Check{check("a", OK), advice("udp-buffers", Failing)}}}, true, nil},
		{"one failing", []Report{{"hub", []Check{check("a", OK)}}, {"cloudly", []Check{check("b", Failing), check("c", OK)}}}, false, []string{"cloudly/b"}},
		{"one pending", []Report{{"hub", []Check{check("a", Pending), check("b", OK)}}}, false, []string{"hub/a"}},
		{"one nobody judged", []Report{{"hub", []Check{{Name: "a"}, check("b", OK)}}}, false, []string{"hub/a"}},
		{"a state of nobody", []Report{{"hub", []Check{check("a", 9)}}}, false, []string{"hub/a"}},
		{"several, in order", []Report{{"z", []Check{check("b", Failing), check("a", Pending)}}, {"a", []Check{check("c", Failing)}}}, false, []string{"z/b", "z/a", "a/c"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := Judge(wall(), row.reports)
			var against []string
			for _, f := range r.Against() {
				against = append(against, f.Duty+"/"+f.Check)
			}
			if r.Ready != row.ready {
				t.Errorf("Ready = %v", r.Ready)
			}
			if diff := cmp.Diff(row.against, against, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadinessIsShown(t *testing.T) {
	r := Ask(wall(),
		fake{name: "hub", checks: []Check{
			{Name: "udp-buffers", Advice: true, State: Failing, Reason: "buffer-small", Hint: "Raise net.core.rmem_max.",
				Facts: field.List{field.Bytes(212992), field.Limit(7340032)}, Since: wall().Add(-90 * time.Second)},
			{Name: "network", State: OK, Reason: "left-over", Hint: "Left over.", Since: wall().Add(time.Second)},
		}},
		fake{name: "cloudly", checks: []Check{{Name: "session", State: Failing}, {Name: "Not a name", State: Pending, Reason: "not a name"}}},
	)
	got, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want := `{
 "ready": false,
 "findings": [
  {
   "duty": "hub",
   "check": "udp-buffers",
   "advice": true,
   "state": "failing",
   "reason": "buffer-small",
   "hint": "Raise net.core.rmem_max.",
   "facts": {
    "bytes": 212992,
    "limit": 7340032
   },
   "since": "2026-01-02T03:02:35Z",
   "ageSeconds": 90
  },
  {
   "duty": "hub",
   "check": "network",
   "advice": false,
   "state": "ok",
   "since": "2026-01-02T03:04:06Z",
   "ageSeconds": 0
  },
  {
   "duty": "cloudly",
   "check": "session",
   "advice": false,
   "state": "failing",
   "reason": "unstated",
   "ageSeconds": 0
  },
  {
   "duty": "cloudly",
   "check": "[withheld]",
   "advice": false,
   "state": "pending",
   "reason": "[withheld]",
   "ageSeconds": 0
  }
 ]
}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if empty, _ := json.Marshal(Judge(wall(), nil)); string(empty) != `{"ready":false,"findings":[]}` {
		t.Errorf("nothing is shown as %s", empty)
	}
}

func TestAfterKeepsSince(t *testing.T) {
	then, now := wall(), wall().Add(time.Minute)
	earlier := Check{Name: "session", State: Failing, Reason: "refused", Since: then}
	for _, row := range []struct {
		name  string
		check Check
		want  time.Time
	}{
		{"nothing changed", Check{Name: "session", State: Failing, Reason: "refused", Since: now}, then},
		{"another state", Check{Name: "session", State: OK, Reason: "refused", Since: now}, now},
		{"another reason", Check{Name: "session", State: Failing, Reason: "timeout", Since: now}, now},
		{"another check", Check{Name: "origin", State: Failing, Reason: "refused", Since: now}, now},
	} {
		if got := row.check.After(earlier).Since; !got.Equal(row.want) {
			t.Errorf("%s: since %v, want %v", row.name, got, row.want)
		}
	}
	if got := (Check{Name: "a", Since: now}).After(Check{Name: "a"}).Since; !got.Equal(now) {
		t.Errorf("after a check of unknown age: since %v", got)
	}
}

type HubStatus struct{ Members int }

type hidden struct{}

func TestAssemble(t *testing.T) {
	hub := &HubStatus{Members: 2}
	got, err := Assemble(
		fake{name: "zone", status: HubStatus{}}, fake{name: "hub", status: hub}, fake{name: "hub", status: HubStatus{}},
		fake{name: "Not a name", status: HubStatus{}}, fake{name: "a", status: map[string]any{}}, fake{name: "b"},
		fake{name: "c", status: hidden{}}, fake{name: "d", status: struct{ A int }{}},
	)
	want := []Section{{"hub", hub}, {"zone", HubStatus{}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	wantErr := `status: two duties are named hub
status: a duty's name is not a name
status: a: map[string]interface {} is not an exported struct type
status: b: <nil> is not an exported struct type
status: c: duty.hidden is not an exported struct type
status: d: struct { A int } is not an exported struct type`
	if err == nil || err.Error() != wantErr {
		t.Errorf("%v", err)
	}
	if got, err := Assemble(); err != nil || len(got) != 0 {
		t.Errorf("nothing: %v, %v", got, err)
	}
}
