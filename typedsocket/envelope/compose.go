package envelope

import (
	"slices"
	"strconv"
	"unicode/utf8"
)

// An envelope is composed around the bytes of a body: head, body, tail. Head
// and tail are appended apart, so that both can be put around bytes that
// already lie in a buffer. Members stand in the order TypedRequest writes
// them, and localData is never written.

// AppendRequestHead appends what stands before the body of a request.
func AppendRequestHead(dst []byte, method string) []byte {
	dst = append(dst, `{"method":`...)
	dst = AppendString(dst, method)
	return append(dst, `,"request":`...)
}

// AppendRequestTail appends what stands behind the body of a request. Both ids
// must have text: TypedRequest drops an envelope with an empty one.
func AppendRequestTail(dst []byte, id, instance string) []byte {
	dst = append(dst, `,"response":null,"requestInstanceId":`...)
	dst = AppendString(dst, instance)
	dst = append(dst, `,"correlation":{"id":`...)
	dst = AppendString(dst, id)
	return append(dst, `,"phase":"request"}}`...)
}

// AppendResponseHead appends what stands before the body of an answer.
func AppendResponseHead(dst []byte, method string) []byte {
	dst = append(dst, `{"method":`...)
	dst = AppendString(dst, method)
	return append(dst, `,"request":null,"response":`...)
}

// AppendResponseTail appends what stands behind the body of an answer. The ids
// are the JSON strings of the request, echoed as they came; instanceToken is
// nil when the request had none, as TypedRequest 3 sends it. errorValue and
// retryValue are JSON objects, or nil to leave the member out: null is no
// value TypedRequest takes there.
func AppendResponseTail(dst, idToken, instanceToken, errorValue, retryValue []byte) []byte {
	if instanceToken != nil {
		dst = append(dst, `,"requestInstanceId":`...)
		dst = append(dst, instanceToken...)
	}
	dst = append(dst, `,"correlation":{"id":`...)
	dst = append(dst, idToken...)
	dst = append(dst, `,"phase":"response"}`...)
	dst = slices.Grow(dst, len(`,"error":,"retry":}`)+len(errorValue)+len(retryValue)) // as AppendError does
	if errorValue != nil {
		dst = append(dst, `,"error":`...)
		dst = append(dst, errorValue...)
	}
	if retryValue != nil {
		dst = append(dst, `,"retry":`...)
		dst = append(dst, retryValue...)
	}
	return append(dst, '}')
}

// AppendError appends an error value. data is JSON; nil is written as {}, as
// TypedRequest does. Memory that dst outgrows gets no part of data: whoever zeroes what
// is returned leaves nothing of it.
func AppendError(dst []byte, text string, data []byte) []byte {
	dst = append(dst, `{"text":`...)
	dst = AppendString(dst, text)
	dst = slices.Grow(dst, len(`,"data":{}}`)+len(data))
	dst = append(dst, `,"data":`...)
	if data == nil {
		dst = append(dst, `{}`...)
	}
	dst = append(dst, data...)
	return append(dst, '}')
}

// AppendRetry appends a retry value. waitForMs must lie between 1 and
// MaxRetryWaitMs for a peer to take it.
func AppendRetry(dst []byte, waitForMs int, reason string) []byte {
	dst = append(dst, `{"waitForMs":`...)
	dst = strconv.AppendInt(dst, int64(waitForMs), 10)
	dst = append(dst, `,"reason":`...)
	dst = AppendString(dst, reason)
	return append(dst, '}')
}

// AppendString appends s as JSON.stringify writes a string: the shortest
// escape for quotes, backslashes and control characters, everything else as it
// is. Bytes that are no UTF-8 become U+FFFD, one each, so that no frame of ours
// is ever refused for its encoding.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(dst, s[start:i]...)
				dst = utf8.AppendRune(dst, r)
				start = i + 1
			}
			i += n
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			dst = append(dst, s[start:i]...)
			if short := shortEscapes[c]; short != 0 {
				dst = append(dst, '\\', short)
			} else {
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
			}
			start = i + 1
		}
		i++
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// shortEscapes are the escapes of one letter, by the byte they stand for.
var shortEscapes = [...]byte{
	'\b': 'b', '\t': 't', '\n': 'n', '\f': 'f', '\r': 'r', '"': '"', '\\': '\\',
}
