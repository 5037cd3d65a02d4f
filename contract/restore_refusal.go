package contract

import (
	"bytes"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// Lengths that decide what counts as an echo of a control. A value shorter than
// echoedValue is no secret and stands in too many sentences; a stretch of
// echoedRun bytes in common is no coincidence and may be cut from a grant. A
// member's name is what a helpful reason names; one longer than knownName is
// longer than any of Corestore's and counts as a value.
const (
	echoedValue = 4
	echoedRun   = 8
	knownName   = 32
)

// NewRestoreRefusal is restore-node-refused with Corestore's own reason: the
// text of its failure, else its code, else nothing (contract §12.5). The reason
// is cut at 512 bytes, and left out when it is not printable or repeats anything
// of the control, which bears the grant.
//
// The answer is the body that Corestore refused the control with.
func NewRestoreRefusal(control Raw, answer []byte) *Refusal {
	refusal := &Refusal{Name: RestoreNodeRefused}
	failure, ok := ReadCorestoreFailure(answer)
	if !ok {
		return refusal
	}
	for _, reason := range []string{failure.Text, failure.Code} {
		if len(reason) > maximumRefusalReason {
			reason = strings.ToValidUTF8(reason[:maximumRefusalReason], "")
		}
		if reason != "" && isPrintable(reason) && !echoes(reason, control) {
			refusal.Reason = reason
			break
		}
	}
	return refusal
}

func isPrintable(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// echoes reports whether a reason repeats a text or a number of the control,
// whole or in a stretch.
func echoes(reason string, control []byte) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(control),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	runs := runsOf(reason)
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return false
		}
		kind, index := dec.StackIndex(dec.StackDepth())
		isName := kind == '{' && index%2 == 1
		switch token.Kind() {
		case '"':
			text := token.String()
			if isName && len(text) <= knownName {
				continue
			}
			if repeats(reason, runs, text) {
				return true
			}
		case '0':
			if repeats(reason, runs, token.String()) {
				return true
			}
		}
	}
}

// runsOf returns every stretch of echoedRun bytes of s.
func runsOf(s string) map[string]bool {
	runs := make(map[string]bool)
	for i := 0; i+echoedRun <= len(s); i++ {
		runs[s[i:i+echoedRun]] = true
	}
	return runs
}

func repeats(reason string, runs map[string]bool, value string) bool {
	if len(value) >= echoedValue && strings.Contains(reason, value) {
		return true
	}
	for i := 0; len(runs) > 0 && i+echoedRun <= len(value); i++ {
		if runs[value[i:i+echoedRun]] {
			return true
		}
	}
	return false
}
