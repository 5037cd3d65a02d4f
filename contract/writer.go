package contract

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// appender is a value that writes itself as JSON.
type appender interface {
	AppendJSON(dst []byte) []byte
}

// objectWriter appends one object member by member, in the order of its calls.
// An optional member that is absent is simply not called for.
type objectWriter struct {
	dst     []byte
	started bool
}

func beginObject(dst []byte) objectWriter {
	return objectWriter{dst: append(dst, '{')}
}

func (w *objectWriter) end() []byte { return append(w.dst, '}') }

func (w *objectWriter) name(name string) {
	if w.started {
		w.dst = append(w.dst, ',')
	}
	w.started = true
	w.dst = append(appendString(w.dst, name), ':')
}

func (w *objectWriter) text(name, s string) {
	w.name(name)
	w.dst = appendString(w.dst, s)
}

func (w *objectWriter) secret(name string, s Secret) {
	w.name(name)
	w.dst = appendString(w.dst, s)
}

func (w *objectWriter) integer(name string, n int64) {
	w.name(name)
	w.dst = strconv.AppendInt(w.dst, n, 10)
}

func (w *objectWriter) boolean(name string, b bool) {
	w.name(name)
	w.dst = strconv.AppendBool(w.dst, b)
}

func (w *objectWriter) null(name string) {
	w.name(name)
	w.dst = append(w.dst, "null"...)
}

func (w *objectWriter) value(name string, v appender) {
	w.name(name)
	w.dst = v.AppendJSON(w.dst)
}

// writeList appends an array member; a nil list is an empty array.
func writeList[T appender](w *objectWriter, name string, list []T) {
	w.name(name)
	w.dst = append(w.dst, '[')
	for i, v := range list {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = v.AppendJSON(w.dst)
	}
	w.dst = append(w.dst, ']')
}

// writeTexts appends an array member of strings.
func writeTexts(w *objectWriter, name string, list []string) {
	w.name(name)
	w.dst = append(w.dst, '[')
	for i, s := range list {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = appendString(w.dst, s)
	}
	w.dst = append(w.dst, ']')
}

// appendString appends s as JSON.stringify writes it: only the quote, the
// backslash and U+0000 to U+001F are escaped, the latter in their short form or
// as \u00xx in lower case (contract §3). A byte that is no UTF-8 becomes U+FFFD,
// so that what is written is always JSON.
func appendString[S ~string | ~[]byte](dst []byte, s S) []byte {
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}
