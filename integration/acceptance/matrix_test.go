package main

import (
	"maps"
	"strings"
	"testing"
)

// A small contract: rows of a room that is here, of one that comes later, and of the vocabulary.
var (
	someRows  = []row{{1, "contract", "node ids by their rule"}, {61, "hub", "keys of the network"}, {62, "hub", "directed grants"}, {81, "corestore", "closure upload"}}
	someRooms = map[string]bool{"contract": true, "hub": true, "simulate": true, "appliance": true, "integration": true, "corestore": false}
)

// function is a test of the tree with a comment that is as it should be.
func function(file, comment string) testFunc {
	f := testFunc{file: file, line: 7, comment: comment, built: true}
	f.numbers, f.sentence, _ = readComment(comment)
	return f
}

// held is a tree in which every row is held that has to be, and a run in which all of it passed.
func heldTree() (map[testID]testFunc, *results) {
	tree := map[testID]testFunc{
		{"contract", "TestR01_IDs"}:                   function("contract/id_test.go", "R01: ids are judged by their rule."),
		{"hub", "TestR61_Keys"}:                       function("hub/key_test.go", "R61: a key of the network connects."),
		{"integration/hub", "TestR61_R62_KeysGrants"}: function("integration/hub/rows_test.go", "R61, R62, B118: keys connect, grants let pass."),
		{"hub", "TestPlain"}:                          function("hub/key_test.go", "Looks around."),
	}
	ran := newResults()
	for id := range tree {
		ran.tests[id] = outcome{passed: true}
	}
	return tree, ran
}

func TestJoin(t *testing.T) {
	skipped := outcome{reason: "no tunnel here"}
	passed := outcome{passed: true}
	for name, test := range map[string]struct {
		change func(tree map[testID]testFunc, ran map[testID]outcome)
		faults []string
		lines  []string // of the page, without the places
	}{
		"all held": {nil, nil, []string{
			"R01 room TestR01_IDs", "R61 program TestR61_R62_KeysGrants", "R61 room TestR61_Keys", "R62 program TestR61_R62_KeysGrants", "B118 program TestR61_R62_KeysGrants",
		}},
		"one that did not run": {func(_ map[testID]testFunc, ran map[testID]outcome) { delete(ran, testID{"hub", "TestR61_Keys"}) },
			[]string{"hub/key_test.go:7: TestR61_Keys did not run"}, nil},
		"one without a number that did not run": {func(_ map[testID]testFunc, ran map[testID]outcome) { delete(ran, testID{"hub", "TestPlain"}) }, nil, nil},
		"one that is not built here": {func(tree map[testID]testFunc, ran map[testID]outcome) {
			f := tree[testID{"hub", "TestR61_Keys"}]
			f.built = false
			tree[testID{"hub", "TestR61_Keys"}] = f
			delete(ran, testID{"hub", "TestR61_Keys"})
		}, nil, []string{
			"R01 room TestR01_IDs", "R61 program TestR61_R62_KeysGrants", "R61 room TestR61_Keys not held: not built on the machine of the run",
			"R62 program TestR61_R62_KeysGrants", "B118 program TestR61_R62_KeysGrants",
		}},
		"one that ran and is not there": {func(_ map[testID]testFunc, ran map[testID]outcome) {
			ran[testID{"hub", "TestR62_Gone"}], ran[testID{"hub", "TestR62_Gone/R62_part"}] = passed, passed
		},
			[]string{"hub TestR62_Gone ran and is not in the tree"}, nil},
		"an example that ran": {func(_ map[testID]testFunc, ran map[testID]outcome) { ran[testID{"hub", "ExampleKey"}] = passed }, nil, nil},
		"one of two skipped": {func(_ map[testID]testFunc, ran map[testID]outcome) { ran[testID{"hub", "TestR61_Keys"}] = skipped }, nil, []string{
			"R01 room TestR01_IDs", "R61 program TestR61_R62_KeysGrants", "R61 room TestR61_Keys not held: skipped: no tunnel here",
			"R62 program TestR61_R62_KeysGrants", "B118 program TestR61_R62_KeysGrants",
		}},
		"the only one skipped": {func(_ map[testID]testFunc, ran map[testID]outcome) {
			ran[testID{"integration/hub", "TestR61_R62_KeysGrants"}] = skipped
		}, []string{"R62 (directed grants) is held by no test that ran and passed, and its room hub/ is here"}, nil},
		"a part skipped": {func(_ map[testID]testFunc, ran map[testID]outcome) {
			ran[testID{"hub", "TestR61_Keys/one"}], ran[testID{"hub", "TestR61_Keys/two"}] = passed, skipped
			ran[testID{"hub", "TestR61_Keys/two/deep"}] = skipped
		}, nil, []string{
			"R01 room TestR01_IDs", "R61 program TestR61_R62_KeysGrants", "R61 room TestR61_Keys in part: two/deep skipped: no tunnel here",
			"R62 program TestR61_R62_KeysGrants", "B118 program TestR61_R62_KeysGrants",
		}},
		"every part skipped": {func(_ map[testID]testFunc, ran map[testID]outcome) {
			ran[testID{"contract", "TestR01_IDs/one"}], ran[testID{"contract", "TestR01_IDs/two"}] = skipped, skipped
		}, []string{"R01 (node ids by their rule) is held by no test"}, nil},
		"held by a simulated peer alone": {func(tree map[testID]testFunc, ran map[testID]outcome) {
			delete(tree, testID{"contract", "TestR01_IDs"})
			delete(ran, testID{"contract", "TestR01_IDs"})
			tree[testID{"simulate", "TestR01_IDs"}], ran[testID{"simulate", "TestR01_IDs"}] = function("simulate/id_test.go", "R01: the peer judges ids, too."), passed
		}, []string{"R01 (node ids by their rule) is held by no test"}, nil},
		"no such row": {func(tree map[testID]testFunc, ran map[testID]outcome) {
			tree[testID{"hub", "TestR98_X"}], ran[testID{"hub", "TestR98_X"}] = function("hub/x_test.go", "R98: claims what is not there."), passed
		}, []string{"hub/x_test.go:7: TestR98_X bears R98, which is no row"}, nil},
		"a later row claimed": {func(tree map[testID]testFunc, ran map[testID]outcome) {
			tree[testID{"appliance", "TestR81_X"}], ran[testID{"appliance", "TestR81_X"}] = function("appliance/x_test.go", "R81: claims what is not there."), passed
		}, []string{"appliance/x_test.go:7: TestR81_X claims R81, whose room corestore/ comes later"}, nil},
		"a later row prepared": {func(tree map[testID]testFunc, ran map[testID]outcome) {
			tree[testID{"contract", "TestR81_X"}], ran[testID{"contract", "TestR81_X"}] = function("contract/x_test.go", "R81: a descriptor is read here."), passed
		}, nil, []string{
			"R01 room TestR01_IDs", "R61 program TestR61_R62_KeysGrants", "R61 room TestR61_Keys", "R62 program TestR61_R62_KeysGrants",
			"R81 room TestR81_X", "B118 program TestR61_R62_KeysGrants",
		}},
		"a package without a level": {func(tree map[testID]testFunc, ran map[testID]outcome) {
			tree[testID{"integration/x", "TestR61_X"}], ran[testID{"integration/x", "TestR61_X"}] = function("integration/x/x_test.go", "R61: stands where nobody knows."), passed
		}, []string{"integration/x/x_test.go:7: TestR61_X stands in integration/x/, whose level is not in the table"}, nil},
		"subtests with rows": {func(_ map[testID]testFunc, ran map[testID]outcome) {
			for _, part := range []string{"R01_other", "R01_id", "R62", "R61_own", "deeper/R01_x", "R98x", "R999"} {
				ran[testID{"hub", "TestR61_Keys/" + part}] = passed
			}
			ran[testID{"hub", "TestR61_Keys/R01_gone"}] = skipped
			ran[testID{"hub", "TestPlain/R62_plain"}] = passed
		}, []string{"hub/key_test.go:7: the function of TestPlain/R62_plain has a comment of 2 words"}, nil},
		"a subtest of a row that its function bears": {func(_ map[testID]testFunc, ran map[testID]outcome) {
			ran[testID{"hub", "TestR61_Keys/R61_own"}] = passed
		}, nil, []string{
			"R01 room TestR01_IDs", "R61 program TestR61_R62_KeysGrants", "R61 room TestR61_Keys", "R62 program TestR61_R62_KeysGrants", "B118 program TestR61_R62_KeysGrants",
		}},
		"subtests of one with a sentence": {func(tree map[testID]testFunc, ran map[testID]outcome) {
			tree[testID{"hub", "TestPlain"}] = testFunc{file: "hub/key_test.go", line: 9, comment: "Grants let packets pass alone.", built: true}
			for _, part := range []string{"R01_other", "R01_id", "R62", "R61_own", "deeper/R01_x", "R98x", "R999", "R62/inner"} {
				ran[testID{"hub", "TestPlain/" + part}] = passed
			}
			ran[testID{"hub", "TestPlain/R01_gone"}] = skipped
		}, nil, []string{
			"R01 room TestR01_IDs", "R01 room TestPlain/R01_gone not held: skipped: no tunnel here", "R01 room TestPlain/R01_id", "R01 room TestPlain/R01_other",
			"R01 room TestPlain/deeper/R01_x", "R61 program TestR61_R62_KeysGrants", "R61 room TestPlain/R61_own", "R61 room TestR61_Keys",
			"R62 program TestR61_R62_KeysGrants", "R62 room TestPlain/R62", "B118 program TestR61_R62_KeysGrants",
		}},
		"a subtest of no such row": {func(_ map[testID]testFunc, ran map[testID]outcome) { ran[testID{"hub", "TestR61_Keys/R98_x"}] = passed },
			[]string{"hub/key_test.go:7: TestR61_Keys/R98_x bears R98, which is no row"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tree, ran := heldTree()
			if test.change != nil {
				test.change(tree, ran.tests)
			}
			m, faults := join(someRows, someRooms, tree, ran)
			wantLines(t, "faults", faults, test.faults)
			if test.lines == nil {
				return
			}
			if got, want := strings.Join(lines(m), "\n"), strings.Join(test.lines, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// A row of a room that the architecture does not name is refused, also where it is held.
func TestJoinWantsEveryRoom(t *testing.T) {
	tree, ran := heldTree()
	rooms := maps.Clone(someRooms)
	delete(rooms, "corestore")
	_, faults := join(someRows, rooms, tree, ran)
	wantLines(t, "faults", faults, []string{"R81 is a duty of corestore/, which is not in the table of rooms"})
}

// lines are the entries of a matrix, an entry a line.
func lines(m *matrix) (list []string) {
	add := func(name string, entries []entry) {
		for _, e := range entries {
			line := name + " " + e.level.String() + " " + e.function
			if e.part != "" {
				line += "/" + e.part
			}
			switch {
			case !e.held:
				line += " not held: " + e.note
			case e.note != "":
				line += " in part: " + e.note
			}
			list = append(list, line)
		}
	}
	for _, r := range m.rows {
		add(r.name(), m.entries[r.number])
	}
	for _, number := range m.bugNumbers() {
		add(bugName(number), m.bugs[number])
	}
	return list
}
