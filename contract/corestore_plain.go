package contract

import "bytes"

// plain keeps any value as the bytes that came, but holds it to design O1 at
// every depth: for members of unknown shape that the contract does not list as
// opaque.
func plain(dst *Raw) valueReader {
	return func(r *reader) {
		v, ok := r.next()
		switch {
		case !ok:
		case !v.IsValid():
			r.add("repeats a name or holds a lone surrogate")
		default:
			*dst = bytes.Clone(v)
		}
	}
}

// plainObject keeps an object as plain does.
func plainObject(dst *Raw) valueReader {
	return func(r *reader) {
		if r.kind('{', "is not an object") {
			plain(dst)(r)
		}
	}
}
