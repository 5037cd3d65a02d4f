package contract

import "github.com/go-json-experiment/json/jsontext"

// member is one named member of an object.
type member struct {
	name     string
	required bool
	read     valueReader
}

// required is a member that must be present.
func required(name string, read valueReader) member {
	return member{name: name, required: true, read: read}
}

// optional is a member that may be absent. Null is not absence: a member that
// may be null is read by nullable.
func optional(name string, read valueReader) member {
	return member{name: name, read: read}
}

// object reads an object with exactly these members (contract §2.3).
func object(members ...member) valueReader {
	return func(r *reader) { r.object(members, refuseOthers) }
}

// openObject reads these members and ignores all others, for documents of
// which the relay reads a part (contract §6.3). What is ignored is still held
// to design O1: no duplicate names and no lone surrogates at any depth.
func openObject(members ...member) valueReader {
	return func(r *reader) { r.object(members, judgeOthers) }
}

// onlyMembers reads these members and passes over all others unjudged, for the
// few places that read one member of a body before anything else is decided.
func onlyMembers(members ...member) valueReader {
	return func(r *reader) { r.object(members, passOthers) }
}

// answer reads a peer's accepted answer: these members are required as
// declared, others are ignored (contract O35) unless the body is read with
// strictAnswer.
func answer(members ...member) valueReader {
	return func(r *reader) {
		if r.mode&strictAnswer != 0 {
			r.object(members, refuseOthers)
		} else {
			r.object(members, judgeOthers)
		}
	}
}

// others says what becomes of members that are not declared.
type others int

const (
	refuseOthers others = iota // named as unknown
	judgeOthers                // ignored, but held to design O1
	passOthers                 // ignored whatever they hold
)

// object reads one object. Members are counted in a 64-bit set, which no shape
// of this vocabulary comes near to filling.
func (r *reader) object(members []member, rest others) {
	if !r.kind('{', "is not an object") {
		return
	}
	if _, err := r.dec.ReadToken(); err != nil {
		r.fail()
		return
	}
	var seen uint64
	var ignored map[string]bool
	for !r.broken && r.dec.PeekKind() != '}' {
		quoted, ok := r.next()
		if !ok {
			return
		}
		// The name may alias the body, which no later read writes to.
		name, paired := unquote(quoted)
		i := indexOf(members, name)
		switch {
		case !paired && rest != passOthers:
			r.add("has a member name with a lone surrogate")
			r.skip()
		case i < 0 && rest == judgeOthers:
			if ignored == nil {
				ignored = make(map[string]bool)
			}
			r.ignore(name, ignored)
		case i < 0:
			if rest == refuseOthers {
				r.unknown(name)
			}
			r.skip()
		case seen&(1<<i) != 0:
			r.addAt(members[i].name, "is given twice")
			r.skip()
		default:
			seen |= 1 << i
			r.enter(members[i].name)
			members[i].read(r)
			r.leave()
		}
	}
	if r.broken {
		return
	}
	if _, err := r.dec.ReadToken(); err != nil {
		r.fail()
		return
	}
	for i, m := range members {
		if m.required && seen&(1<<i) == 0 {
			r.addAt(m.name, "is missing")
		}
	}
}

func (r *reader) unknown(name []byte) {
	if r.mode&secretBearing != 0 || !isQuotableName(name) {
		r.add("unknown member")
		return
	}
	r.add(`unknown member "` + string(name) + `"`)
}

// skip passes over a value whose content no longer matters, because the body
// is refused already.
func (r *reader) skip() { r.next() }

// ignore passes over a member that is not read, judging it as design O1 does
// for every depth of a body that the relay reads.
func (r *reader) ignore(name []byte, ignored map[string]bool) {
	if ignored[string(name)] {
		r.add("gives an ignored member twice")
	}
	ignored[string(name)] = true
	if v, ok := r.next(); ok && !v.IsValid() {
		r.add("an ignored member repeats a name or holds a lone surrogate")
	}
}

func indexOf(members []member, name []byte) int {
	for i := range members {
		if members[i].name == string(name) {
			return i
		}
	}
	return -1
}

// list reads an array whose elements are read by read. The limit bounds memory,
// not meaning: elements beyond it are passed over and named once. Elements of a
// body that is refused already are read for their reasons and not collected, or
// many small wrong ones would cost many times their size.
func list[T any](dst *[]T, limit int, read func(*T) valueReader) valueReader {
	return func(r *reader) {
		*dst = []T{}
		r.array(limit, func(int) {
			if r.refused() {
				var none T
				read(&none)(r)
				return
			}
			var zero T
			*dst = append(*dst, zero)
			read(&(*dst)[len(*dst)-1])(r)
		})
	}
}

func (r *reader) array(limit int, element func(i int)) {
	if !r.kind('[', "is not an array") {
		return
	}
	if _, err := r.dec.ReadToken(); err != nil {
		r.fail()
		return
	}
	n := 0
	for ; !r.broken && r.dec.PeekKind() != ']'; n++ {
		if n >= limit || len(r.reasons) >= MaximumReasons {
			r.skip()
			continue
		}
		r.enterIndex(n)
		element(n)
		r.leave()
	}
	if r.broken {
		return
	}
	if _, err := r.dec.ReadToken(); err != nil {
		r.fail()
		return
	}
	if n > limit {
		r.add("has more elements than are read")
	}
}

// nullable reads null as a nil pointer and anything else by read.
func nullable[T any](dst **T, read func(*T) valueReader) valueReader {
	return func(r *reader) {
		if !r.broken && r.dec.PeekKind() == jsontext.KindNull {
			r.skip()
			*dst = nil
			return
		}
		pointer(dst, read)(r)
	}
}

// pointer reads a value into a new T, so that an optional member that is
// present can be told from one that is absent.
func pointer[T any](dst **T, read func(*T) valueReader) valueReader {
	return func(r *reader) {
		*dst = new(T)
		read(*dst)(r)
	}
}
