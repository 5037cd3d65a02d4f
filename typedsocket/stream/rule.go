package stream

import "slices"

// Rule is a rule of the protocol that a frame broke. The names are stable:
// they travel as the reason of the abort, and serve as names of counters.
type Rule string

// The rules, in the order in which a frame is held to them.
const (
	RuleNumberUnknown  Rule = "number-unknown"    // a frame for a number that nobody allotted
	RuleNumberNotNew   Rule = "number-not-new"    // an open-ack's number of the wrong parity, or not above all before
	RuleOpenedTwice    Rule = "opened-twice"      // an open-ack for a stream that is open
	RulePayload        Rule = "payload-length"    // shorter or longer than the kind allows
	RuleValue          Rule = "value-range"       // above MaxTotal, or not 0 where it must be
	RuleText           Rule = "text-not-utf8"     // a streamId or reason that is no UTF-8
	RuleDirection      Rule = "wrong-direction"   // a sender's frame from the receiver, or the reverse
	RuleAfterEnd       Rule = "after-end"         // data or end behind the end
	RuleOffset         Rule = "wrong-offset"      // data that does not continue the bytes before
	RuleCreditExceeded Rule = "credit-exceeded"   // data beyond what was permitted
	RuleTotal          Rule = "wrong-total"       // an end or accept that counts other bytes
	RuleCreditShrinks  Rule = "credit-shrinks"    // less permitted than before
	RuleAcceptEarly    Rule = "accept-before-end" // an acceptance of bytes still to come
	RuleReceipt        Rule = "receipt-mismatch"  // no receipt, or one of other bytes
)

var rules = [...]Rule{
	RuleNumberUnknown, RuleNumberNotNew, RuleOpenedTwice, RulePayload, RuleValue, RuleText,
	RuleDirection, RuleAfterEnd, RuleOffset, RuleCreditExceeded, RuleTotal, RuleCreditShrinks,
	RuleAcceptEarly, RuleReceipt,
}

// Rules returns every rule, so that counters can be set up before one is broken.
func Rules() []Rule { return slices.Clone(rules[:]) }
