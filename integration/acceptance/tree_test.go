package main

import (
	"path/filepath"
	"runtime"
	"testing"
)

// Every contributor is told, with the place, of a test that bears a row or a bug report and does not say what it asserts.
func TestEveryNumberedTestSaysWhatItAsserts(t *testing.T) {
	tree, faults, err := scanTree(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults {
		t.Error(fault)
	}
	numbered := 0
	for _, f := range tree {
		if !f.numbers.none() {
			numbered++
		}
	}
	if numbered == 0 {
		t.Error("found no numbered test")
	}
}

func TestScanTree(t *testing.T) {
	dir := t.TempDir()
	other := "windows"
	if runtime.GOOS == other {
		other = "linux"
	}
	for name, text := range map[string]string{
		"go.mod": "module serve.zone/relay\n",
		"hub/a_test.go": `package hub

// R61, R62: a key connects,
// and no other.
//
// More of it.
func TestR61_Key(t *testing.T) {}

func TestPlain(t *testing.T) {}

func TestR62_Silent(t *testing.T) {}

// Speaks of nothing.
func TestR62_Astray(t *testing.T) {}

// R62: speaks of another row.
func TestR63_Elsewhere(t *testing.T) {}

// R62: says too little.
func TestR62_R1_Odd(t *testing.T) {}

func (x) TestR62_Method(t *testing.T) {}

func helperR62_(t *testing.T) {}

func TestMain(m *testing.M) {}

// B118: a target like a test.
func FuzzB118_Judge(f *testing.F) {}
`,
		"hub/a.go":                                  "package hub\n\nfunc TestR62_Product() {}\n",
		"hub/tunnel/b_" + other + "_test.go":        "package tunnel_test\n\n// R61: speaks of another system.\nfunc TestR61_There(t *testing.T) {}\n",
		"hub/tunnel/b_" + runtime.GOOS + "_test.go": "package tunnel_test\n\n// R61: speaks of this system here.\nfunc TestR61_Twice(t *testing.T) {}\n",
		"hub/tunnel/tagged_test.go":                 "//go:build never\n\npackage tunnel_test\n\n// R61: speaks of a tagged one.\nfunc TestR61_Twice(t *testing.T) {}\n",
		"hub/testdata/c_test.go":                    "package c\n\nfunc TestR61_Data() {}\n",
		"hub/_old/c_test.go":                        "package c\n\nfunc TestR61_Old() {}\n",
		"node_modules/c_test.go":                    "package c\n\nfunc TestR61_Module() {}\n",
		".ci/c_test.go":                             "package c\n\nfunc TestR61_Dot() {}\n",
		"integration/peers/nested/go.mod":           "module nested\n",
		"integration/peers/nested/c_test.go":        "package c\n\nfunc TestR61_Nested() {}\n",
		"integration/peers/nested/sub/c_test.go":    "package c\n\nfunc TestR61_Nested() {}\n",
	} {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	tree, faults, err := scanTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "faults", faults, []string{
		"hub/a_test.go:11: TestR62_Silent has no comment",
		"hub/a_test.go:14: TestR62_Astray has a comment that does not begin",
		"hub/a_test.go:17: TestR63_Elsewhere bears R63, of which its comment does not speak",
		"hub/a_test.go:20: TestR62_R1_Odd bears R1;",
	})
	want := map[testID]string{
		{"hub", "TestR61_Key"}:          "a key connects, and no other.",
		{"hub", "TestPlain"}:            "",
		{"hub", "TestR62_Silent"}:       "",
		{"hub", "TestR62_Astray"}:       "",
		{"hub", "TestR63_Elsewhere"}:    "",
		{"hub", "TestR62_R1_Odd"}:       "",
		{"hub", "FuzzB118_Judge"}:       "a target like a test.",
		{"hub/tunnel", "TestR61_There"}: "speaks of another system.",
		{"hub/tunnel", "TestR61_Twice"}: "speaks of this system here.",
	}
	for id, f := range tree {
		sentence, ok := want[id]
		if !ok || f.sentence != sentence {
			t.Errorf("%s %s says %q", id.folder, id.function, f.sentence)
		}
		if f.built == (id.function == "TestR61_There") {
			t.Errorf("%s: built %v", id.function, f.built)
		}
		delete(want, id)
	}
	for id := range want {
		t.Errorf("%s %s is not found", id.folder, id.function)
	}
	if f := tree[testID{"hub", "TestR61_Key"}]; f.place() != "hub/a_test.go:7" || len(f.numbers.rows) != 2 {
		t.Errorf("%s, %v", f.place(), f.numbers)
	}

	write(t, filepath.Join(dir, "hub", "broken_test.go"), "package hub\n\nfunc {\n")
	if _, _, err := scanTree(dir); err == nil {
		t.Error("a file that does not parse is passed over")
	}
}
