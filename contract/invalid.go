package contract

import (
	"strconv"
	"strings"
)

// MaximumReasons bounds how many violations of one body are listed by name.
// A hostile body can hold millions of them; an operator reads a few. The rest
// is only counted, in one last reason.
const MaximumReasons = 64

// maximumQuotedName bounds a peer's member name that is repeated in a reason.
// A misspelt or newer member is well below it; anything longer is noise or an
// attempt to carry content into a log.
const maximumQuotedName = 40

// InvalidError says that a body is not the message it should be. Nothing of
// the body was taken over.
type InvalidError struct {
	// What names the message, for example "registerClusterRelay request".
	What string
	// Reasons holds one entry for each violation, "path: rule", at most
	// MaximumReasons of them and then one "and N more". A reason names members
	// and rules and never a value (contract §2.3).
	Reasons []string
}

// LogName is what a log says of the error (duty/field.Named).
func (e *InvalidError) LogName() string { return "invalid-message" }

// Error returns one value-free line: the message, the first reason and how
// many more there are.
func (e *InvalidError) Error() string {
	text := "invalid " + e.What
	if len(e.Reasons) == 0 {
		return text
	}
	text += ": " + e.Reasons[0]
	if more := len(e.Reasons) - 1; more > 0 {
		text += " (and " + strconv.Itoa(more) + " more)"
	}
	return text
}

// step is one segment of a member path: a member name, or an element's index
// when name is empty.
type step struct {
	name  string
	index int
}

// findings collects named reasons while a value is walked. The path is kept as
// segments and only spelled out when a reason is added, so that walking a
// valid value costs nothing.
type findings struct {
	trail   []step
	reasons []string
	more    int
}

// refused reports whether a violation has been found.
func (f *findings) refused() bool { return len(f.reasons) > 0 }

func (f *findings) enter(name string) { f.trail = append(f.trail, step{name: name}) }

func (f *findings) enterIndex(i int) { f.trail = append(f.trail, step{index: i}) }

func (f *findings) leave() { f.trail = f.trail[:len(f.trail)-1] }

// add records a violation of the rule by the value the walk stands at.
func (f *findings) add(rule string) { f.addAt("", rule) }

// addAt records a violation by a member of the value the walk stands at.
func (f *findings) addAt(member, rule string) {
	if len(f.reasons) >= MaximumReasons {
		f.more++
		return
	}
	f.reasons = append(f.reasons, f.path(member)+": "+rule)
}

// path spells the position of the walk, "body" at the root.
func (f *findings) path(member string) string {
	var b strings.Builder
	for _, s := range f.trail {
		if s.name == "" {
			b.WriteByte('[')
			b.WriteString(strconv.Itoa(s.index))
			b.WriteByte(']')
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(s.name)
	}
	if member != "" {
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(member)
	}
	if b.Len() == 0 {
		return "body"
	}
	return b.String()
}

// list returns the reasons, nil when there are none.
func (f *findings) list() []string {
	if f.more == 0 {
		return f.reasons
	}
	return append(f.reasons, "and "+strconv.Itoa(f.more)+" more")
}

// isQuotableName reports whether a peer's member name may stand in a reason.
// The alphabet holds no character that could break a log line.
func isQuotableName(name []byte) bool {
	if len(name) == 0 || len(name) > maximumQuotedName {
		return false
	}
	for _, c := range name {
		if !isAlphanumeric(c) && c != '_' {
			return false
		}
	}
	return true
}
