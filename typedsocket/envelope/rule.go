package envelope

import "fmt"

// Rule is the rule of a frame that was broken. The set is closed and the texts
// are stable: they serve as names in events and counters.
type Rule uint8

// The rules, in no order of precedence: a scan stops at the first one broken.
const (
	RuleSyntax        Rule = iota + 1 // not the grammar of RFC 8259
	RuleInvalidUTF8                   // bytes that are no UTF-8, checked before anything else
	RuleDepth                         // nested deeper than MaxDepth
	RuleTrailingData                  // something follows the object
	RuleDuplicateName                 // a name twice where names must differ
	RuleLoneSurrogate                 // half a surrogate pair where text must be text
	RuleForbiddenName                 // __proto__ where it is refused
	RuleTooManyNames                  // more than MaxNames on a level whose names must differ
	RuleNotAnObject                   // JSON, but no object
	RuleTextTooLong                   // method, an id or the frame exceeds its bound
)

var ruleTexts = [...]string{
	RuleSyntax:        "syntax",
	RuleInvalidUTF8:   "invalid-utf8",
	RuleDepth:         "depth",
	RuleTrailingData:  "trailing-data",
	RuleDuplicateName: "duplicate-name",
	RuleLoneSurrogate: "lone-surrogate",
	RuleForbiddenName: "forbidden-name",
	RuleTooManyNames:  "too-many-names",
	RuleNotAnObject:   "not-an-object",
	RuleTextTooLong:   "text-too-long",
}

// ofBodies reports whether the rule is one for names and strings, which a body can
// break while everything around it can be read.
func (r Rule) ofBodies() bool {
	switch r {
	case RuleDuplicateName, RuleLoneSurrogate, RuleForbiddenName, RuleTooManyNames:
		return true
	}
	return false
}

// Rules returns every rule, so that counters can be set up before the first
// frame breaks one.
func Rules() []Rule {
	rules := make([]Rule, 0, len(ruleTexts)-1)
	for r := RuleSyntax; int(r) < len(ruleTexts); r++ {
		rules = append(rules, r)
	}
	return rules
}

// String returns the rule's stable text.
func (r Rule) String() string {
	if r == 0 || int(r) >= len(ruleTexts) {
		return "unknown"
	}
	return ruleTexts[r]
}

// ScanError says which rule a frame breaks and where. It quotes nothing of the
// frame.
type ScanError struct {
	Rule   Rule
	Offset int // in bytes from the start of the frame
	// InBody tells that the rule is one for names and strings inside request or
	// response, so that the envelope around it may still be read: see [Salvage].
	InBody bool
}

// Error names the rule and the offset.
func (e *ScanError) Error() string {
	return fmt.Sprintf("envelope refused: %s at byte %d", e.Rule, e.Offset)
}
