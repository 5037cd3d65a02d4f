package contract

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	nonceText          = "bm9uY2Utb2YtMTJi"
	envelopeText       = `{"version":1,"recipientKeyId":"key-1","ephemeralPublicKey":"` + keyText + `","nonce":"` + nonceText + `","ciphertext":"` + keyText + `","contextDigest":"` + zeroDigest + `"}`
	recipientStateText = `{"generation":3,"recipients":[{"recipientKeyId":"key-1","publicKey":"` + keyText + `","generation":2,"state":"retiring"},` +
		`{"recipientKeyId":"key-2","publicKey":"` + keyText + `","generation":3,"state":"active"}]}`
	beginText         = `{"expectedGeneration":2,"recipientKeyId":"key-1","publicKey":"` + keyText + `"}`
	beginAnswerText   = `{"generation":3,"expiresAt":1767225600000,"envelope":` + envelopeText + `}`
	completeText      = `{"recipientKeyId":"key-1","generation":3,"challenge":"` + keyText + `"}`
	materialText      = `{"recipientKeyId":"key-1","generation":3}`
	materialReplyText = `{"envelope":` + envelopeText + `}`
)

func readSecretState(body []byte) (SecretRecipientState, error) {
	return ReadSecretRecipientState(MethodGetSecretRecipientState, body)
}

// secretShapes are the bodies of this duty, none of which names an unknown
// member.
var secretShapes = map[string]struct {
	body string
	read func([]byte) error
}{
	"state":    {recipientStateText, errorOf(readSecretState)},
	"begin":    {beginText, errorOf(ReadBeginRecipientRequest)},
	"begun":    {beginAnswerText, errorOf(ReadBeginRecipientAnswer)},
	"complete": {completeText, errorOf(ReadCompleteRecipientRequest)},
	"material": {materialText, errorOf(ReadControlCredentialRequest)},
	"reply":    {materialReplyText, errorOf(ReadControlCredentialAnswer)},
	"token":    {`{"token":"` + zeroSHA + `"}`, errorOf(ReadControlTokenPlaintext)},
}

// tolerantSecrets are peers' accepted answers (contract O35).
var tolerantSecrets = map[string]bool{"state": true, "begun": true, "reply": true}

// R04: a member more is refused at every level of the messages that bear secrets, and
// not even its name is repeated.
func TestR04_SecretMessages(t *testing.T) {
	for name, tc := range secretShapes {
		if err := tc.read([]byte(tc.body)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for at, c := range tc.body {
			if c != '{' {
				continue
			}
			body := tc.body[:at+1] + `"marked":1,` + tc.body[at+1:]
			reasons := reasonsIn(t, tc.read([]byte(body)))
			if at == 0 && tolerantSecrets[name] {
				if len(reasons) != 0 {
					t.Errorf("%s: a later release's member is refused: %q", name, reasons)
				}
				continue
			}
			if len(reasons) != 1 || !strings.HasSuffix(reasons[0], ": unknown member") {
				t.Errorf("%s: %s: %q", name, body, reasons)
			}
		}
	}
}

// R89: whatever is wrong with a body that bears a token, no reason holds any of it.
func TestR89_SecretReasonsQuoteNothing(t *testing.T) {
	const marker = "markedsecret"
	for name, tc := range secretShapes {
		for at, c := range tc.body {
			if c != ':' && c != '"' {
				continue
			}
			for _, planted := range []string{marker, `"` + marker + `"`, `"` + marker + `":`, `{"` + marker + `":"` + marker + `"},`} {
				err := tc.read([]byte(tc.body[:at+1] + planted + tc.body[at+1:]))
				if err != nil && strings.Contains(fmt.Sprint(err, reasonsIn(t, err)), marker) {
					t.Errorf("%s at %d: %v", name, at, err)
				}
			}
		}
	}
}

func TestSealedEnvelope(t *testing.T) {
	sealed := func(n int) string {
		return with(t, envelopeText, `"ciphertext":"`+keyText+`"`, `"ciphertext":"`+base64.StdEncoding.EncodeToString(make([]byte, n))+`"`)
	}
	read := func(body []byte) (SealedEnvelope, error) {
		return readAs[SealedEnvelope]("envelope", body, secretBearing)
	}
	checkBodies(t, read, []bodyCase{
		{"whole", envelopeText, nil},
		{"missing", `{}`, []string{"version: is missing", "recipientKeyId: is missing", "ephemeralPublicKey: is missing",
			"nonce: is missing", "ciphertext: is missing", "contextDigest: is missing"}},
		{"twice", with(t, envelopeText, `"nonce"`, `"n\u006fnce":"","nonce"`), []string{"nonce: is given twice"}},
		{"tag alone", sealed(16), nil},
		{"less than a tag", sealed(15), []string{"ciphertext: is not canonical base64 of 16 to 32768 bytes"}},
		{"largest", sealed(32 << 10), nil},
		{"larger", sealed(32<<10 + 1), []string{"ciphertext: is not canonical base64 of 16 to 32768 bytes"}},
		{"nonce of 11 bytes", with(t, envelopeText, nonceText, "bm9uY2Utb2YtMTE="), []string{"nonce: is not canonical base64 of 12 bytes"}},
		{"nonce of 13 bytes", with(t, envelopeText, nonceText, nonceText+"AA=="), []string{"nonce: is not canonical base64 of 12 bytes"}},
		{"nonce with a line end", with(t, envelopeText, nonceText, nonceText[:8]+`\n`+nonceText[8:]), []string{"nonce: is not canonical base64 of 12 bytes"}},
		{"rules", `{"version":2,"recipientKeyId":"-","ephemeralPublicKey":"AAAA","nonce":"","ciphertext":"!","contextDigest":"` + zeroSHA + `"}`, []string{
			"version: is not 1", "recipientKeyId: is not a canonical identifier", "ephemeralPublicKey: is not canonical base64 of 32 bytes",
			"nonce: is not canonical base64 of 12 bytes", "ciphertext: is not canonical base64 of 16 to 32768 bytes", "contextDigest: is not a digest"}},
	})
}

func TestSecretRecipientState(t *testing.T) {
	recipients := func(generation int, list ...string) string {
		return fmt.Sprintf(`{"generation":%d,"recipients":[%s]}`, generation, strings.Join(list, ","))
	}
	one := func(id string, generation int, state string) string {
		return fmt.Sprintf(`{"recipientKeyId":%q,"publicKey":%q,"generation":%d,"state":%q}`, id, keyText, generation, state)
	}
	many := func(n int) string {
		var all []string
		for i := 1; i < n; i++ {
			all = append(all, one(fmt.Sprint("k", i), i, "retiring"))
		}
		return recipients(n, append(all, one("last", n, "active"))...)
	}
	checkBodies(t, readSecretState, []bodyCase{
		{"nothing enrolled", recipients(0), nil},
		{"whole", recipientStateText, nil},
		{"gap", recipients(9, one("a", 3, "retiring"), one("b", 9, "active")), nil},
		{"zero with recipients", recipients(0, one("a", 1, "active")), []string{"recipients: is not empty at generation zero", "recipients[0].generation: is not that of the state"}},
		{"none after zero", recipients(1), []string{"recipients: is empty after generation zero"}},
		{"below zero", recipients(-1), []string{"generation: is not a count", "recipients: is empty after generation zero"}},
		{"none active", recipients(1, one("a", 1, "retiring")), []string{"recipients[0].state: is not active of the last recipient alone"}},
		{"two active", recipients(2, one("a", 1, "active"), one("b", 2, "active")), []string{"recipients[0].state: is not active of the last recipient alone"}},
		{"unknown state", recipients(2, one("a", 1, "retired"), one("b", 2, "active")), []string{"recipients[0].state: is not a known state"}},
		{"another generation", recipients(3, one("a", 2, "active")), []string{"recipients[0].generation: is not that of the state"}},
		{"falling", recipients(1, one("a", 2, "retiring"), one("b", 1, "active")), []string{"recipients[1].generation: is not after the one before it"}},
		{"one key twice", recipients(2, one("a", 1, "retiring"), one("a", 2, "active")), []string{"recipients[1].recipientKeyId: repeats an earlier recipient"}},
		{"most", many(64), nil},
		{"more", many(4098), []string{"recipients: has more elements than are read"}},
		{"rules", `{"generation":1,"recipients":[{"recipientKeyId":".","publicKey":"","generation":0,"state":"active"}]}`, []string{
			"recipients[0].recipientKeyId: is not a canonical identifier", "recipients[0].publicKey: is not canonical base64 of 32 bytes",
			"recipients[0].generation: is not a counter", "recipients[0].generation: is not after the one before it", "recipients[0].generation: is not that of the state"}},
		{"missing", `{}`, []string{"generation: is missing", "recipients: is missing"}},
		{"missing inside", `{"generation":1,"recipients":[{}]}`, []string{"recipients[0].recipientKeyId: is missing", "recipients[0].publicKey: is missing",
			"recipients[0].generation: is missing", "recipients[0].state: is missing"}},
		{"twice", `{"generation":0,"g\u0065neration":0,"recipients":[]}`, []string{"generation: is given twice"}},
	})
	whole, err := readSecretState([]byte(recipientStateText))
	if active, ok := whole.Active(); err != nil || !ok || active.RecipientKeyID != "key-2" {
		t.Errorf("active is %v, %v, %v", active, ok, err)
	}
	if active, ok := (SecretRecipientState{}).Active(); ok || active != (SecretRecipient{}) {
		t.Errorf("generation zero has %v", active)
	}
}

// R88: the messages that enroll a recipient are read by their rules, each breach by its
// path.
func TestR88_EnrollmentMessages(t *testing.T) {
	checkBodies(t, ReadBeginRecipientRequest, []bodyCase{
		{"missing", `{}`, []string{"expectedGeneration: is missing", "recipientKeyId: is missing", "publicKey: is missing"}},
		{"first", with(t, beginText, `:2`, `:0`), nil},
		{"last", with(t, beginText, `:2`, `:9007199254740990`), nil},
		{"no successor", with(t, beginText, `:2`, `:9007199254740991`), []string{"expectedGeneration: is not a count with a successor"}},
		{"twice", with(t, beginText, `"publicKey"`, `"publicK\u0065y":"","publicKey"`), []string{"publicKey: is given twice"}},
		{"rules", `{"expectedGeneration":-1,"recipientKeyId":"","publicKey":"` + keyText[:43] + `"}`, []string{"expectedGeneration: is not a count with a successor",
			"recipientKeyId: is not a canonical identifier", "publicKey: is not canonical base64 of 32 bytes"}},
	})
	checkBodies(t, ReadBeginRecipientAnswer, []bodyCase{
		{"missing", `{}`, []string{"generation: is missing", "expiresAt: is missing", "envelope: is missing"}},
		{"rules", `{"generation":0,"expiresAt":-1,"envelope":` + with(t, envelopeText, `:1,`, `:0,`) + `}`, []string{"generation: is not a counter",
			"expiresAt: is not a time in unix milliseconds", "envelope.version: is not 1"}},
		{"twice", with(t, beginAnswerText, `"envelope"`, `"\u0065nvelope":{},"envelope"`), append([]string{
			"envelope.version: is missing", "envelope.recipientKeyId: is missing", "envelope.ephemeralPublicKey: is missing",
			"envelope.nonce: is missing", "envelope.ciphertext: is missing", "envelope.contextDigest: is missing"}, "envelope: is given twice")},
	})
	checkBodies(t, ReadCompleteRecipientRequest, []bodyCase{
		{"missing", `{}`, []string{"recipientKeyId: is missing", "generation: is missing", "challenge: is missing"}},
		{"31 bytes", with(t, completeText, keyText, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg=="), []string{"challenge: is not canonical base64 of 32 bytes"}},
		{"33 bytes", with(t, completeText, keyText, keyText[:43]+"g"), []string{"challenge: is not canonical base64 of 32 bytes"}},
		{"spare bits", with(t, completeText, "h8=", "h9="), []string{"challenge: is not canonical base64 of 32 bytes"}},
		{"twice", with(t, completeText, `"challenge"`, `"ch\u0061llenge":"","challenge"`), []string{"challenge: is given twice"}},
		{"rules", `{"recipientKeyId":"","generation":0,"challenge":""}`, []string{"recipientKeyId: is not a canonical identifier",
			"generation: is not a counter", "challenge: is not canonical base64 of 32 bytes"}},
	})
	checkBodies(t, ReadControlCredentialRequest, []bodyCase{
		{"missing", `{}`, []string{"recipientKeyId: is missing", "generation: is missing"}},
		{"twice", with(t, materialText, `"generation"`, `"gener\u0061tion":1,"generation"`), []string{"generation: is given twice"}},
		{"rules", `{"recipientKeyId":"","generation":0}`, []string{"recipientKeyId: is not a canonical identifier", "generation: is not a counter"}},
	})
	checkBodies(t, ReadControlCredentialAnswer, []bodyCase{
		{"missing", `{}`, []string{"envelope: is missing"}},
		{"null", `{"envelope":null}`, []string{"envelope: is not an object"}},
		{"rules", with(t, materialReplyText, nonceText, ""), []string{"envelope.nonce: is not canonical base64 of 12 bytes"}},
	})
}

// R88: an answer counts only for the key and the generation that were asked for.
func TestR88_AnswersAgainstTheirRequests(t *testing.T) {
	begin, err := ReadBeginRecipientAnswer([]byte(beginAnswerText))
	if err != nil {
		t.Fatal(err)
	}
	material := ControlCredentialAnswer{begin.Envelope}
	for _, tc := range []struct {
		got, want []string
	}{
		{begin.ValidateFor(BeginRecipientRequest{2, "key-1", keyText}), nil},
		{begin.ValidateFor(BeginRecipientRequest{3, "key-2", keyText}), []string{"generation: does not follow the expected one", "envelope.recipientKeyId: is not the key that was named"}},
		{material.ValidateFor(ControlCredentialRequest{"key-1", 3}), nil},
		{material.ValidateFor(ControlCredentialRequest{"key-2", 3}), []string{"envelope.recipientKeyId: is not the key that was named"}},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Error(diff)
		}
	}
}

// R89: a token is 32 to 4,096 bytes without whitespace, in the one exact plaintext;
// anything else is refused by a reason that quotes nothing.
func TestR89_ControlToken(t *testing.T) {
	const rule = "token: is not 32 to 4096 bytes of utf-8 without whitespace"
	token := func(s string) string { return string(AppendControlTokenPlaintext(nil, Secret(s))) }
	checkBodies(t, ReadControlTokenPlaintext, []bodyCase{
		{"32 bytes", token(strings.Repeat("t", 32)), nil},
		{"31 bytes", token(strings.Repeat("t", 31)), []string{rule}},
		{"4096 bytes", token(strings.Repeat("t", 4096)), nil},
		{"4097 bytes", token(strings.Repeat("t", 4097)), []string{rule}},
		{"4096 bytes of letters of two", token(strings.Repeat("é", 2048)), nil},
		{"a space", token(strings.Repeat("t", 32) + " t"), []string{rule}},
		{"a line end", token(strings.Repeat("t", 32) + "\n"), []string{rule}},
		{"a no-break space", token(strings.Repeat("t", 32) + "\u00a0"), []string{rule}},
		{"escapes that are exact", token(strings.Repeat("t", 32) + `"\` + "\x01</é\u007f"), nil},
		{"an escape that is not", `{"token":"` + strings.Repeat("t", 32) + `\u0074"}`, []string{"body: is not the exact plaintext of its token"}},
		{"an escaped slash", `{"token":"` + strings.Repeat("t", 32) + `\/"}`, []string{"body: is not the exact plaintext of its token"}},
		{"spacing", `{"token": "` + strings.Repeat("t", 32) + `"}`, []string{"body: is not the exact plaintext of its token"}},
		{"a line after it", token(strings.Repeat("t", 32)) + "\n", []string{"body: is not the exact plaintext of its token"}},
		{"unknown", `{"token":"` + strings.Repeat("t", 32) + `","marked":1}`, []string{"body: unknown member"}},
		{"twice", `{"token":"` + strings.Repeat("t", 32) + `","tok\u0065n":""}`, []string{"token: is given twice"}},
		{"missing", `{}`, []string{"token: is missing"}},
		{"no text", `{"token":1}`, []string{"token: is not a string"}},
		{"nothing", ``, []string{"body: is not well-formed json"}},
	})
	plaintext := []byte(token(strings.Repeat("t", 40)))
	got, err := ReadControlTokenPlaintext(plaintext)
	clear(plaintext)
	if err != nil || string(got) != strings.Repeat("t", 40) {
		t.Errorf("got %q, %v", string(got), err)
	}
	if shown := fmt.Sprintf("%v %s %q %x %+v", got, got, got, got, struct{ T Secret }{got}); strings.Contains(shown, "tt") || strings.Contains(shown, "7474") {
		t.Error(shown)
	}
}

func drawEnvelope(t *rapid.T) SealedEnvelope {
	bytesOf := func(least, most int) string {
		return base64.StdEncoding.EncodeToString(rapid.SliceOfN(rapid.Byte(), least, most).Draw(t, "bytes"))
	}
	return SealedEnvelope{1, drawIdentifier(t, "key"), drawNoiseKey(t, "ephemeral"), bytesOf(12, 12), Secret(bytesOf(16, 60)), drawDigest(t, "context")}
}

func TestSecretWritten(t *testing.T) {
	checkWritten(t, func(t *rapid.T) SecretRecipientState {
		x := SecretRecipientState{Recipients: []SecretRecipient{}}
		for i := range rapid.IntRange(0, 4).Draw(t, "recipients") {
			x.Generation += rapid.Int64Range(1, 1<<40).Draw(t, "step")
			x.Recipients = append(x.Recipients, SecretRecipient{fmt.Sprint("k", i), drawNoiseKey(t, "key"), x.Generation, RecipientRetiring})
		}
		if n := len(x.Recipients); n > 0 {
			x.Recipients[n-1].State = RecipientActive
		}
		return x
	}, readSecretState)
	checkWritten(t, func(t *rapid.T) BeginRecipientRequest {
		return BeginRecipientRequest{rapid.Int64Range(0, MaximumSafeInteger-1).Draw(t, "generation"), drawIdentifier(t, "key"), drawNoiseKey(t, "public")}
	}, ReadBeginRecipientRequest)
	checkWritten(t, func(t *rapid.T) BeginRecipientAnswer {
		return BeginRecipientAnswer{drawCounter(t, "generation"), drawCount(t, "expires"), drawEnvelope(t)}
	}, ReadBeginRecipientAnswer)
	checkWritten(t, func(t *rapid.T) CompleteRecipientRequest {
		return CompleteRecipientRequest{drawIdentifier(t, "key"), drawCounter(t, "generation"), Secret(drawNoiseKey(t, "challenge"))}
	}, ReadCompleteRecipientRequest)
	checkWritten(t, func(t *rapid.T) ControlCredentialRequest {
		return ControlCredentialRequest{drawIdentifier(t, "key"), drawCounter(t, "generation")}
	}, ReadControlCredentialRequest)
	checkWritten(t, func(t *rapid.T) ControlCredentialAnswer { return ControlCredentialAnswer{drawEnvelope(t)} }, ReadControlCredentialAnswer)
	rapid.Check(t, func(t *rapid.T) {
		want := Secret(rapid.StringOfN(rapid.SampledFrom([]rune("aZ0\"\\\x00\x1f/<é\U0001F600")), 32, 200, 4096).Draw(t, "token"))
		got, err := ReadControlTokenPlaintext(AppendControlTokenPlaintext(nil, want))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Error(err, diff)
		}
	})
}

func FuzzReadSecretRecipientState(f *testing.F) {
	fuzzReader(f, readSecretState, recipientStateText, `{"generation":0,"recipients":[]}`)
}

func FuzzReadBeginRecipientRequest(f *testing.F) {
	fuzzReader(f, ReadBeginRecipientRequest, beginText)
}

func FuzzReadBeginRecipientAnswer(f *testing.F) {
	fuzzReader(f, ReadBeginRecipientAnswer, beginAnswerText)
}

func FuzzReadCompleteRecipientRequest(f *testing.F) {
	fuzzReader(f, ReadCompleteRecipientRequest, completeText)
}

func FuzzReadControlCredentialRequest(f *testing.F) {
	fuzzReader(f, ReadControlCredentialRequest, materialText)
}

func FuzzReadControlCredentialAnswer(f *testing.F) {
	fuzzReader(f, ReadControlCredentialAnswer, materialReplyText)
}

func FuzzReadControlTokenPlaintext(f *testing.F) {
	f.Add([]byte(`{"token":"` + zeroSHA + `"}`))
	f.Add([]byte(`{"token":"` + zeroSHA + `\u00e9\/"}`))
	f.Fuzz(func(t *testing.T, plaintext []byte) {
		token, err := ReadControlTokenPlaintext(plaintext)
		if err != nil {
			checkReasons(t, err)
			return
		}
		if exact := AppendControlTokenPlaintext(nil, token); !IsControlToken(token) || string(exact) != string(plaintext) {
			t.Errorf("%q reads as %q", plaintext, string(token))
		}
	})
}

// refusedSecret is a message that is refused after its secret was read.
type refusedSecret struct{ text Secret }

// lastRefused is the memory of the secret that was judged last.
var lastRefused Secret

func (x *refusedSecret) shape() valueReader { return object(required("text", secretText(&x.text))) }

func (x *refusedSecret) Validate() []string {
	lastRefused = x.text
	return []string{"text: is never right"}
}

func (x *refusedSecret) Zero() { x.text.Zero() }

// R74: of a message that is refused no copy of its secret stays, whether the text
// was spelled with escapes or not.
func TestR74_ARefusedMessageLeavesNoSecret(t *testing.T) {
	for _, body := range []string{`{"text":"marked"}`, `{"text":"mark\u0065d"}`} {
		x, err := readAs[refusedSecret]("test", []byte(body), 0)
		if err == nil || x.text != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if string(lastRefused) != "\x00\x00\x00\x00\x00\x00" {
			t.Errorf("%s: %q is left", body, []byte(lastRefused))
		}
	}
	for _, secret := range []interface{ Zero() }{
		IngressRegistration{}, RouteTable{}, PushRouteTableRequest{}, RouteTableAnswer{}, IdentityExchangeAnswer{}, IsolatedRestoreRequest{},
	} {
		secret.Zero() // of nothing, too
	}
}
