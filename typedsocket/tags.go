package typedsocket

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// The two methods by which a TypedSocket client labels its connection
// (typedsocket.md §1.6). They are acknowledged and nothing is kept: a label
// that a client chose gives it no authority. Any other method with the
// carrier's prefix is one we do not have (typedsocket.md §4.3).
const (
	setTag    = "__typedsocket_setTag"
	removeTag = "__typedsocket_removeTag"
)

var tagPrefix = []byte("__typedsocket_")

// tag answers a request of the carrier's own methods.
func (r *Request) tag() {
	r.Erase() // it holds what the peer likes
	switch r.method {
	case setTag, removeTag:
		if !tagBounded(r.Body()) {
			r.refuseName("tag-invalid", "a tag has a name, and name and payload are within bounds")
			return
		}
		r.Answer([]byte(`{"success":true}`))
	default:
		r.RefuseMethod()
	}
}

// tagBounded reports whether the body is an object whose name is a string and
// whose name and payload are within bounds.
func tagBounded(body []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	if open, err := d.ReadToken(); err != nil || open.Kind() != '{' {
		return false
	}
	named := false
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return false
		}
		member := name.String()
		value, err := d.ReadValue()
		switch {
		case err != nil:
			return false
		case member == "name":
			named = value.Kind() == '"' && len(value) <= maxTagName
			if !named {
				return false
			}
		case len(value) > maxTagPayload:
			return false
		}
	}
	return named
}
