package rig

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseMetrics(t *testing.T) {
	page := strings.Join([]string{
		`# HELP relay_a_total With a "quote" and \n.`,
		`# TYPE relay_a_total counter`,
		`relay_a_total 3`,
		`# TYPE relay_b gauge`,
		`relay_b{z="1",a="x y"} 1.5e3 1700000000000`,
		`relay_b{a="br } ace",z="\"q\"\\\n,="} -1`,
		`relay_b{a="",z="trailing",} +Inf`,
		`relay_b{a="one \"} 2"} 4`,
		`# TYPE relay_c histogram`,
		`relay_c_bucket{le="0.1"} 1`,
		`relay_c_sum 0.05`,
		`relay_c_count 1`,
		``, `# EOF`, ``,
	}, "\n")
	got, err := ParseMetrics(page)
	if err != nil {
		t.Fatal(err)
	}
	want := Metrics{
		"relay_a_total":                         3,
		`relay_b{a="x y",z="1"}`:                1500,
		`relay_b{a="br } ace",z="\"q\"\\\n,="}`: -1,
		`relay_b{a="",z="trailing"}`:            math.Inf(1),
		`relay_b{a="one \"} 2"}`:                4,
		`relay_c_bucket{le="0.1"}`:              1,
		"relay_c_sum":                           0.05,
		"relay_c_count":                         1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if value, ok := got.Value("relay_b", "z", "1", "a", "x y"); value != 1500 || !ok {
		t.Errorf("value %v, %t", value, ok)
	}
	if value, ok := got.Value("relay_b", "a", "br } ace", "z", "\"q\"\\\n,="); value != -1 || !ok {
		t.Errorf("value %v, %t", value, ok)
	}
	if _, ok := got.Value("relay_b"); ok {
		t.Error("a sample without labels where there is none")
	}
	if sum, samples := got.Sum("relay_b", "z", "1"); sum != 1500 || samples != 1 {
		t.Errorf("sum %v of %d", sum, samples)
	}
	if sum, samples := got.Sum("relay_c_count"); sum != 1 || samples != 1 {
		t.Errorf("sum %v of %d", sum, samples)
	}
	if _, samples := got.Sum("relay_b"); samples != 4 {
		t.Errorf("%d samples of relay_b", samples)
	}
}

func TestParseMetricsRefuses(t *testing.T) {
	const typed = "# TYPE a counter\n"
	for name, page := range map[string]string{
		"twice":               typed + "a 1\na 2",
		"twice, other order":  typed + `a{x="1",y="2"} 1` + "\n" + `a{y="2",x="1"} 1`,
		"no type":             "a 1",
		"type behind":         "a 1\n" + typed,
		"no value":            typed + "a",
		"no number":           typed + "a one",
		"too much":            typed + "a 1 2 3",
		"no name":             typed + `{x="1"} 1`,
		"a wrong name":        typed + "1a 1",
		"an open label":       typed + `a{x="1 1`,
		"no quotes":           typed + "a{x=1} 1",
		"a wrong escape":      typed + `a{x="\t"} 1`,
		"a label twice":       typed + `a{x="1",x="2"} 1`,
		"labels not divided":  typed + `a{x="1"y="2"} 1`,
		"a wrong label":       typed + `a{1x="1"} 1`,
		"a colon in a label":  typed + `a{x:y="1"} 1`,
		"braces do not close": typed + `a{x="1", 1`,
	} {
		if m, err := ParseMetrics(page); err == nil {
			t.Errorf("%s: read as %v", name, m)
		}
	}
}
