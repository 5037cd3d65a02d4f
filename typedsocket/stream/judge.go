package stream

import "unicode/utf8"

// standing is what a frame is judged by: where a stream stands.
type standing struct {
	sending bool   // this side sends the bytes
	moved   uint64 // bytes sent, or received
	permit  uint64 // bytes that may be sent, or that may arrive
	ended   bool   // the end was sent, or has arrived
}

// judge returns the rule that a frame of a live stream breaks, "" when it
// breaks none. The checks run in the order in which docs/streams.md lists the
// rules, so that a frame which breaks several is named the same everywhere.
func judge(f frame, at standing) Rule {
	if rule := judgeShape(f); rule != "" {
		return rule
	}
	toSender := f.kind == kindCredit || f.kind == kindAccept || f.kind == kindReject
	if f.kind != kindAbort && toSender != at.sending {
		return RuleDirection
	}
	switch f.kind {
	case kindData:
		switch {
		case at.ended:
			return RuleAfterEnd
		case f.value != at.moved:
			return RuleOffset
		case uint64(len(f.payload)) > at.permit-at.moved:
			return RuleCreditExceeded
		}
	case kindEnd:
		switch {
		case at.ended:
			return RuleAfterEnd
		case f.value != at.moved:
			return RuleTotal
		}
	case kindCredit:
		if f.value < at.permit {
			return RuleCreditShrinks
		}
	case kindAccept:
		switch {
		case !at.ended:
			return RuleAcceptEarly
		case f.value != at.moved:
			return RuleTotal
		}
	}
	return ""
}

// judgeShape checks what a frame must look like whatever its stream's state.
func judgeShape(f frame) Rule {
	least, most := 0, 0
	switch f.kind {
	case kindOpenAck:
		least, most = 1, maxStreamIDBytes
	case kindData:
		least, most = 1, ChunkSize
	case kindAccept:
		least, most = 1, MaxReceipt
	case kindReject, kindAbort:
		most = MaxReason
	}
	if len(f.payload) < least || len(f.payload) > most {
		return RulePayload
	}
	noValue := f.kind == kindReject || f.kind == kindAbort
	if f.value > MaxTotal || noValue && f.value != 0 {
		return RuleValue
	}
	text := noValue || f.kind == kindOpenAck
	if text && !utf8.Valid(f.payload) {
		return RuleText
	}
	if f.kind == kindOpenAck && utf16Len(string(f.payload)) > MaxStreamID {
		return RulePayload
	}
	return ""
}

// utf16Len counts UTF-16 units, the unit in which a streamId is bounded.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}
