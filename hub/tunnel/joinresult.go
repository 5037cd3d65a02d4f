package tunnel

// JoinResult says what became of a datagram: which packet came out of it, or
// why none did.
type JoinResult uint8

// The results. Those from JoinEmpty on are refusals.
const (
	JoinWhole         JoinResult = iota // the datagram was a packet
	JoinJoined                          // it was the missing part of one
	JoinHeld                            // it is a part that waits for the other
	JoinEmpty                           // no byte
	JoinKind                            // a first byte that is neither a packet's nor a part's
	JoinShort                           // a packet shorter than an IP header
	JoinLong                            // a packet above the inner MTU
	JoinPartShort                       // no more than a part's header
	JoinPartLength                      // a part of a packet below 20 bytes or above the inner MTU
	JoinPartEnd                         // a part that is the whole packet, or does not reach to its end, or behind it
	JoinPartOld                         // a part whose place a newer packet has
	JoinPartDuplicate                   // a part that came before
	JoinPartConflict                    // two parts of one number that state different lengths
	JoinPartOverlap                     // two parts with bytes in common; both are dropped
	JoinPartGap                         // two parts with bytes missing between; both are dropped

	joinEnd
)

var joinNames = [joinEnd]string{
	JoinWhole:         "whole",
	JoinJoined:        "joined",
	JoinHeld:          "held",
	JoinEmpty:         "empty",
	JoinKind:          "kind",
	JoinShort:         "short",
	JoinLong:          "long",
	JoinPartShort:     "part-short",
	JoinPartLength:    "part-length",
	JoinPartEnd:       "part-end",
	JoinPartOld:       "part-old",
	JoinPartDuplicate: "part-duplicate",
	JoinPartConflict:  "part-conflict",
	JoinPartOverlap:   "part-overlap",
	JoinPartGap:       "part-gap",
}

// String returns the result's name.
func (r JoinResult) String() string {
	if r >= joinEnd {
		return "unknown"
	}
	return joinNames[r]
}

// Refused reports whether the datagram was refused.
func (r JoinResult) Refused() bool { return r >= JoinEmpty }

// JoinRefusals returns every refusal, for those who count by it.
func JoinRefusals() []JoinResult {
	var refusals []JoinResult
	for r := JoinEmpty; r < joinEnd; r++ {
		refusals = append(refusals, r)
	}
	return refusals
}
