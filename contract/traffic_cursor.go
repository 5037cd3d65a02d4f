package contract

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// TrafficCursor is where a read over the ingresses of several nodes stands: the
// relay asks them in node order and hands Cloudly this as one opaque text,
// base64url of "<nodeId>\n<inner cursor>" (contract O17). It is no authority:
// whatever it says, only registered ingresses are asked.
type TrafficCursor struct {
	NodeID string // whose ingress is asked next
	Inner  string // that ingress's own cursor, empty at its first page
}

// Text returns the cursor as it travels.
func (c TrafficCursor) Text() string {
	return base64.RawURLEncoding.EncodeToString([]byte(c.NodeID + "\n" + c.Inner))
}

// ParseTrafficCursor reads a cursor that the relay made. It reports false for
// any other text.
func ParseTrafficCursor(s string) (TrafficCursor, bool) {
	if len(s) > MaximumTrafficCursorBytes {
		return TrafficCursor{}, false
	}
	decoded, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return TrafficCursor{}, false
	}
	nodeID, inner, found := strings.Cut(string(decoded), "\n")
	c := TrafficCursor{NodeID: nodeID, Inner: inner}
	ok := found && IsNodeID(nodeID) && len(inner) <= MaximumIngressCursorBytes && utf8.ValidString(inner)
	// The decoder passes over line ends and spare bits; only one text is ours.
	if !ok || c.Text() != s {
		return TrafficCursor{}, false
	}
	return c, true
}
