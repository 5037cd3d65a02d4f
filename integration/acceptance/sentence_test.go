package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestReadName(t *testing.T) {
	for name, want := range map[string]string{
		"TestFoo":                      "[] []",
		"TestR61_Foo":                  "[61] []",
		"TestR61_R62_R61_Foo":          "[61 62] []",
		"TestR61_B193_B190_Foo":        "[61] [190 193]",
		"FuzzB118_Judge":               "[] [118]",
		"TestR51_O8_Foo":               "[51] []",
		"TestO9_Foo":                   "[] []",
		"TestR27_Foo_Bar":              "[27] []",
		"TestRoom5":                    "[] []",
		"TestIPv4":                     "[] []",
		"TestR5_Foo":                   "bears R5",
		"TestR100_Foo":                 "bears R100",
		"TestB31_Foo":                  "bears B31",
		"TestFoo_R12":                  "bears R12 behind its front",
		"TestFoo_R12_Bar":              "bears R12 behind its front",
		"TestR61_FooR12_Bar":           "bears R12 behind its front",
		"TestSomethingB031_Foo":        "bears B031 behind its front",
		"BenchmarkR12_Foo":             "[] []",
		"TestR20_UnderR2D2":            "[20] []",
		"TestR05_NumbersFrom0x10Up":    "[5] []",
		"TestR05_ABCOfNames":           "[5] []",
		"TestR93_MaximalBodiesUpTo4MB": "[93] []",
	} {
		n, err := readName(name)
		got := fmt.Sprint(n.rows, n.bugs)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestReadComment(t *testing.T) {
	for _, test := range []struct{ comment, want string }{
		{"R61: a member's key connects.\n", "[61] [] a member's key connects."},
		{"R61, R62: a member's key\nconnects: at once.\n", "[61 62] [] a member's key connects: at once."},
		{"R20–R24: what is held is gone.\n\nMore about it.\n", "[20 21 22 23 24] [] what is held is gone."},
		{"R20 to R22, R94: what is held is gone.", "[20 21 22 94] [] what is held is gone."},
		{"R27 and O37: a push ends custody.", "[27] [] a push ends custody."},
		{"R94, R94, B190: a thing that holds.", "[94] [190] a thing that holds."},
		{"R45, R48, §9.3: a hold is answered.", "[45 48] [] a hold is answered."},
		{"R52, contract §9.6: a run stays held.", "[52] [] a run stays held."},
		{"R24, design §4, O19: a run stays held.", "[24] [] a run stays held."},
		{"R63, docs/tunnel.md section 7: a thing that holds.", "[63] [] a thing that holds."},
		{"R63, docs/tunnel.md: a thing that holds.", "[63] [] a thing that holds."},
		{"B118, R63: a thing that holds.", "[63] [118] a thing that holds."},

		{"", "has no comment"},
		{"\n", "has no comment"},
		{"A member's key connects.", "does not begin with its numbers"},
		{"TestR61_Key connects a member.", "does not begin with its numbers"},
		{"Contract §9.6, R52: a run stays held.", "does not begin with its numbers"},
		{"O9: a run stays held here.", "does not begin with its numbers"},
		{"R61 a member's key connects.", "does not begin with its numbers"},
		{"R61 is held: a key connects.", "does not begin with its numbers"},
		{"R61, a key: it connects a member.", "does not begin with its numbers"},
		{"R61:", "does not begin with its numbers"},
		{"R61: connects a member.", "of 3 words"},
		{"R61: \n\nA member's key connects.", "does not begin with its numbers"},
		{"R5: a member's key connects.", "bears R5"},
		{"R614: a member's key connects.", "bears R614"},
		{"B31: a member's key connects.", "bears B31"},
		{"R24–R20: a member's key connects.", "none of rows"},
		{"R20–R20: a member's key connects.", "none of rows"},
		{"B020–B024: a member's key connects.", "none of rows"},
		{"R20 to B024: a member's key connects.", "none of rows"},
	} {
		n, sentence, err := readComment(test.comment)
		got := fmt.Sprint(n.rows, n.bugs, " ", sentence)
		if err != nil {
			got = err.Error()
		}
		if got != test.want && (err == nil || !strings.Contains(got, test.want)) {
			t.Errorf("%q: %s, want %s", test.comment, got, test.want)
		}
	}
}

func TestLacks(t *testing.T) {
	said := numbers{rows: []int{20, 21, 22}, bugs: []int{31}}
	for _, test := range []struct {
		borne numbers
		want  string
	}{
		{numbers{}, ""}, {numbers{rows: []int{20, 22}, bugs: []int{31}}, ""},
		{numbers{rows: []int{20, 23}}, "R23"}, {numbers{rows: []int{20}, bugs: []int{5}}, "B005"},
	} {
		if got := said.lacks(test.borne); got != test.want {
			t.Errorf("%v: %q, want %q", test.borne, got, test.want)
		}
	}
}
