package envelope

import (
	"errors"
	"math"
	"strconv"
)

// MaxRetryWaitMs is the longest wait a retry may ask for, in milliseconds: the
// longest timer of JavaScript.
const MaxRetryWaitMs = math.MaxInt32

// ErrorState is what the member error of an answer says.
type ErrorState uint8

// The states of an error.
const (
	ErrorNone    ErrorState = iota // absent or null: no failure
	ErrorNamed                     // an object whose text is a string
	ErrorUnnamed                   // anything else: a failure without a name
)

// ErrRetry is returned for a retry that is neither absent, null nor an object
// with a usable waitForMs.
var ErrRetry = errors.New("retry is no object with an integer waitForMs from 1 to 2147483647")

// failure is where the members of an error or a retry lie: start and end, both
// zero when absent.
type failure struct {
	text, data, waitForMs, reason span
}

type span struct{ start, end int }

func (s *scanner) failureMember(name []byte, i, depth int) int {
	end := s.value(i, depth, placeLoose)
	switch string(name) {
	case "text":
		s.failure.text = span{i, end}
	case "data":
		s.failure.data = span{i, end}
	case "waitForMs":
		s.failure.waitForMs = span{i, end}
	case "reason":
		s.failure.reason = span{i, end}
	}
	return end
}

// isNothing says whether raw is absent or null.
func isNothing(raw []byte) bool {
	i := space(raw, 0)
	return len(raw) == 0 || hasLiteral(raw, i, "null") && space(raw, i+len("null")) == len(raw)
}

// readFailure reads raw as the value of error or retry, which stand at depth 2
// of their frame. It returns whether that is an object that a scan lets pass.
func (s *scanner) readFailure(raw []byte) bool {
	s.text, s.frame = raw, new(Frame)
	i := space(raw, 0)
	return s.encoding() >= 0 && at(raw, i) == '{' && s.end(s.object(i, 2, placeFailure)) >= 0
}

// ReadError reads the bytes of error, as Frame.Error holds them. text and data
// are set for ErrorNamed only; data is the bytes of the member data, aliasing
// raw, and nil when that is absent.
//
// TypedRequest 8 lets error be absent or { text, data }. Whatever else a peer
// writes there is still meant as a failure, so it counts as one (design §3.1).
func ReadError(raw []byte) (text string, data []byte, state ErrorState) {
	if isNothing(raw) {
		return "", nil, ErrorNone
	}
	var s scanner
	if !s.readFailure(raw) || !s.isString(s.failure.text) {
		return "", nil, ErrorUnnamed
	}
	if d := s.failure.data; d.end > 0 {
		data = raw[d.start:d.end:d.end]
	}
	return s.string(s.failure.text), data, ErrorNamed
}

// ReadRetry reads the bytes of retry, as Frame.Retry holds them. waitForMs is
// in milliseconds, from 1 to MaxRetryWaitMs; 0 without an error means that
// there is no retry. Its number is judged by value, as JSON.parse reads it, so
// 1e3 is 1000. reason is for showing only and empty when it is no string. The
// error is ErrRetry.
func ReadRetry(raw []byte) (waitForMs int, reason string, err error) {
	if isNothing(raw) {
		return 0, "", nil
	}
	var s scanner
	if !s.readFailure(raw) || s.failure.waitForMs.end == 0 {
		return 0, "", ErrRetry
	}
	wait := s.failure.waitForMs
	v, err := strconv.ParseFloat(string(raw[wait.start:wait.end]), 64)
	if err != nil || v != math.Trunc(v) || v < 1 || v > MaxRetryWaitMs {
		return 0, "", ErrRetry
	}
	if s.isString(s.failure.reason) {
		reason = s.string(s.failure.reason)
	}
	return int(v), reason, nil
}

func (s *scanner) isString(v span) bool { return v.end > 0 && s.text[v.start] == '"' }

// string returns the text of a string of a strict level.
func (s *scanner) string(v span) string {
	text, _ := s.stringText(v.start, v.end)
	return string(text)
}
