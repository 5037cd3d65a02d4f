package contract

import "bytes"

// kept reads a value and also keeps it as the bytes that came, for records that
// the relay judges and then compares, digests or hands on unchanged.
func kept(dst *Raw, read valueReader) valueReader {
	return func(r *reader) {
		if r.broken {
			return
		}
		start := int(r.dec.InputOffset())
		for start < len(r.body) && isBeforeValue(r.body[start]) {
			start++
		}
		read(r)
		if !r.broken {
			*dst = bytes.Clone(r.body[start:r.dec.InputOffset()])
		}
	}
}

// isBeforeValue reports whether c can stand between two tokens, and so in front
// of a value.
func isBeforeValue(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', ':', ',':
		return true
	}
	return false
}
