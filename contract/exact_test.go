package contract

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// checkExactKeys proves that a reader takes exactly the members of body: an
// unknown member is put into every object, and every member is written twice;
// each of these bodies must be refused with a reason that names the place.
// Objects beneath the paths in opaque ("control", "nodes[0].binding") are left
// alone.
func checkExactKeys(t *testing.T, body string, opaque []string, read func([]byte) error) {
	t.Helper()
	checkKeys(t, body, opaque, false, read)
}

// checkAnswerKeys proves the same of a peer's accepted answer, which may hold
// members of a later release beside those that are read (contract O35).
func checkAnswerKeys(t *testing.T, body string, opaque []string, read func([]byte) error) {
	t.Helper()
	checkKeys(t, body, opaque, true, read)
}

func checkKeys(t *testing.T, body string, opaque []string, tolerant bool, read func([]byte) error) {
	t.Helper()
	if err := read([]byte(body)); err != nil {
		t.Fatalf("the untouched body is refused: %v", err)
	}
	refusedWith := func(changed, want string) {
		t.Helper()
		if reasons := reasonsIn(t, read([]byte(changed))); !slices.Contains(reasons, want) {
			t.Errorf("%s: got %q, want %q", changed, reasons, want)
		}
	}
	dec := jsontext.NewDecoder(strings.NewReader(body))
	for {
		token, err := dec.ReadToken()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		at := int(dec.InputOffset())
		path := dottedPath(dec.StackPointer())
		if slices.ContainsFunc(opaque, func(o string) bool {
			return path == o || strings.HasPrefix(path, o+".") || strings.HasPrefix(path, o+"[")
		}) {
			continue
		}
		kind, index := dec.StackIndex(dec.StackDepth())
		switch {
		case token.Kind() == '{':
			comma := ","
			if dec.PeekKind() == '}' {
				comma = ""
			}
			where := path
			if where == "" {
				where = "body"
			}
			changed := body[:at] + `"unknown_member":{"x":[1]}` + comma + body[at:]
			if tolerant && path == "" {
				if err := read([]byte(changed)); err != nil {
					t.Errorf("%s: a later release's member is refused: %v", changed, err)
				}
				continue
			}
			refusedWith(changed, where+`: unknown member "unknown_member"`)
		case kind == '{' && index%2 == 1: // a member's name was read
			name := token.String()
			value := bytes.TrimLeft([]byte(body[at:]), " \t\r\n:")
			inner := jsontext.NewDecoder(bytes.NewReader(value))
			once, err := inner.ReadValue()
			if err != nil {
				t.Fatal(err)
			}
			end := len(body) - len(value) + len(once)
			again := body[:end] + "," + string(appendString(nil, name)) + ":" + string(once) + body[end:]
			refusedWith(again, path+": is given twice")
		}
	}
}

// dottedPath turns a JSON pointer into the form in which reasons name places.
func dottedPath(pointer jsontext.Pointer) string {
	path := ""
	for token := range pointer.Tokens() {
		switch {
		case strings.Trim(token, "0123456789") == "":
			path += "[" + token + "]"
		case path == "":
			path = token
		default:
			path += "." + token
		}
	}
	return path
}

// R04: references, offers, protocol refusals and empty bodies refuse a member more at
// each of their levels, with its path.
func TestR04_ExactKeysOfCoreShapes(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, tc := range map[string]struct {
		body string
		read func([]byte) error
	}{
		"reference": {`{"id":"a","generation":1,"digest":"` + digest + `"}`,
			func(b []byte) error { _, err := readAs[Reference]("reference", b, 0); return err }},
		"offer": {`{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"}`,
			func(b []byte) error { _, err := readAs[Offer]("offer", b, 0); return err }},
		"protocol refusal": {refusalText,
			func(b []byte) error { _, err := readAs[protocolRefusalBody]("protocol refusal", b, 0); return err }},
		"empty": {` { } `,
			func(b []byte) error { _, err := ReadEmpty("nothing", b); return err }},
	} {
		t.Run(name, func(t *testing.T) { checkExactKeys(t, tc.body, nil, tc.read) })
	}
	t.Run("sample", func(t *testing.T) {
		checkExactKeys(t, `{"node":"a","seq":1,"hub":{"id":"b","generation":2,"digest":"c"},"refs":[{"id":"","generation":0,"digest":""}],`+
			`"opaque":{"a":{"b":1}},"names":["x"]}`, []string{"opaque"},
			func(b []byte) error { _, err := readAs[sample]("sample", b, 0); return err })
	})
}
