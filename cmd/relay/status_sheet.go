package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// style is what a piece of text looks like where there is colour. Without, nothing is
// lost: a style says nothing that the text does not.
type style uint8

const (
	normal style = iota
	strong       // a heading
	faint        // what is read last
	good
	doubtful
	bad
)

// Select Graphic Rendition (ECMA-48 §8.3.117) of each style.
var styles = [...]string{strong: "\x1b[1m", faint: "\x1b[2m", good: "\x1b[32m", doubtful: "\x1b[33m", bad: "\x1b[31m"}

// plainStyle ends every style.
const plainStyle = "\x1b[0m"

// piece is a part of a line in one style.
type piece struct {
	style style
	text  string
}

// line is a line, without its end.
type line []piece

// text writes a line, with styles where there is colour.
func (l line) text(colour bool) string {
	var b strings.Builder
	for _, p := range l {
		if colour && p.style != normal {
			b.WriteString(styles[p.style] + p.text + plainStyle)
			continue
		}
		b.WriteString(p.text)
	}
	return b.String()
}

// The widths of a sheet, in columns.
const (
	// widest is how wide a sheet is that may be as wide as it likes.
	widest = 100
	// narrowest is the least width that tables are made for.
	narrowest = 60
	// margin is where text stands beside its label.
	margin = 13
	// tableIndent is where tables begin: they need the width.
	tableIndent = 2
	// columnGap is what stands between two columns of a table.
	columnGap = 2
)

// sheet composes lines of which none is wider than its columns, whatever is put on it,
// and of which no character makes a terminal do anything.
type sheet struct {
	columns int
	lines   []line
}

// newSheet returns an empty one for a terminal of that width, 0 for none.
func newSheet(columns int) *sheet {
	if columns == 0 {
		columns = widest
	}
	return &sheet{columns: min(max(columns, narrowest), widest)}
}

// add adds a line, and leaves out what there is no room for. Everything on a sheet has
// come by here.
func (s *sheet) add(pieces ...piece) {
	left := s.columns
	var l line
	for i, p := range pieces {
		p.text = printable(p.text)
		if i == len(pieces)-1 {
			p.text = strings.TrimRight(p.text, " ")
		}
		if n := utf8.RuneCountInString(p.text); n > left {
			p.text = cut(p.text, left)
		}
		if left -= utf8.RuneCountInString(p.text); p.text != "" {
			l = append(l, p)
		}
	}
	s.lines = append(s.lines, l)
}

// blank adds an empty line, unless there is one or nothing above it.
func (s *sheet) blank() {
	if n := len(s.lines); n > 0 && len(s.lines[n-1]) > 0 {
		s.lines = append(s.lines, nil)
	}
}

// say adds a text beside a label, in as many lines as it needs.
func (s *sheet) say(l piece, st style, format string, args ...any) {
	l.text = fmt.Sprintf("%-*s", margin, l.text)
	for _, part := range wrap(fmt.Sprintf(format, args...), s.columns-margin) {
		s.add(l, piece{st, part})
		l = piece{text: strings.Repeat(" ", margin)}
	}
}

// under adds a text below one that has a label.
func (s *sheet) under(st style, format string, args ...any) { s.say(piece{}, st, format, args...) }

// table adds rows under a head, a cell to a column. Columns whose head begins with a
// space stand to the right. It adds nothing without a row.
func (s *sheet) table(head []string, rows [][]piece) {
	if len(rows) == 0 {
		return
	}
	widths := make([]int, len(head))
	for i := range head {
		widths[i] = utf8.RuneCountInString(strings.TrimSpace(head[i]))
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].text))
		}
	}
	put := func(cells []piece) {
		l := make([]piece, 0, len(cells))
		gap := tableIndent
		for i, c := range cells {
			fill := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text))
			if strings.HasPrefix(head[i], " ") {
				c.text = fill + c.text
			} else {
				c.text += fill
			}
			c.text = strings.Repeat(" ", gap) + c.text
			l, gap = append(l, c), columnGap
		}
		s.add(l...)
	}
	top := make([]piece, len(head))
	for i := range head {
		top[i] = piece{faint, strings.TrimSpace(head[i])}
	}
	put(top)
	for _, row := range rows {
		put(row)
	}
}

// more says how many rows of a table were left out.
func (s *sheet) more(n int) {
	if n > 0 {
		s.add(piece{faint, strings.Repeat(" ", tableIndent) + fmt.Sprintf("and %d more; --json shows all", n)})
	}
}

// wrap breaks a text between words into lines of at most so many characters, as long as
// no word is longer. A number and its unit are one word.
func wrap(text string, width int) []string {
	var words []string
	for word := range strings.FieldsSeq(text) {
		if n := len(words); n > 0 && isUnit(word) {
			words[n-1] += " " + word
			continue
		}
		words = append(words, word)
	}
	lines := []string{""}
	for _, word := range words {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

// isUnit reports whether a word is a unit of sizeText, with or without what follows it.
func isUnit(word string) bool {
	word = strings.TrimSuffix(strings.TrimRight(word, ",;:."), "/s")
	return word == "B" || len(word) == 3 && strings.HasSuffix(word, "iB")
}

// leftOut stands where a text was cut.
const leftOut = ".."

// cut leaves out the end of a text that is longer than so many characters.
func cut(text string, width int) string {
	runes := []rune(text)
	switch {
	case len(runes) <= width:
		return text
	case width < len(leftOut):
		return ""
	}
	return string(runes[:width-len(leftOut)]) + leftOut
}

// squeeze leaves out the middle of a name that is longer than so many characters: those
// of one cluster differ at their ends.
func squeeze(name string, width int) string {
	runes := []rune(name)
	if len(runes) <= width {
		return name
	}
	end := (width - len(leftOut)) / 2
	return string(runes[:width-len(leftOut)-end]) + leftOut + string(runes[len(runes)-end:])
}
