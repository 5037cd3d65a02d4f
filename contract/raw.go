package contract

import (
	"fmt"
	"strconv"
)

// Raw is one JSON value kept as the bytes that came. The contract passes such
// members opaque (design O1): they are well-formed, valid UTF-8 and within
// MaximumDepth, and nothing else is known about them. A Raw read by this
// package is owned by the value it stands in.
//
// Raw prints as its length alone, because opaque members may hold grants and
// keys (contract §18). The fmt package asks no method of a value below an
// unexported field, so a struct that keeps one there must not be printed.
type Raw []byte

// IsObject reports whether the value is a JSON object.
func (r Raw) IsObject() bool { return len(r) > 0 && r[0] == '{' }

// IsArray reports whether the value is a JSON array.
func (r Raw) IsArray() bool { return len(r) > 0 && r[0] == '[' }

// IsNull reports whether the value is null.
func (r Raw) IsNull() bool { return string(r) == "null" }

// AppendJSON appends the value as it came; an empty Raw is written as null, so
// that what is written is always JSON.
func (r Raw) AppendJSON(dst []byte) []byte {
	if len(r) == 0 {
		return append(dst, "null"...)
	}
	return append(dst, r...)
}

// Format keeps the bytes out of every fmt verb that reaches it.
func (r Raw) Format(f fmt.State, _ rune) { _, _ = f.Write(r.placeholder()) }

// MarshalText keeps the bytes out of loggers and encoders.
func (r Raw) MarshalText() ([]byte, error) { return r.placeholder(), nil }

func (r Raw) placeholder() []byte {
	return []byte("[" + strconv.Itoa(len(r)) + " bytes of json]")
}

// Secret is text that must never be shown. It is bytes and not a string so
// that its holder can wipe it. The fmt package asks no method of a value below
// an unexported field, so a struct that keeps one there must not be printed.
type Secret []byte

// Zero overwrites the secret.
func (s Secret) Zero() { clear(s) }

// Format keeps the secret out of every fmt verb that reaches it.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(secretPlaceholder)) }

// MarshalText keeps the secret out of loggers and encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(secretPlaceholder), nil }

const secretPlaceholder = "[secret]"
