package field

import (
	"math"
	"strconv"
	"time"
)

// List is a list of fields that encodes itself as one JSON object.
type List []Field

// MarshalJSON returns what AppendJSON appends.
func (l List) MarshalJSON() ([]byte, error) { return AppendJSON(nil, l), nil }

// AppendJSON appends the fields as one JSON object, with the keys and values
// of a log line.
func AppendJSON(dst []byte, fields []Field) []byte {
	dst = append(dst, '{')
	first := true
	for _, f := range fields {
		if f.IsZero() {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(AppendString(dst, f.key.String()), ':')
		dst = f.appendValue(dst)
	}
	return append(dst, '}')
}

func (f Field) appendValue(dst []byte) []byte {
	switch f.kind {
	case kindInt:
		return strconv.AppendInt(dst, f.num, 10)
	case kindSeconds:
		s := time.Duration(f.num).Seconds()
		// JSON has no exponent-free form for every float, but every duration
		// has one: at most 292 years with 6 decimals.
		return strconv.AppendFloat(dst, math.Round(s*1e6)/1e6, 'f', -1, 64)
	}
	return AppendString(dst, f.String())
}

// AppendString appends s as a JSON string. Everything but printable ASCII is
// replaced by U+FFFD, since no text of this package has any.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ' || c > '~':
			dst = append(dst, `\ufffd`...)
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
