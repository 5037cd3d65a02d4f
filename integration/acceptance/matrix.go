package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// An entry is a test as it stands beside a row or a bug report.
type entry struct {
	level    level
	function string
	part     string // the path of a subtest, where the row is borne by that
	file     string
	sentence string
	held     bool   // it ran and passed
	note     string // of what was not run; in an entry that is not held, why
}

// A matrix is what the page shows: which tests stand beside each row and each bug report.
type matrix struct {
	rows    []row
	here    map[string]bool // by room
	entries map[int][]entry // by row
	bugs    map[int][]entry
}

// held tells whether a test of the relay, or of a part of it, stands beside a row and passed.
func (m *matrix) held(r row) bool {
	return slices.ContainsFunc(m.entries[r.number], func(e entry) bool { return e.held && e.level != peer })
}

// A builder puts the tests of the tree and what became of them beside the rows.
type builder struct {
	matrix
	tree   map[testID]testFunc
	ran    *results
	parts  map[testID][]testID // the subtests of a function that have none themselves
	known  map[int]row
	faults []string
}

// join returns the matrix, and every reason why there is none.
func join(rows []row, rooms map[string]bool, tree map[testID]testFunc, ran *results) (*matrix, []string) {
	b := &builder{
		matrix: matrix{rows: rows, here: rooms, entries: map[int][]entry{}, bugs: map[int][]entry{}},
		tree:   tree, ran: ran, parts: partsOf(ran), known: map[int]row{},
	}
	for _, r := range rows {
		b.known[r.number] = r
		if _, ok := rooms[r.room]; !ok {
			b.fault("%s is a duty of %s/, which is not in the table of rooms of docs/architecture.md", r.name(), r.room)
		}
	}
	for id, f := range tree {
		if !f.numbers.none() {
			b.place(id, f)
		}
	}
	for id := range ran.tests {
		b.placeSubtest(id)
	}
	for _, r := range rows {
		if b.here[r.room] && !b.held(r) {
			b.fault("%s (%s) is held by no test that ran and passed, and its room %s/ is here", r.name(), r.title, r.room)
		}
	}
	for _, list := range []map[int][]entry{b.entries, b.bugs} {
		for _, entries := range list {
			slices.SortFunc(entries, func(x, y entry) int {
				return cmp.Or(cmp.Compare(x.level, y.level), cmp.Compare(x.file, y.file), cmp.Compare(x.function, y.function),
					cmp.Compare(x.part, y.part))
			})
		}
	}
	slices.Sort(b.faults)
	return &b.matrix, b.faults
}

func (b *builder) fault(format string, args ...any) {
	b.faults = append(b.faults, fmt.Sprintf(format, args...))
}

// partsOf finds the subtests in which something happened: those that no other one stands below.
func partsOf(ran *results) map[testID][]testID {
	above := map[testID]bool{}
	for id := range ran.tests {
		if at := strings.LastIndex(id.function, "/"); at >= 0 {
			above[testID{id.folder, id.function[:at]}] = true
		}
	}
	parts := map[testID][]testID{}
	for id := range ran.tests {
		if top := id.top(); top != id && !above[id] {
			parts[top] = append(parts[top], id)
		}
	}
	return parts
}

// top is the function that a subtest belongs to.
func (id testID) top() testID {
	function, _, _ := strings.Cut(id.function, "/")
	return testID{id.folder, function}
}

// place puts a function of the tree beside its numbers.
func (b *builder) place(id testID, f testFunc) {
	e := entry{function: id.function, file: f.file, sentence: f.sentence}
	end, ran := b.ran.tests[id]
	switch {
	case !ran && f.built:
		b.fault("%s: %s did not run", f.place(), id.function)
	case !ran:
		e.note = "not built on the machine of the run"
	case end.passed:
		e.held, e.note = b.judgeParts(id)
	default:
		e.note = "skipped: " + end.reason
	}
	b.put(id, f, e, f.numbers)
}

// judgeParts tells whether anything of a test that passed was not skipped, and names what was.
func (b *builder) judgeParts(id testID) (held bool, note string) {
	var notes []string
	parts := b.parts[id]
	for _, part := range parts {
		if end := b.ran.tests[part]; !end.passed {
			notes = append(notes, fmt.Sprintf("%s skipped: %s", strings.TrimPrefix(part.function, id.function+"/"), end.reason))
		}
	}
	slices.Sort(notes)
	return len(parts) == 0 || len(notes) < len(parts), strings.Join(notes, "; ")
}

// placeSubtest puts a subtest beside the row that its own name begins with, unless its function has that row anyway.
func (b *builder) placeSubtest(id testID) {
	f, ok := b.tree[id.top()]
	if !ok {
		if isTest(id.function) && id == id.top() {
			b.fault("%s %s ran and is not in the tree", id.folder, id.function)
		}
		return
	}
	_, part, is := strings.Cut(id.function, "/")
	own := numberedSubtest.FindStringSubmatch(part[strings.LastIndex(part, "/")+1:])
	if !is || own == nil {
		return
	}
	var n numbers
	if err := n.add(own[1][:1], own[1][1:]); err != nil || f.numbers.lacks(n) == "" {
		return
	}
	if f.sentence == "" {
		var err error
		if f.sentence, err = readSentence(f.comment); err != nil {
			b.fault("%s: the function of %s %v", f.place(), id.function, err)
			return
		}
	}
	end := b.ran.tests[id]
	e := entry{function: id.top().function, part: part, file: f.file, sentence: f.sentence, held: end.passed}
	if !end.passed {
		e.note = "skipped: " + end.reason
	}
	b.put(id, f, e, n)
}

// put adds an entry to each of the numbers, if they may stand there.
func (b *builder) put(id testID, f testFunc, e entry, n numbers) {
	l, ok := levelOf(id.folder)
	if !ok {
		b.fault("%s: %s stands in %s/, whose level is not in the table of integration/acceptance", f.place(), id.function, id.folder)
	}
	e.level = l
	inGround := slices.ContainsFunc(ground, func(room string) bool { return id.folder == room || strings.HasPrefix(id.folder, room+"/") })
	for _, number := range n.rows {
		r, known := b.known[number]
		here, listed := b.here[r.room]
		switch {
		case !known:
			b.fault("%s: %s bears %s, which is no row", f.place(), id.function, rowName(number))
		case listed && !here && !inGround:
			b.fault("%s: %s claims %s, whose room %s/ comes later by docs/architecture.md", f.place(), id.function, r.name(), r.room)
		default:
			b.entries[number] = append(b.entries[number], e)
		}
	}
	for _, number := range n.bugs {
		b.bugs[number] = append(b.bugs[number], e)
	}
}

// bugNumbers are the reports that some test bears, in order.
func (m *matrix) bugNumbers() []int { return slices.Sorted(maps.Keys(m.bugs)) }
