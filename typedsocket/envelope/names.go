package envelope

import (
	"bytes"
	"cmp"
	"slices"
)

// name is where a name of a strict level stands: in the text of the frame or,
// when it was written with escapes, in the stack's own text.
type name struct {
	at         int32 // offset of its quote in the frame
	start, end int32
	own        bool
}

// nameStack holds the names of the strict levels that are open, innermost
// last. It holds offsets, so that nothing of a frame stays reachable by it.
type nameStack struct {
	names []name
	text  []byte
}

// level is where the names of one level begin on the stack.
type level struct{ names, text int }

func (st *nameStack) open() level { return level{len(st.names), len(st.text)} }

// bytes returns the text of n, a name of the frame text.
func (st *nameStack) bytes(text []byte, n name) []byte {
	if n.own {
		return st.text[n.start:n.end]
	}
	return text[n.start:n.end]
}

// push adds a name to the innermost level lv and returns its text. raw starts
// behind the quote at offset at, and holds no lone surrogate. A name is
// compared here as long as the level is small.
func (st *nameStack) push(lv level, text []byte, at int, raw []byte, escaped bool) ([]byte, Rule) {
	count := len(st.names) - lv.names
	if count == MaxNames {
		return nil, RuleTooManyNames
	}
	n := name{at: int32(at), start: int32(at + 1), end: int32(at + 1 + len(raw))}
	if escaped {
		start := len(st.text)
		st.text, _ = unescape(st.text, raw)
		n.start, n.end, n.own = int32(start), int32(len(st.text)), true
	}
	own := st.bytes(text, n)
	if count < pairwiseNames {
		for _, other := range st.names[lv.names:] {
			if other.end-other.start == n.end-n.start && bytes.Equal(st.bytes(text, other), own) {
				return nil, RuleDuplicateName
			}
		}
	}
	st.names = append(st.names, n)
	return own, 0
}

// close ends the innermost level. It returns the offset of the first name that
// repeats an earlier one, or -1.
func (st *nameStack) close(lv level, text []byte) int {
	duplicate := -1
	if names := st.names[lv.names:]; len(names) > pairwiseNames {
		duplicate = st.firstDuplicate(names, text)
	}
	clear(st.text[lv.text:])
	st.names, st.text = st.names[:lv.names], st.text[:lv.text]
	return duplicate
}

// firstDuplicate sorts names.
func (st *nameStack) firstDuplicate(names []name, text []byte) int {
	slices.SortFunc(names, func(a, b name) int {
		if c := bytes.Compare(st.bytes(text, a), st.bytes(text, b)); c != 0 {
			return c
		}
		return cmp.Compare(a.at, b.at)
	})
	duplicate := -1
	for i := 1; i < len(names); i++ {
		same := bytes.Equal(st.bytes(text, names[i-1]), st.bytes(text, names[i]))
		if at := int(names[i].at); same && (duplicate < 0 || at < duplicate) {
			duplicate = at
		}
	}
	return duplicate
}

// emptied returns an empty stack with the memory worth keeping.
func (st *nameStack) emptied() nameStack {
	names, text := st.names[:0], st.text[:0]
	if cap(names) > keptNames {
		names = nil
	}
	if cap(text) > keptTextBytes {
		text = nil
	}
	clear(st.text)
	return nameStack{names, text}
}
