package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
)

// A matrix with everything that a page can show.
func everything(t *testing.T) *matrix {
	t.Helper()
	tree, ran := heldTree()
	passed, skipped := outcome{passed: true}, outcome{reason: "no <tunnel> | here"}
	add := func(folder, name, file, comment string, end outcome) {
		tree[testID{folder, name}], ran.tests[testID{folder, name}] = function(file, comment), end
	}
	add("appliance", "TestR61_AllDay", "appliance/day_test.go", "R61, B020: a key is good for *a* day_ and __two__ [or | three].", passed)
	add("hub", "TestR62_Skipped", "hub/grant_test.go", "R62: grants are looked up here.", skipped)
	add("hub", "TestR62_Parts", "hub/grant_test.go", "R62, B118: grants are looked up there.", passed)
	ran.tests[testID{"hub", "TestR62_Parts/R61_one"}], ran.tests[testID{"hub", "TestR62_Parts/R61_two"}] = passed, passed
	ran.tests[testID{"hub", "TestR62_Parts/three"}] = skipped
	add("simulate", "TestR61_Peer", "simulate/peer_test.go", "R61: the simulated node has a key.", passed)
	add("contract", "TestR82_Length", "contract/closure_test.go", "R82, R85: a length is read here.", passed)
	m, faults := join(pageRows, pageRooms, tree, ran)
	wantLines(t, "faults", faults, nil)
	return m
}

var (
	pageRows = []row{
		{1, "contract", "node ids by their rule"}, {61, "hub", "keys of the network"}, {62, "hub", "directed grants, A|B"},
		{81, "corestore", "closure upload"}, {82, "corestore", "closure restore"}, {83, "corestore", "bounds of a closure"},
		{85, "corestore", "progress of a restore"}, {92, "registry", "image pulls"},
	}
	pageRooms = map[string]bool{"contract": true, "hub": true, "simulate": true, "appliance": true, "corestore": false, "registry": false}
)

var update = flag.Bool("update", false, "write testdata/page.md anew")

func TestPage(t *testing.T) {
	const golden = "testdata/page.md"
	page := everything(t).page()
	if *update {
		write(t, filepath.FromSlash(golden), string(page))
	}
	want, err := os.ReadFile(filepath.FromSlash(golden))
	if err != nil {
		t.Fatal(err)
	}
	if how := diff.Diff(golden, want, "page", page); how != nil {
		t.Errorf("%s", how)
	}
}

// The page of one tree is always the same: maps have no order.
func TestPageIsAlwaysTheSame(t *testing.T) {
	first := everything(t).page()
	for range 50 {
		if !bytes.Equal(everything(t).page(), first) {
			t.Fatal("two pages of one tree differ")
		}
	}
}

func TestRanges(t *testing.T) {
	for _, test := range []struct {
		numbers []int
		want    string
	}{
		{nil, ""}, {[]int{2}, "R02"}, {[]int{2, 3}, "R02, R03"}, {[]int{2, 3, 4}, "R02–R04"},
		{[]int{2, 57, 58, 63, 64, 65, 66, 97}, "R02, R57, R58, R63–R66, R97"},
	} {
		var list []row
		for _, number := range test.numbers {
			list = append(list, row{number: number})
		}
		if got := ranges(list); got != test.want {
			t.Errorf("%v: %s, want %s", test.numbers, got, test.want)
		}
	}
}

// What a sentence holds shows as it stands, whatever Markdown would make of it.
func TestPlain(t *testing.T) {
	text := "`a` *b* <c> [d](e) _f_ \\g __h | i_j"
	want := "\\`a\\` \\*b\\* \\<c> \\[d](e) \\_f_ \\\\g \\__h | i_j"
	if got := plain(text); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := cell("a | b"); got != `a \| b` {
		t.Error(got)
	}
	if strings.ContainsAny(plain("no mark up"), `\`) {
		t.Error("plain text is changed")
	}
}
