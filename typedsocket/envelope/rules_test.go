package envelope

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// levels are the levels of a frame: a text with %s where the members of an
// object of that level stand, and what the level refuses.
var levels = []struct {
	name, text                        string
	unique, proto, surrogate, session bool
}{
	{name: "envelope", text: `{%s}`, unique: true, proto: true, surrogate: true},
	{name: "correlation", text: `{"correlation":{%s}}`, unique: true, surrogate: true},
	{name: "error", text: `{"error":{%s}}`, unique: true, surrogate: true},
	{name: "retry", text: `{"retry":{%s}}`, unique: true, surrogate: true},
	{name: "request", text: `{"request":{%s}}`, unique: true, surrogate: true},
	{name: "response", text: `{"response":{%s}}`, unique: true, surrogate: true},
	{name: "escaped request", text: `{"\u0072equest":{%s}}`, unique: true, surrogate: true},
	{name: "request.session", text: `{"request":{"session":{%s}}}`, unique: true, proto: true, surrogate: true, session: true},
	{name: "response.session", text: `{"response":{"session":{%s}}}`, unique: true, proto: true, surrogate: true, session: true},
	{name: "session.*", text: `{"request":{"session":{"x":{%s}}}}`, unique: true, proto: true, surrogate: true, session: true},
	{name: "session.*.*", text: `{"request":{"session":{"x":{"y":{%s}}}}}`, unique: true, proto: true, surrogate: true, session: true},
	{name: "session[]", text: `{"request":{"session":[{%s}]}}`, unique: true, proto: true, surrogate: true, session: true},
	{name: "session.*[][]", text: `{"request":{"session":{"x":[0,[{%s}]]}}}`, unique: true, proto: true, surrogate: true, session: true},

	{name: "correlation.*", text: `{"correlation":{"x":{%s}}}`},
	{name: "correlation[]", text: `{"correlation":[{%s}]}`},
	{name: "error.data", text: `{"error":{"data":{%s}}}`},
	{name: "retry.*", text: `{"retry":{"x":{%s}}}`},
	{name: "authInfo", text: `{"authInfo":{%s}}`},
	{name: "localData", text: `{"localData":{%s}}`},
	{name: "method", text: `{"method":{%s}}`},
	{name: "requestInstanceId", text: `{"requestInstanceId":{%s}}`},
	{name: "envelope session", text: `{"session":{%s}}`},
	{name: "request.*", text: `{"request":{"x":{%s}}}`},
	{name: "response.*[]", text: `{"response":{"x":[{%s}]}}`},
	{name: "request[]", text: `{"request":[{%s}]}`},
	{name: "request[].session", text: `{"request":[{"session":{%s}}]}`},
	{name: "request.*.session", text: `{"request":{"x":{"session":{%s}}}}`},
	{name: "Request", text: `{"Request":{%s}}`},
}

// names returns n different members.
func names(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"n%d":0,`, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// R03: at each level of a frame exactly the rules of the package's table hold: names
// given twice, too many names, __proto__, lone surrogates.
func TestR03_RulesOfEveryLevel(t *testing.T) {
	for _, lv := range levels {
		members := []struct {
			text    string
			refused bool
			rule    Rule
		}{
			{text: ``},
			{text: `"a":1,"b":2`},
			{`"a":1,"a":2`, lv.unique, RuleDuplicateName},
			{`"a":{},"b":[],"a":{}`, lv.unique, RuleDuplicateName},
			{`"":1,"":2`, lv.unique, RuleDuplicateName},
			{`"a":1,"\u0061":2`, lv.unique, RuleDuplicateName},
			{`"\u0061":1,"a":2`, lv.unique, RuleDuplicateName},
			{`"\u0061":1,"\u0061":2`, lv.unique, RuleDuplicateName},
			{`"\ud83d\ude00":1,"😀":2`, lv.unique, RuleDuplicateName},
			{`"\/":1,"/":2`, lv.unique, RuleDuplicateName},
			{text: `"a":1,"A":2`},
			{text: `"a":1,"a ":2`},
			{text: `"a\u0000":1,"a":2`},
			{text: `"é":1,"e\u0301":2`}, // equal only after normalization
			{names(15) + `,"n0":0`, lv.unique, RuleDuplicateName},
			{names(15) + `,"n14":0`, lv.unique, RuleDuplicateName},
			{names(16) + `,"n15":0`, lv.unique, RuleDuplicateName},
			{names(16) + `,"n0":0`, lv.unique, RuleDuplicateName},
			{names(17) + `,"n3":0`, lv.unique, RuleDuplicateName},
			{names(100) + `,"n\u0037":0`, lv.unique, RuleDuplicateName},
			{`"n\u0037":0,` + names(100), lv.unique, RuleDuplicateName},
			{text: names(MaxNames)},
			{names(MaxNames + 1), lv.unique, RuleTooManyNames},
			{`"__proto__":1`, lv.proto, RuleForbiddenName},
			{`"a":0,"\u005f_proto__":{}`, lv.proto, RuleForbiddenName},
			{text: `"__Proto__":1,"proto":2,"constructor":3`},
			{text: `"a":"__proto__"`},
			{`"\ud800":1`, lv.surrogate, RuleLoneSurrogate},
			{`"a":"\uD800"`, lv.surrogate, RuleLoneSurrogate},
			{`"a":"x\udfffx"`, lv.surrogate, RuleLoneSurrogate},
			{`"a":"\udc00\ud800"`, lv.surrogate, RuleLoneSurrogate},
			{`"a":"\ud800\ud800\udc00"`, lv.surrogate, RuleLoneSurrogate},
			{`"a":"\ud800\u0041"`, lv.surrogate, RuleLoneSurrogate},
			{`"a":"\ud800\n"`, lv.surrogate, RuleLoneSurrogate},
			{`"a":"\ud800xxdc00"`, lv.surrogate, RuleLoneSurrogate},
			{`"a":"\ud800\\dc00"`, lv.surrogate, RuleLoneSurrogate},
			{`"a":"\ud800 \udc00"`, lv.surrogate, RuleLoneSurrogate},
			{text: `"a":"\ud800\udc00","\uDBFF\uDFFF":"\uFFFD"`},
			{text: `"a":"\\ud800","\\ud800":"\\\\udfff"`},
			{`"a":["\ud800"]`, lv.session, RuleLoneSurrogate},
			{`"a":{"b":"\ud800"}`, lv.session, RuleLoneSurrogate},
			{`"a":[[{"\ud800":1}]]`, lv.session, RuleLoneSurrogate},
			{`"a":{"b":1,"b":2}`, lv.session, RuleDuplicateName},
			{`"a":[{"__proto__":1}]`, lv.session, RuleForbiddenName},
		}
		for _, m := range members {
			text := fmt.Sprintf(lv.text, m.text)
			label := fmt.Sprintf("%s: %.60s", lv.name, m.text)
			var want Rule
			if m.refused {
				want = m.rule
			}
			if got := scanRule(t, text); got != want {
				t.Errorf("%s: got %v, want %v", label, got, want)
			}
			compareWithReference(t, []byte(text))
		}
	}
}

// scanRule returns the rule that text breaks, 0 for none.
func scanRule(t *testing.T, text string) Rule {
	t.Helper()
	var f Frame
	err := Scan([]byte(text), &f)
	if err == nil {
		return 0
	}
	var refused *ScanError
	if !errors.As(err, &refused) || refused.Rule == 0 {
		t.Fatalf("error is %v", err)
	}
	return refused.Rule
}

// R03: a string or an array where an object is usual is held to the rules of its level.
func TestR03_StringsOfLevels(t *testing.T) {
	for text, want := range map[string]Rule{
		`{"request":"\ud800"}`:                 RuleLoneSurrogate,
		`{"response":"\ud800"}`:                RuleLoneSurrogate,
		`{"request":["\ud800"]}`:               RuleLoneSurrogate,
		`{"response":[0,"\ud800"]}`:            RuleLoneSurrogate,
		`{"request":[["\ud800"]]}`:             0,
		`{"request":{"session":"\ud800"}}`:     RuleLoneSurrogate,
		`{"request":{"session":[["\ud800"]]}}`: RuleLoneSurrogate,
		`{"error":"\ud800"}`:                   RuleLoneSurrogate,
		`{"error":{"data":"\ud800"}}`:          RuleLoneSurrogate,
		`{"error":["\ud800"]}`:                 RuleLoneSurrogate,
		`{"error":{"data":["\ud800"]}}`:        0,
		`{"method":"\ud800"}`:                  RuleLoneSurrogate,
		`{"authInfo":{"jwt":"\ud800"}}`:        0,
		`{"extra":"\ud800"}`:                   RuleLoneSurrogate,
		`{"request":[]}`:                       0,
		`{"request":[],"request":[]}`:          RuleDuplicateName,
		`{"request":{},"r\u0065quest":{}}`:     RuleDuplicateName,
		`{"method":"a","method":"a"}`:          RuleDuplicateName,
	} {
		if got := scanRule(t, text); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// TestScanOffsets holds down where a refusal points, and which of several
// broken rules is reported.
func TestScanOffsets(t *testing.T) {
	long := strings.Repeat("x", MaxIDBytes)
	for _, c := range []struct {
		text   string
		rule   Rule
		offset int
	}{
		{``, RuleSyntax, 0},
		{"  \n", RuleSyntax, 3},
		{"\xef\xbb\xbf{}", RuleSyntax, 0},
		{`nul`, RuleSyntax, 0},
		{` null`, RuleNotAnObject, 1},
		{`[]`, RuleNotAnObject, 0},
		{`"a"`, RuleNotAnObject, 0},
		{`-1`, RuleNotAnObject, 0},
		{`{`, RuleSyntax, 1},
		{`{"a"`, RuleSyntax, 4},
		{`{"a":`, RuleSyntax, 5},
		{`{"a":1`, RuleSyntax, 6},
		{`{"a":1,`, RuleSyntax, 7},
		{`{"a":1,}`, RuleSyntax, 7},
		{`{"a":"b`, RuleSyntax, 7},
		{"{\"a\":\"b\n\"}", RuleSyntax, 7},
		{`{"a":"b\x"}`, RuleSyntax, 7},
		{`{"a":{"b":tru}}`, RuleSyntax, 10},
		{`{"a":{"b":[1 2]}}`, RuleSyntax, 13},
		{`{"a":{"b" 1}}`, RuleSyntax, 10},
		{`{} {}`, RuleTrailingData, 3},
		{`{}x`, RuleTrailingData, 2},
		{"{}\x00", RuleTrailingData, 2},
		{`{"a":1,"b":2,"\u0061":3}`, RuleDuplicateName, 13},
		{`{` + names(17) + `,"n3":0,"n2":0}`, RuleDuplicateName, 127},
		{`{` + names(17) + `,"n2":0,"n3":0}`, RuleDuplicateName, 127},
		{`{"a":0,"\u0061":0,` + names(17) + `}`, RuleDuplicateName, 7},
		{`{"ab":"\n\ud800"}`, RuleLoneSurrogate, 9},
		{`{"request":{"session":{"a":0, "__proto__":0}}}`, RuleForbiddenName, 30},
		{`{"a":"` + "\xff" + `"}`, RuleInvalidUTF8, 6},
		{`{"a":1,"a":1,"` + "\xed\xa0\x80" + `"}`, RuleInvalidUTF8, 14},
		{`{"a":1,"a":1]`, RuleDuplicateName, 7},
		{`{"method":"` + strings.Repeat("m", MaxMethodBytes+1) + `"}`, RuleTextTooLong, 10},
		{`{"correlation":{"id":"` + long + `x"}}`, RuleTextTooLong, 21},
		{`{"requestInstanceId":"` + long + `x"}`, RuleTextTooLong, 21},
	} {
		var f Frame
		err := Scan([]byte(c.text), &f)
		if refused, _ := err.(*ScanError); refused == nil || refused.Rule != c.rule || refused.Offset != c.offset {
			t.Errorf("%.60q: got %v, want %v at %d", c.text, err, c.rule, c.offset)
		}
	}
}

func TestTextBounds(t *testing.T) {
	frame := func(method, id, instance string) string {
		return fmt.Sprintf(`{"method":"%s","requestInstanceId":"%s","correlation":{"id":"%s"}}`, method, instance, id)
	}
	x := strings.Repeat
	for _, c := range []struct {
		text string
		rule Rule
	}{
		{frame(x("m", MaxMethodBytes), x("i", MaxIDBytes), x("r", MaxIDBytes)), 0},
		{frame(x(`\u006d`, MaxMethodBytes), "i", "r"), 0},
		{frame(x(`\u006d`, MaxMethodBytes)+"m", "i", "r"), RuleTextTooLong},
		{frame(x(`\u006d`, MaxMethodBytes-1)+"mm", "i", "r"), RuleTextTooLong},
		{frame(x("é", MaxMethodBytes/2)+"m", "i", "r"), RuleTextTooLong},
		{frame(x(`\n`, MaxMethodBytes), x(`\n`, MaxIDBytes/2), x("é", MaxIDBytes/2)), 0},
		{frame("m", x(`\n`, MaxIDBytes/2)+"i", "r"), RuleTextTooLong},
		{frame("m", "i", x("é", MaxIDBytes/2)+"r"), RuleTextTooLong},
	} {
		if got := scanRule(t, c.text); got != c.rule {
			t.Errorf("%.80s: got %v, want %v", c.text, got, c.rule)
		}
	}
}

func TestRuleTexts(t *testing.T) {
	want := []string{
		"syntax", "invalid-utf8", "depth", "trailing-data", "duplicate-name",
		"lone-surrogate", "forbidden-name", "too-many-names", "not-an-object", "text-too-long",
	}
	var got []string
	for _, r := range Rules() {
		got = append(got, r.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if Rule(0).String() != "unknown" || Rule(len(want)+1).String() != "unknown" {
		t.Error("a rule outside the set has a name")
	}
}

// TestErrorsQuoteNothing puts a marker wherever a peer's text can stand.
func TestErrorsQuoteNothing(t *testing.T) {
	for _, text := range []string{
		`{"SECRET":1,"SECRET":2}`,
		`{"a":"SECRET\ud800"}`,
		`{"a":SECRET}`,
		`SECRET`,
		`{}SECRET`,
		`{"method":"` + strings.Repeat("SECRET", 30) + `"}`,
	} {
		var f Frame
		err := Scan([]byte(text), &f)
		if err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%.40s: %v", text, err)
		}
	}
	err := &ScanError{Rule: RuleDuplicateName, Offset: 12}
	if got := err.Error(); got != "envelope refused: duplicate-name at byte 12" {
		t.Errorf("got %q", got)
	}
}
