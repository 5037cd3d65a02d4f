package typedsocket

import (
	"fmt"
	"unicode/utf8"
)

// CloseCode is a WebSocket close code (RFC 6455 §7.4). The table of those we
// send is closeMeanings; the 4000s are ours.
type CloseCode uint16

// The close codes this product sends.
const (
	CloseNormal        CloseCode = 1000
	CloseGoingAway     CloseCode = 1001
	CloseProtocol      CloseCode = 1002
	CloseUnsupported   CloseCode = 1003
	CloseInvalidData   CloseCode = 1007
	ClosePolicy        CloseCode = 1008
	CloseTooBig        CloseCode = 1009
	CloseInternal      CloseCode = 1011
	CloseRestart       CloseCode = 1012
	CloseOverloaded    CloseCode = 1013
	CloseSuperseded    CloseCode = 4001
	CloseCustodyEnded  CloseCode = 4002
	CloseUnregistered  CloseCode = 4003
	CloseRegisterAgain CloseCode = 4004
	CloseSilent        CloseCode = 4005
	CloseSlow          CloseCode = 4006
)

// Codes that are never sent; they stand for an end without a close frame.
const (
	closeNoStatus CloseCode = 1005 // the peer's close frame named no code
	closeAbnormal CloseCode = 1006 // the connection broke without a close frame
)

// closeMeanings is what each code tells the peer.
var closeMeanings = map[CloseCode]string{
	CloseNormal:        "the session is over and nothing went wrong",
	CloseGoingAway:     "this side is leaving and does not come back on this socket",
	CloseProtocol:      "the peer broke the WebSocket protocol",
	CloseUnsupported:   "binary messages are not spoken on this socket",
	CloseInvalidData:   "a text message was not acceptable JSON",
	ClosePolicy:        "the peer did what its role does not allow",
	CloseTooBig:        "a message was larger than this socket takes",
	CloseInternal:      "this side failed",
	CloseRestart:       "this side drains and restarts: dial again",
	CloseOverloaded:    "this side is at a limit: dial again later",
	CloseSuperseded:    "a newer socket of the same peer took over",
	CloseCustodyEnded:  "the relay no longer holds this cluster: dial again and register",
	CloseUnregistered:  "no registration was accepted in time",
	CloseRegisterAgain: "the control plane's session is new: dial again and register",
	CloseSilent:        "nothing was heard of the peer for too long",
	CloseSlow:          "the peer does not read what is sent to it",
}

// Meaning returns one sentence about the code, for an operator.
func (c CloseCode) Meaning() string {
	if text, ok := closeMeanings[c]; ok {
		return text
	}
	return fmt.Sprintf("close code %d", c)
}

// maxCloseReason is what RFC 6455 §5.5.1 leaves for the reason beside the code.
const maxCloseReason = 123

// cutReason shortens a reason to what a close frame can carry, on a rune edge.
func cutReason(reason string) string {
	if len(reason) <= maxCloseReason {
		return reason
	}
	end := maxCloseReason
	for end > 0 && !utf8.RuneStart(reason[end]) {
		end--
	}
	return reason[:end]
}
