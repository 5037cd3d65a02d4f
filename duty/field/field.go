package field

import (
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// Withheld stands in the place of a value that was not fit to be shown.
const Withheld = "[withheld]"

// Field is one key with one value that may be shown. The zero Field says
// nothing and is left out wherever it is given.
type Field struct {
	key  Key
	kind kind
	num  int64  // kindInt; nanoseconds of kindSeconds; Unix milliseconds of kindTime
	text string // kindText
}

type kind uint8

const (
	kindText kind = iota
	kindInt
	kindSeconds
	kindTime
	kindWithheld
)

// Key returns the field's key.
func (f Field) Key() Key { return f.key }

// IsZero reports whether the field says nothing.
func (f Field) IsZero() bool { return f.key == keyNone }

// IsWithheld reports whether the field's value was not fit to be shown.
func (f Field) IsWithheld() bool { return f.kind == kindWithheld }

// Size returns how many bytes of text the field keeps alive.
func (f Field) Size() int { return len(f.text) }

// Clone returns the field with a text of its own, so that a field kept for
// long does not keep alive the buffer its text was cut from.
func (f Field) Clone() Field {
	f.text = strings.Clone(f.text)
	return f
}

// Attr returns the field for a slog handler.
func (f Field) Attr() slog.Attr {
	switch f.kind {
	case kindInt:
		return slog.Int64(f.key.String(), f.num)
	case kindSeconds:
		return slog.Float64(f.key.String(), time.Duration(f.num).Seconds())
	}
	return slog.String(f.key.String(), f.String())
}

// String returns the value as text.
func (f Field) String() string {
	switch f.kind {
	case kindInt:
		return strconv.FormatInt(f.num, 10)
	case kindSeconds:
		return strconv.FormatFloat(time.Duration(f.num).Seconds(), 'f', -1, 64)
	case kindTime:
		return time.UnixMilli(f.num).UTC().Format(timeFormat)
	case kindWithheld:
		return Withheld
	}
	return f.text
}

// timeFormat is RFC 3339 with the milliseconds that the contract's timestamps
// have (contract §2.2).
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// Join returns the fields of all sets in order, without those that say
// nothing. Of fields with one key the last stands, in the place of the first:
// a line never has a key twice.
func Join(sets ...[]Field) []Field {
	n := 0
	for _, set := range sets {
		n += len(set)
	}
	if n == 0 {
		return nil
	}
	var at [numKeys]int // place in joined, plus one
	joined := make([]Field, 0, n)
	for _, set := range sets {
		for _, f := range set {
			switch {
			case f.IsZero():
			case at[f.key] > 0:
				joined[at[f.key]-1] = f
			default:
				joined = append(joined, f)
				at[f.key] = len(joined)
			}
		}
	}
	return joined
}
