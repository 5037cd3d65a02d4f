package rig

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"serve.zone/relay/simulate"
)

func TestMarkersAreFoundByName(t *testing.T) {
	s := newSecrets()
	a, b := s.mark("bearer"), s.mark("token of node-a")
	if len(a) != 64 || a == b || strings.Trim(a, "0123456789abcdef") != "" {
		t.Fatalf("markers %s and %s", a, b)
	}
	got := s.find("here", []byte("x "+a+" y "+b[:40]+" "+a))
	want := []Leak{{"bearer", plain, "here"}, {"token of node-a", plain, "here"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("leaks (-want +got):\n%s", diff)
	}
	if text := got[0].String(); text != "bearer (plain) in here" {
		t.Errorf("shown as %q", text)
	}
	// Another rig's are none of its business, and neither is what only looks alike.
	for _, text := range []string{newSecrets().mark("x"), strings.Repeat("0123456789abcdef", 4), s.root[:rootLength-1]} {
		if got := s.find("here", []byte(text)); len(got) != 0 {
			t.Errorf("found %v in %s", got, text)
		}
	}
}

// forms are ways in which a secret can turn up.
var forms = map[string]func([]byte) string{
	"plain":              func(b []byte) string { return string(b) },
	"upper case":         func(b []byte) string { return string(upper(b)) },
	"hex":                func(b []byte) string { return hex.EncodeToString(b) },
	"upper-case hex":     func(b []byte) string { return fmt.Sprintf("%X", b) },
	"base64":             func(b []byte) string { return base64.StdEncoding.EncodeToString(b) },
	"base64 of URLs":     func(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) },
	"decimal bytes":      func(b []byte) string { return fmt.Sprint(b) },
	"a JSON array":       func(b []byte) string { return strings.ReplaceAll(fmt.Sprint(b), " ", ",") },
	"bytes of Go syntax": func(b []byte) string { return fmt.Sprintf("%#v", b) },
}

// Any cut of a marker that is long enough is found, whatever stands around it and
// however the whole was encoded.
func TestCutMarkersAreFound(t *testing.T) {
	s := newSecrets()
	marker := s.mark("secret")
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.IntRange(2*(rootLength+numberLength)-numberLength-1, len(marker)).Draw(t, "length")
		from := rapid.IntRange(0, len(marker)-length).Draw(t, "from")
		form := rapid.SampledFrom(slices.Sorted(maps.Keys(forms))).Draw(t, "form")
		before := rapid.StringMatching(`[a-z ]{0,5}`).Draw(t, "before")
		text := "around " + forms[form]([]byte(before+marker[from:from+length]+" behind")) + " around"
		if len(s.find("here", []byte(text))) == 0 {
			t.Fatalf("not found in %s", text)
		}
	})
}

// A secret of foreign making is found by any cut of twice a piece, less one byte.
func TestCutForeignSecretsAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.SliceOfN(rapid.Byte(), 2*pieceLength-1, 80).Draw(t, "secret")
		s := newSecrets()
		if err := s.add("key", secret); err != nil {
			t.Fatal(err)
		}
		length := rapid.IntRange(2*pieceLength-1, len(secret)).Draw(t, "length")
		from := rapid.IntRange(0, len(secret)-length).Draw(t, "from")
		form := rapid.SampledFrom(slices.Sorted(maps.Keys(forms))).Draw(t, "form")
		text := "around " + forms[form](append([]byte("ab"), secret[from:from+length]...))
		got := s.find("here", []byte(text))
		if len(got) == 0 || got[0].Secret != "key" {
			t.Fatalf("found %v", got)
		}
	})
}

func TestShortSecretsAreRefused(t *testing.T) {
	s := newSecrets()
	if err := s.add("key", []byte("elevenbytes")); err == nil {
		t.Error("a secret that is found everywhere is taken")
	}
	if err := s.add("key", []byte("twelve bytes")); err != nil {
		t.Error(err)
	}
	if got := s.find("here", []byte("these are twelve bytes.")); len(got) != 1 {
		t.Errorf("found %v", got)
	}
}

func TestHarvest(t *testing.T) {
	s := newSecrets()
	key := bytes.Repeat([]byte{1, 2, 3, 4}, 8)
	frames := []simulate.Frame{
		{Text: []byte(`{"response":{"identity":{"name":"jwt","jwt":"sim.0011223344.556677"},"list":["jwt",{"j\u0077t":"escaped name, found"}]}}`)},
		{Text: []byte(`{"response":{"clientKeyPair":{"publicKey":"public-public","privateKey":"` + base64.StdEncoding.EncodeToString(key) + `"}}}`)},
		{Text: []byte(`{"jwt":["in a list, not read"],"privateKey":"short"}`)},
		{Text: []byte(`{"jwt":"cut off, and the rest is no JSON`)},
		{Binary: true, Text: []byte(`{"jwt":"a frame of a stream"}`)},
	}
	if err := s.harvest(frames); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"sim.0011223344.556677":                      true,
		"escaped name, found":                        true,
		base64.StdEncoding.EncodeToString(key):       true,
		hex.EncodeToString(key):                      true,
		"public-public in a list, not read":          false,
		"a frame of a stream and the rest is no JSO": false,
	} {
		if got := s.find("here", []byte(text)); (len(got) > 0) != want {
			t.Errorf("%s: found %v", text, got)
		}
	}
	patterns := len(s.patterns)
	if err := s.harvest(frames); err != nil || len(s.patterns) != patterns {
		t.Errorf("a second harvest: %v, %d patterns instead of %d", err, len(s.patterns), patterns)
	}
}
