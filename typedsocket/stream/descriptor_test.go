package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"
)

const someDigest = "sha256:039058c6f2c0cb492c533b0a4d14ef77cc0f78abccced5287d84a1a2011cfb81"

// run3 is the descriptor that a TypedRequest 8 client wrote
// (typedsocket.md §5.2, RUN 3).
const run3 = `{"_isVirtualStream":true,"protocol":"virtual-stream-v1","streamId":"s2","creatorDirection":"send","integrity":{"algorithm":"sha256","byteLength":3,"digest":"` + someDigest + `"},"transport":{"any":["json",1,null]}}`

func TestReadDescriptorOfTypedRequest8(t *testing.T) {
	d, err := ReadDescriptor([]byte(run3))
	if err != nil {
		t.Fatal(err)
	}
	if d.StreamID != "s2" || d.CreatorDirection != Send || d.ContentType != "" ||
		*d.Integrity != (Integrity{3, someDigest}) || string(d.Transport) != `{"any":["json",1,null]}` {
		t.Errorf("read %+v", d)
	}
	// Written back it is the same text, so ours has their order and form.
	if got := appendDescriptor(nil, d); string(got) != run3 {
		t.Errorf("written as %s", got)
	}
	d, err = ReadDescriptor([]byte(`{"_isVirtualStream":true,"protocol":"virtual-stream-v1","streamId":"s9","creatorDirection":"send","transport":{}}`))
	if err != nil || d.Integrity != nil || string(d.Transport) != "{}" {
		t.Errorf("the download descriptor: %+v, %v", d, err)
	}
}

// member returns a valid descriptor with one member replaced, or removed when
// value is "".
func member(name, value string) string {
	var b strings.Builder
	for _, m := range [][2]string{
		{"_isVirtualStream", "true"}, {"protocol", `"virtual-stream-v1"`}, {"streamId", `"s"`},
		{"creatorDirection", `"receive"`}, {"contentType", `"a/b"`},
		{"integrity", `{"algorithm":"sha256","byteLength":3,"digest":"` + someDigest + `"}`}, {"transport", "null"},
	} {
		if m[0] == name {
			m[1] = value
		}
		if m[1] == "" {
			continue
		}
		b.WriteString(`,"` + m[0] + `":` + m[1])
	}
	return "{" + b.String()[1:] + "}"
}

func integrityWith(algorithm, byteLength, digest string) string {
	return member("integrity", `{"algorithm":`+algorithm+`,"byteLength":`+byteLength+`,"digest":`+digest+`}`)
}

type descriptorCase struct {
	name, raw string
	refused   bool
	fault     string // the member at fault
}

// descriptorCases are the rules of the page, one line each.
func descriptorCases() []descriptorCase {
	quoted := `"` + someDigest + `"`
	long := strings.Repeat("x", 255)
	const all = "" // no member is at fault: the descriptor itself is
	return []descriptorCase{
		{"whole", member("", ""), false, ""},
		{"no contentType", member("contentType", ""), false, ""},
		{"no integrity", member("integrity", ""), false, ""},
		{"unknown member", member("transport", `1,"more":[]`), false, ""},
		{"space around", " \n" + member("", "") + "\t", false, ""},
		{"escaped name", strings.Replace(member("", ""), "streamId", `stream\u0049d`, 1), false, ""},

		{"no marker", member("_isVirtualStream", ""), true, "_isVirtualStream"},
		{"marker 1", member("_isVirtualStream", "1"), true, "_isVirtualStream"},
		{"marker false", member("_isVirtualStream", "false"), true, "_isVirtualStream"},
		{"no protocol", member("protocol", ""), true, "protocol"},
		{"other protocol", member("protocol", `"virtual-stream-v2"`), true, "protocol"},
		{"no streamId", member("streamId", ""), true, "streamId"},
		{"empty streamId", member("streamId", `""`), true, "streamId"},
		{"streamId a number", member("streamId", "1"), true, "streamId"},
		{"streamId of 256", member("streamId", `"`+long+`x"`), false, ""},
		{"streamId of 257", member("streamId", `"`+long+`xx"`), true, "streamId"},
		{"streamId of 255 and a pair", member("streamId", `"`+long+`\ud83d\ude00"`), true, "streamId"},
		{"streamId of 254 and a pair", member("streamId", `"`+long[1:]+`😀"`), false, ""},
		{"streamId with half a pair", member("streamId", `"\ud83d"`), true, all},
		{"no creatorDirection", member("creatorDirection", ""), true, "creatorDirection"},
		{"both directions", member("creatorDirection", `"both"`), true, "creatorDirection"},
		{"direction in upper case", member("creatorDirection", `"Send"`), true, "creatorDirection"},
		{"empty contentType", member("contentType", `""`), true, "contentType"},
		{"contentType null", member("contentType", "null"), true, "contentType"},
		{"contentType a number", member("contentType", "5"), true, "contentType"},
		{"no transport", member("transport", ""), true, "transport"},
		{"transport null", member("transport", "null"), false, ""},
		{"transport a string", member("transport", `"x"`), false, ""},

		{"integrity null", member("integrity", "null"), true, "integrity"},
		{"integrity an array", member("integrity", "[]"), true, "integrity"},
		{"integrity empty", member("integrity", "{}"), true, "integrity.algorithm"},
		{"integrity with more", integrityWith(`"sha256"`, `3,"more":null`, quoted), false, ""},
		{"algorithm in upper case", integrityWith(`"SHA256"`, "3", quoted), true, "integrity.algorithm"},
		{"other algorithm", integrityWith(`"sha512"`, "3", quoted), true, "integrity.algorithm"},
		{"byteLength 0", integrityWith(`"sha256"`, "0", quoted), false, ""},
		{"byteLength -0", integrityWith(`"sha256"`, "-0", quoted), false, ""},
		{"byteLength 3.0", integrityWith(`"sha256"`, "3.0", quoted), false, ""},
		{"byteLength 3e2", integrityWith(`"sha256"`, "3e2", quoted), false, ""},
		{"byteLength 3.5", integrityWith(`"sha256"`, "3.5", quoted), true, "integrity.byteLength"},
		{"byteLength -1", integrityWith(`"sha256"`, "-1", quoted), true, "integrity.byteLength"},
		{"byteLength 2^53-1", integrityWith(`"sha256"`, "9007199254740991", quoted), false, ""},
		{"byteLength 2^53", integrityWith(`"sha256"`, "9007199254740992", quoted), true, "integrity.byteLength"},
		{"byteLength 1e400", integrityWith(`"sha256"`, "1e400", quoted), true, "integrity.byteLength"},
		{"byteLength a string", integrityWith(`"sha256"`, `"3"`, quoted), true, "integrity.byteLength"},
		{"digest without prefix", integrityWith(`"sha256"`, "3", `"`+someDigest[7:]+`"`), true, "integrity.digest"},
		{"digest in upper case", integrityWith(`"sha256"`, "3", `"sha256:`+strings.ToUpper(someDigest[7:])+`"`), true, "integrity.digest"},
		{"digest too short", integrityWith(`"sha256"`, "3", `"`+someDigest[:70]+`"`), true, "integrity.digest"},
		{"digest too long", integrityWith(`"sha256"`, "3", `"`+someDigest+`0"`), true, "integrity.digest"},
		{"digest with a line end", integrityWith(`"sha256"`, "3", `"`+someDigest[:70]+`\n"`), true, "integrity.digest"},
		{"digest null", integrityWith(`"sha256"`, "3", "null"), true, "integrity.digest"},

		{"empty", "", true, all},
		{"null", "null", true, all},
		{"array", "[]", true, all},
		{"two objects", member("", "") + "{}", true, all},
		{"cut off", strings.TrimSuffix(member("", ""), "}"), true, all},
		{"name twice", member("transport", `1,"transport":2`), true, all},
		{"name twice, once escaped", member("transport", `1,"transpor\u0074":2`), true, all},
		{"name twice in transport", member("transport", `{"a":1,"a":2}`), true, all},
		{"invalid UTF-8", member("streamId", "\"\xff\""), true, all},
		{"longest", member("transport", `"`+strings.Repeat("x", MaxDescriptor-len(member("transport", `""`)))+`"`), false, ""},
		{"too long", member("transport", `"`+strings.Repeat("x", 1+MaxDescriptor-len(member("transport", `""`)))+`"`), true, all},
	}
}

func TestReadDescriptorRules(t *testing.T) {
	for _, c := range descriptorCases() {
		d, err := ReadDescriptor([]byte(c.raw))
		if !c.refused {
			if err != nil {
				t.Errorf("%s: refused: %v", c.name, err)
			}
			continue
		}
		var wrong *DescriptorError
		if !errors.As(err, &wrong) || wrong.Member != c.fault {
			t.Errorf("%s: got %+v, %v, want a fault of %q", c.name, d, err, c.fault)
		}
	}
}

func TestTransportIsKeptByteForByte(t *testing.T) {
	for _, transport := range []string{"null", "{}", `{ "a" : 1.0e0 , "\u0062": "\/" }`, "-0", `[1,{"x":[]}]`} {
		d, err := ReadDescriptor([]byte(member("transport", transport)))
		if err != nil || string(d.Transport) != transport {
			t.Errorf("%s became %s, %v", transport, d.Transport, err)
		}
	}
}

func TestOurTransport(t *testing.T) {
	for raw, want := range map[string]bool{
		ourTransport: true, `{"relayStream":1}`: true, `{"relayStream":1.0,"more":{}}`: true, ` {"relayStream" : 1} `: true,
		`{}`: false, `null`: false, `1`: false, `"relayStream"`: false, `[{"relayStream":1}]`: false,
		`{"relayStream":2}`: false, `{"relayStream":"1"}`: false, `{"relayStream":null}`: false, `{"RelayStream":1}`: false,
		`{"relayStream":1,"relayStream":1}`: false,
	} {
		if got := isOurTransport([]byte(raw)); got != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
}

// FuzzReadDescriptor holds the reader against the rules as TypedRequest 8
// writes them in JavaScript, over what encoding/json makes of the text.
func FuzzReadDescriptor(f *testing.F) {
	f.Add([]byte(run3))
	f.Add([]byte(member("", "")))
	f.Add([]byte(member("transport", ourTransport)))
	f.Add([]byte(member("streamId", `"\ud83d\ude00"`)))
	f.Add([]byte(integrityWith(`"sha256"`, "3.0e0", `"`+someDigest+`"`)))
	f.Add([]byte(integrityWith(`"sha256"`, "-1", `""`)))
	f.Add([]byte(`{"a":1,"a":2}`))
	digest := regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := ReadDescriptor(raw)
		if err != nil {
			var wrong *DescriptorError
			if !errors.As(err, &wrong) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal(raw, &all); err != nil {
			t.Fatalf("accepted what is no JSON: %v", err)
		}
		var marker bool
		var protocol, id, direction, contentType string
		get := func(name string, into any) { json.Unmarshal(all[name], into) }
		get("_isVirtualStream", &marker)
		get("protocol", &protocol)
		get("streamId", &id)
		get("creatorDirection", &direction)
		get("contentType", &contentType)
		units := len(utf16.Encode([]rune(id)))
		_, typed := all["contentType"]
		if !marker || protocol != "virtual-stream-v1" || units < 1 || units > 256 ||
			direction != "send" && direction != "receive" || typed && contentType == "" {
			t.Fatalf("accepted %s", raw)
		}
		if id != d.StreamID || direction != string(d.CreatorDirection) || contentType != d.ContentType {
			t.Fatalf("%s was read as %+v", raw, d)
		}
		if want, ok := all["transport"]; !ok || !bytes.Equal(bytes.TrimSpace(want), d.Transport) {
			t.Fatalf("transport %s was read as %s", want, d.Transport)
		}
		if _, given := all["integrity"]; given != (d.Integrity != nil) {
			t.Fatalf("integrity of %s was read as %+v", raw, d.Integrity)
		}
		if d.Integrity != nil && (!digest.MatchString(d.Integrity.Digest) || d.Integrity.ByteLength < 0 || d.Integrity.ByteLength > MaxTotal) {
			t.Fatalf("integrity %+v", d.Integrity)
		}
		again, err := ReadDescriptor(appendDescriptor(nil, d))
		if err != nil || again.StreamID != d.StreamID || !bytes.Equal(again.Transport, d.Transport) {
			t.Fatalf("written and read again: %+v, %v", again, err)
		}
	})
}
