package tunnel

import "fmt"

// Rule names what a frame broke. docs/tunnel.md states each under its name.
type Rule uint8

// The rules.
const (
	RuleFrameKind      Rule = iota + 1 // a kind that must be known, and is not
	RuleFrameLength                    // a body above MaxBody, or a handshake message too short or too long
	RuleFrameDirection                 // a kind that the other end sends
	RuleFrameOrder                     // a kind that has no place now
	RuleFieldTruncated                 // a field that ends behind its body
	RuleFieldOrder                     // numbers that do not rise: unsorted or twice
	RuleFieldUnknown                   // a number that must be known, and is not one of this frame's
	RuleFieldMissing                   // a field that this frame must have
	RuleFieldLength                    // a value of another length than its field has
	RuleFieldValue                     // a value outside of its field's range
	RuleNotOffered                     // an answer that chose what the node had not offered
	RuleConfirmProof                   // a confirmation by someone without the keys
	RuleRekeyOrder                     // a step of a key exchange that is not the next one
	RuleRekeyEarly                     // a key exchange too soon after the one before
	RuleRekeyEpoch                     // a key exchange for another epoch than the next
	RuleRekeyKey                       // a public key of low order
	RuleRekeyProof                     // a proof by someone without the keys

	ruleEnd
)

var ruleNames = [ruleEnd]string{
	RuleFrameKind:      "frame-kind",
	RuleFrameLength:    "frame-length",
	RuleFrameDirection: "frame-direction",
	RuleFrameOrder:     "frame-order",
	RuleFieldTruncated: "field-truncated",
	RuleFieldOrder:     "field-order",
	RuleFieldUnknown:   "field-unknown",
	RuleFieldMissing:   "field-missing",
	RuleFieldLength:    "field-length",
	RuleFieldValue:     "field-value",
	RuleNotOffered:     "not-offered",
	RuleConfirmProof:   "confirm-proof",
	RuleRekeyOrder:     "rekey-order",
	RuleRekeyEarly:     "rekey-early",
	RuleRekeyEpoch:     "rekey-epoch",
	RuleRekeyKey:       "rekey-key",
	RuleRekeyProof:     "rekey-proof",
}

// String returns the rule's name.
func (r Rule) String() string {
	if r == 0 || r >= ruleEnd {
		return "unknown"
	}
	return ruleNames[r]
}

// Rules returns every rule, for those who count by it.
func Rules() []Rule {
	rules := make([]Rule, 0, ruleEnd-1)
	for r := Rule(1); r < ruleEnd; r++ {
		rules = append(rules, r)
	}
	return rules
}

// WireError is a frame that broke a rule. It quotes nothing of the frame but
// the numbers of its kind and field. The connection ends with CloseProtocol.
type WireError struct {
	From  Side // who sent it
	Frame FrameKind
	Field uint8 // number of the field at fault, 0 for the frame itself
	Rule  Rule
}

func (e *WireError) Error() string {
	if e.Field != 0 {
		return fmt.Sprintf("%s frame of the %s breaks %s in field %#x", e.Frame, e.From, e.Rule, e.Field)
	}
	return fmt.Sprintf("%s frame of the %s breaks %s", e.Frame, e.From, e.Rule)
}
