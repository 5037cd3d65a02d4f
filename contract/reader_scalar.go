package contract

import "bytes"

// text reads a string.
func text(dst *string) valueReader {
	return func(r *reader) {
		if s, ok := r.text(); ok {
			*dst = string(s)
		}
	}
}

// secretText reads a string into bytes that its holder can wipe.
func secretText(dst *Secret) valueReader {
	return func(r *reader) {
		quoted, ok := r.quoted()
		if !ok {
			return
		}
		s, ok := r.unquote(quoted)
		switch escaped := len(s)+2 != len(quoted); {
		case ok && escaped:
			*dst = s // it is a copy already, and there shall be no second one
		case ok:
			*dst = bytes.Clone(s)
		case escaped:
			clear(s)
		}
	}
}

func (r *reader) text() ([]byte, bool) {
	quoted, ok := r.quoted()
	if !ok {
		return nil, false
	}
	return r.unquote(quoted)
}

// quoted returns the token of a string.
func (r *reader) quoted() ([]byte, bool) {
	if !r.kind('"', "is not a string") {
		return nil, false
	}
	return r.next()
}

func (r *reader) unquote(quoted []byte) ([]byte, bool) {
	s, ok := unquote(quoted)
	if !ok {
		r.add("holds a lone surrogate")
	}
	return s, ok
}

// integer reads a number whose token is a plain safe integer: digits with an
// optional minus, no fraction, no exponent, no negative zero (contract §3).
func integer(dst *int64) valueReader {
	return func(r *reader) {
		if !r.kind('0', "is not a number") {
			return
		}
		token, ok := r.next()
		if !ok {
			return
		}
		n, ok := parseSafeInteger(token)
		if !ok {
			r.add("is not a plain safe integer")
			return
		}
		*dst = n
	}
}

// boolean reads true or false.
func boolean(dst *bool) valueReader {
	return func(r *reader) {
		token, ok := r.next()
		if !ok {
			return
		}
		switch string(token) {
		case "true":
			*dst = true
		case "false":
			*dst = false
		default:
			r.add("is not a boolean")
		}
	}
}

// raw keeps any value as the bytes that came.
func raw(dst *Raw) valueReader {
	return func(r *reader) {
		if v, ok := r.next(); ok {
			*dst = Raw(bytes.Clone(v))
		}
	}
}

// rawObject keeps an object as the bytes that came.
func rawObject(dst *Raw) valueReader {
	return func(r *reader) {
		if r.kind('{', "is not an object") {
			raw(dst)(r)
		}
	}
}

// rawArray keeps an array as the bytes that came.
func rawArray(dst *Raw) valueReader {
	return func(r *reader) {
		if r.kind('[', "is not an array") {
			raw(dst)(r)
		}
	}
}
