package stream

import (
	"strings"
	"unicode/utf8"
)

// Reasons that this package itself gives in a reject or abort frame, beside
// the names of [Rules]. An application's own reasons are free text.
const (
	// ReasonIdle: nothing moved for the idle limit while the aborting side waited.
	ReasonIdle = "idle"
	// ReasonCancelled: the sender stopped waiting for the verdict.
	ReasonCancelled = "cancelled"
	// ReasonNotOffered: an open-ack named a stream that is not on offer, or no
	// longer.
	ReasonNotOffered = "not-offered"
	// ReasonIntegrityLength: the bytes are more or fewer than the descriptor says.
	ReasonIntegrityLength = "integrity-length"
	// ReasonIntegrityDigest: the bytes are not the ones the descriptor names.
	ReasonIntegrityDigest = "integrity-digest"
	// ReasonQueueFull: the aborting side's socket could not queue a frame.
	ReasonQueueFull = "queue-full"
	// ReasonDiscarded: the creator gave the stream up after all.
	ReasonDiscarded = "discarded"
)

// reasonName returns the name that a peer's reason begins with, when it is one
// of this protocol. Everything else in a reason is a peer's text, which an
// error message does not repeat (contract §18).
func reasonName(reason string) (string, bool) {
	name, _, _ := strings.Cut(reason, ":")
	switch name {
	case ReasonIdle, ReasonCancelled, ReasonNotOffered, ReasonIntegrityLength,
		ReasonIntegrityDigest, ReasonQueueFull, ReasonDiscarded:
		return name, true
	}
	for _, rule := range Rules() {
		if name == string(rule) {
			return name, true
		}
	}
	return "", false
}

// boundReason makes a reason fit its frame: valid UTF-8, cut on a rune's edge.
func boundReason(reason string) string {
	reason = strings.ToValidUTF8(reason, "\uFFFD")
	if len(reason) <= MaxReason {
		return reason
	}
	cut := MaxReason
	for !utf8.RuneStart(reason[cut]) {
		cut--
	}
	return reason[:cut]
}
