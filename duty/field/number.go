package field

import (
	"math"
	"time"
)

// Integer is any integer type.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// number returns a field for n. The contract's numbers are safe integers
// (contract §2.2), so one that int64 cannot hold is an error of the caller.
func number[N Integer](key Key, n N) Field {
	if n > 0 && uint64(n) > math.MaxInt64 {
		return Field{key: key, kind: kindWithheld}
	}
	return Field{key: key, kind: kindInt, num: int64(n)}
}

// Bytes says a number of bytes.
func Bytes[N Integer](n N) Field { return number(keyBytes, n) }

// Count says a number of things.
func Count[N Integer](n N) Field { return number(keyCount, n) }

// Limit says the bound that was met, in the unit of what it bounds.
func Limit[N Integer](n N) Field { return number(keyLimit, n) }

// Revision says the revision of a table or a network.
func Revision[N Integer](n N) Field { return number(keyRevision, n) }

// Sequence says a sequence number of the contract.
func Sequence[N Integer](n N) Field { return number(keySequence, n) }

// Generation says the generation of a credential or an assignment.
func Generation[N Integer](n N) Field { return number(keyGeneration, n) }

// Seq says the number of an event in the ring of events.
func Seq[N Integer](n N) Field { return number(keySeq, n) }

// Attempt says which try this was, from 1.
func Attempt[N Integer](n N) Field { return number(keyAttempt, n) }

// Stream says the number of a stream on its socket.
func Stream[N Integer](n N) Field { return number(keyStream, n) }

// CloseCode says a WebSocket close code.
func CloseCode[N Integer](code N) Field { return number(keyCloseCode, code) }

// HTTPStatus says an HTTP status code.
func HTTPStatus[N Integer](code N) Field { return number(keyHTTPStatus, code) }

// Suppressed says how many lines of the same name were left out.
func Suppressed[N Integer](n N) Field { return number(keySuppressed, n) }

// Duration says how long something took, in seconds to the microsecond.
func Duration(d time.Duration) Field {
	return Field{key: keyDuration, kind: kindSeconds, num: int64(d.Round(time.Microsecond))}
}

// Next says how long it is until something is tried again, in seconds to the
// microsecond.
func Next(d time.Duration) Field {
	return Field{key: keyNext, kind: kindSeconds, num: int64(d.Round(time.Microsecond))}
}

// Expires says when something ends. The zero time says nothing.
func Expires(t time.Time) Field {
	if t.IsZero() {
		return Field{}
	}
	return Field{key: keyExpires, kind: kindTime, num: t.UnixMilli()}
}
