package main

import (
	"slices"
	"strings"
	"time"

	"serve.zone/relay/operator/client"
)

// maximumRows is how many rows of a table are shown: two such tables and the rest are
// still one screen.
const maximumRows = 10

// maximumNames is how many nodes are named in a sentence or have a line of their own
// outside the tables.
const maximumNames = 3

// look is what the relay said of itself, and what it had said one look earlier.
type look struct {
	client.Document
	// rates has figures be shown that are differences between both.
	rates  bool
	before *client.Document // nil: none is known
}

// statusLines is the whole of what is shown of a relay.
func statusLines(l look, columns int) []line {
	s := newSheet(columns)
	l.head(s)
	s.blank()
	l.trouble(s)
	s.blank()
	l.cloudly(s)
	l.nodes(s)
	l.escrow(s)
	l.ingress(s)
	l.hub(s)
	l.certificate(s)
	return s.lines
}

// since is how long something has stood, by the relay's own clock.
func (l look) since(t time.Time) string {
	if t.IsZero() || l.Now.IsZero() {
		return nothingKnown
	}
	return ageText(l.Now.Sub(t))
}

// until is how long it is to a moment, by the relay's own clock.
func (l look) until(t time.Time) string {
	if t.IsZero() || l.Now.IsZero() {
		return nothingKnown
	}
	return ageText(t.Sub(l.Now))
}

// rate is by how much a counter grew in a second. There is none for one that began anew,
// nor over two lives of the relay, nor where its clock was set back.
func (l look) rate(before, now uint64) (float64, bool) {
	if l.before == nil || now < before || !l.before.Start.Equal(l.Start) {
		return 0, false
	}
	seconds := l.Now.Sub(l.before.Now).Seconds()
	if seconds <= 0 {
		return 0, false
	}
	return float64(now-before) / seconds, true
}

// amount writes what was carried, or how fast it is where rates are shown. known is
// whether there was such a counter one look earlier.
func (l look) amount(before uint64, known bool, now uint64) string {
	if !l.rates {
		return sizeText(now)
	}
	if rate, ok := l.rate(before, now); ok && known {
		return sizeText(rate)
	}
	return nothingKnown
}

// busy is what amount writes, for comparing: 0 where nothing is known.
func (l look) busy(before uint64, known bool, now uint64) float64 {
	if !l.rates {
		return float64(now)
	}
	if rate, ok := l.rate(before, now); ok && known {
		return rate
	}
	return 0
}

// perSecond is the head of a column with amounts.
func (l look) perSecond(head string) string {
	if l.rates {
		return head + "/s"
	}
	return head
}

// label is the heading of a part.
func label(text string) piece { return piece{strong, text} }

// missing says why a part is not shown, and reports whether it is so for a duty that
// has to be there: of one that an older relay has not, nothing is said.
func (l look) missing(s *sheet, heading, duty string) bool {
	for _, m := range l.Missing {
		if m.Duty == duty {
			s.say(label(heading), bad, "not shown: its part of the status could not be had (%s)", m.Reason)
			return true
		}
	}
	return false
}

// pick returns the indices, in order, of those of n things that matter most: all where
// there is room. more compares two of them.
func pick(n, room int, more func(i, j int) int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	if n <= room {
		return all
	}
	slices.SortStableFunc(all, more)
	chosen := all[:room]
	slices.Sort(chosen)
	return chosen
}

// first orders what is true before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// named lists names, cut where there are many.
func named(names []string) string {
	more := ""
	if n := len(names); n > maximumNames {
		names, more = names[:maximumNames], " and "+countText(uint64(n-maximumNames))+" more"
	}
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = squeeze(name, nameWidth)
	}
	return strings.Join(short, ", ") + more
}

// The widths of cells that can be long.
const (
	nameWidth    = 24
	addressWidth = 21 // IPv4 and a port
)
