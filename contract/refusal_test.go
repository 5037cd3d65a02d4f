package contract

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestVocabulariesAreExact(t *testing.T) {
	for _, tc := range []struct {
		set  Vocabulary
		want string
	}{
		{UndispatchedRefusals(), "relay-cluster-not-enabled relay-node-foreign relay-node-unknown relay-sequence-not-advancing relay-credential-generation-stale"},
		{HoldRefusals(), "escrow-run-invalid escrow-node-not-carried escrow-run-foreign-session escrow-run-stale escrow-run-unordered escrow-cloudly-only"},
		{ApplyVPNNetworkRefusals(), "vpn-network-revision-stale vpn-network-authority-foreign"},
		{IsolatedRestoreRefusals(), "restore-node-not-carried restore-node-unreachable restore-node-refused"},
		{IngressRegistrationReasons(), "not-ready registration-invalid relay-not-connected ingress-not-designated node-mismatch assignment-not-running bearer-refused conflict"},
		{TransportRefusals(), "relay-not-ready relay-node-not-carried relay-node-session-not-current relay-method-not-forwarded relay-cloudly-only relay-overloaded cluster-ingress-not-registered closure-transport-unsupported"},
	} {
		var names []RefusalName
		for name := range strings.FieldsSeq(tc.want) {
			names = append(names, RefusalName(name))
		}
		if diff := cmp.Diff(names, tc.set.Names()); diff != "" {
			t.Error(diff)
		}
		tc.set.Names()[0] = "changed"
		if !tc.set.Contains(names[0]) || tc.set.Contains("changed") || tc.set.Contains("") {
			t.Errorf("%v can be changed from outside", names)
		}
	}
}

func TestO10_RefusalNameIsFound(t *testing.T) {
	for _, tc := range []struct {
		name, text, data string
		want             RefusalName
	}{
		{"whole text", "relay-node-foreign", "", RelayNodeForeign},
		{"leading token", "relay-node-foreign: the node is elsewhere", "", RelayNodeForeign},
		{"leading token without space", "relay-node-foreign:x:y", "{}", RelayNodeForeign},
		{"data code", "Internal server error", `{"code":"relay-node-unknown"}`, RelayNodeUnknown},
		{"data code among others", "", `{"reason":"x","code":"relay-node-unknown","n":{"code":1,"code":2}}`, RelayNodeUnknown},
		{"data code written with escapes", "", ` {"c\u006fde":"relay\u002dnode-unknown"}`, RelayNodeUnknown},
		{"text before data", "relay-node-foreign: x", `{"code":"relay-node-unknown"}`, RelayNodeForeign},
		{"inside other words", "the answer was relay-node-foreign: x", "", ""},
		{"in front of other words", "relay-node-foreign because", "", ""},
		{"longer name", "relay-node-foreigner", "", ""},
		{"space before the colon", "relay-node-foreign : x", "", ""},
		{"leading space", " relay-node-foreign: x", "", ""},
		{"upper case", "Relay-Node-Foreign", "", ""},
		{"after a colon", "error: relay-node-foreign", "", ""},
		{"data reason does not count", "", `{"reason":"relay-node-unknown"}`, ""},
		{"code with a reason", "", `{"code":"relay-node-unknown: x"}`, ""},
		{"code twice", "", `{"code":"relay-node-unknown","code":"relay-node-unknown"}`, ""},
		{"code in another case", "", `{"Code":"relay-node-unknown"}`, ""},
		{"name in another case", "", `{"code":"Relay-Node-Unknown"}`, ""},
		{"code deeper", "", `{"error":{"code":"relay-node-unknown"}}`, ""},
		{"code no text", "", `{"code":["relay-node-unknown"]}`, ""},
		{"data no object", "", `"relay-node-unknown"`, ""},
		{"data array", "", `[{"code":"relay-node-unknown"}]`, ""},
		{"data cut", "", `{"code":"relay-node-unknown"`, ""},
		{"data null", "", `null`, ""},
		{"of another vocabulary", "escrow-run-stale: x", `{"code":"escrow-run-stale"}`, ""},
		{"unknown name", "relay-something-new: x", "", ""},
		{"protocol refusal", "protocol-incompatible: major-mismatch", `{"code":"protocol-incompatible"}`, ""},
		{"nothing", "", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, found := FindRefusal(tc.text, []byte(tc.data), UndispatchedRefusals())
			if got != tc.want || found != (tc.want != "") {
				t.Errorf("got %q, %t; want %q", got, found, tc.want)
			}
		})
	}
}

func TestO10_ForwardedAnswerCountsByCodeAlone(t *testing.T) {
	for data, want := range map[string]bool{
		`{"code":"relay-credential-generation-stale"}`:   true,
		`{"code":"relay-node-unknown"}`:                  false,
		`{"reason":"relay-credential-generation-stale"}`: false,
		`"relay-credential-generation-stale"`:            false,
		``:                                               false,
	} {
		if got := IsForwardedCustodyRefusal([]byte(data)); got != want {
			t.Errorf("IsForwardedCustodyRefusal(%s) = %t", data, got)
		}
	}
}

func TestRefusalIsFoundAgain(t *testing.T) {
	var all Vocabulary
	for _, set := range []Vocabulary{undispatchedRefusals, holdRefusals, applyVPNNetworkRefusals, isolatedRestoreRefusals, transportRefusals} {
		all.names = append(all.names, set.names...)
	}
	rapid.Check(t, func(t *rapid.T) {
		r := &Refusal{Name: rapid.SampledFrom(all.names).Draw(t, "name"), Reason: rapid.String().Draw(t, "reason")}
		if got, found := FindRefusal(r.Text(), nil, all); got != r.Name || !found {
			t.Fatalf("%q: found %q in the text", r.Text(), got)
		}
		if got, found := FindRefusal("x", r.AppendData(nil), all); got != r.Name || !found {
			t.Fatalf("%s: found %q in the data", r.AppendData(nil), got)
		}
	})
}

func TestRefusalTextIsBounded(t *testing.T) {
	for reason, want := range map[string]string{
		"":                             "relay-not-ready",
		"no session":                   "relay-not-ready: no session",
		strings.Repeat("x", 512):       "relay-not-ready: " + strings.Repeat("x", 512),
		strings.Repeat("x", 513):       "relay-not-ready: " + strings.Repeat("x", 512),
		strings.Repeat("é", 300):       "relay-not-ready: " + strings.Repeat("é", 256),
		"x" + strings.Repeat("é", 300): "relay-not-ready: x" + strings.Repeat("é", 255),
	} {
		r := &Refusal{Name: RelayNotReady, Reason: reason}
		if got := r.Text(); got != want || r.Error() != want || !utf8.ValidString(got) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := string((&Refusal{Name: RelayNotReady, Reason: "x"}).AppendData([]byte("d:"))); got != `d:{"code":"relay-not-ready"}` {
		t.Errorf("data %s", got)
	}
}

const refusalText = `{"code":"protocol-incompatible","reason":"major-mismatch",` +
	`"refusing":{"interfacesVersion":"33.0.0","minimumPeerVersion":"33.0.0"},` +
	`"refused":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"}}`

// R10: a protocol refusal is read and described; one with a member more or less, an
// unknown reason, another code or an offer that does not hold is none.
func TestR10_OnlyARealRefusalIsOne(t *testing.T) {
	want := ProtocolRefusal{MajorMismatch, Offer{"33.0.0", "33.0.0"}, Offer{"32.44.0", "32.0.0"}}
	got, ok := ReadProtocolRefusal([]byte(refusalText))
	if got != want || !ok {
		t.Fatalf("got %+v, %t", got, ok)
	}
	if written := string(want.AppendData(nil)); written != refusalText {
		t.Errorf("wrote %s", written)
	}
	const line = "protocol-incompatible: major-mismatch: refusing side speaks 33.0.0 and accepts peers from 33.0.0, " +
		"refused side speaks 32.44.0 and accepts peers from 32.0.0"
	if want.Describe() != line || want.Text() != line || want.Error() != line {
		t.Errorf("described as %q", want.Describe())
	}
	change := func(old, new string) string { return strings.Replace(refusalText, old, new, 1) }
	for name, data := range map[string]string{
		"extra key":            change(`{"code"`, `{"x":1,"code"`),
		"missing reason":       change(`"reason":"major-mismatch",`, ""),
		"unknown reason":       change("major-mismatch", "minor-mismatch"),
		"empty reason":         change("major-mismatch", ""),
		"other code":           change("protocol-incompatible", "protocol-refused"),
		"missing code":         change(`"code":"protocol-incompatible",`, ""),
		"code twice":           change(`"reason"`, `"code":"protocol-incompatible","reason"`),
		"extra key in offer":   change(`{"interfacesVersion":"32`, `{"x":1,"interfacesVersion":"32`),
		"no version in offer":  change("32.44.0", "32.44"),
		"invalid offer":        change(`"32.0.0"`, `"31.0.0"`),
		"missing refused side": change(`,"refused":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"}`, ""),
		"null refusing side":   change(`{"interfacesVersion":"33.0.0","minimumPeerVersion":"33.0.0"}`, "null"),
		"wrapped":              `{"data":` + refusalText + `}`,
		"trailing":             refusalText + "{}",
		"null":                 "null",
		"empty object":         "{}",
		"nothing":              "",
		"text":                 `"protocol-incompatible"`,
	} {
		if got, ok := ReadProtocolRefusal([]byte(data)); ok || got != (ProtocolRefusal{}) {
			t.Errorf("%s: read %+v", name, got)
		}
	}
}

// R10: the refusal of any negotiation reads back as it was written.
func TestR10_RefusalOfANegotiationReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		refusal, compatible := Negotiate(drawOffer(t, "local"), drawOffer(t, "remote"))
		if compatible {
			return
		}
		if got, ok := ReadProtocolRefusal(refusal.AppendData(nil)); got != refusal || !ok {
			t.Fatalf("wrote %+v, read %+v, %t", refusal, got, ok)
		}
	})
}

func FuzzReadProtocolRefusal(f *testing.F) {
	f.Add([]byte(refusalText))
	f.Add([]byte(strings.Replace(refusalText, "major-mismatch", "self-below-peer-minimum", 1)))
	f.Add([]byte(`{"code":"protocol-incompatible"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		refusal, ok := ReadProtocolRefusal(data)
		if !ok {
			return
		}
		if refusal.Refusing.Validate() != nil || refusal.Refused.Validate() != nil {
			t.Fatalf("%+v names invalid offers", refusal)
		}
		if again, ok := ReadProtocolRefusal(refusal.AppendJSON(nil)); again != refusal || !ok {
			t.Fatalf("wrote %+v, read %+v, %t", refusal, again, ok)
		}
	})
}

func FuzzFindRefusal(f *testing.F) {
	f.Add("relay-node-foreign: x", []byte(`{"code":"relay-node-unknown"}`))
	f.Add("", []byte(`{"code":"escrow-run-stale","code":1}`))
	f.Add("Internal server error", []byte(`{}`))
	f.Fuzz(func(t *testing.T, text string, data []byte) {
		among := UndispatchedRefusals()
		name, found := FindRefusal(text, data, among)
		if found != among.Contains(name) || !found && name != "" {
			t.Fatalf("found %q, %t", name, found)
		}
		led := slices.ContainsFunc(among.Names(), func(n RefusalName) bool {
			return text == string(n) || strings.HasPrefix(text, string(n)+":")
		})
		if led != (found && strings.HasPrefix(text, string(name))) {
			t.Fatalf("text %q: found %q", text, name)
		}
		if found && !led && codeOf(data) != name {
			t.Fatalf("found %q in neither text nor data", name)
		}
		IsForwardedCustodyRefusal(data)
	})
}
