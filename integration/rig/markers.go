package rig

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
)

const (
	// rootLength and numberLength are the hexadecimal digits of a marker: 48 random
	// bits that all markers of a rig share, so that one search finds any of them, and
	// the number of the one. Output has no other run of 48 bits by chance.
	rootLength   = 12
	numberLength = 4
	// repeats makes a marker 64 digits long, as bearers are, and lets every cut of
	// 27 digits hold the whole root.
	repeats = 4

	// pieceLength is how much of a secret of foreign making is searched for: a leak of
	// twice as much, less one byte, holds such a piece wherever it was cut.
	pieceLength = 12
)

// Leak is a secret that was found where none may be.
type Leak struct {
	Secret string // its name, never its value
	Form   string // how it was spelled: plain, hex, base64 and so on
	Where  string
}

// String returns one line for a person.
func (l Leak) String() string { return fmt.Sprintf("%s (%s) in %s", l.Secret, l.Form, l.Where) }

// secrets are the secrets of one rig.
type secrets struct {
	root string

	mu       sync.Mutex
	names    []string // of the marked ones, by number
	patterns []pattern
	known    map[string]bool // of foreign making
}

// pattern is a text that shows a secret.
type pattern struct {
	secret string // "" for the root, which the number behind it names
	form   string
	text   []byte
}

func newSecrets() *secrets {
	b := make([]byte, rootLength/2)
	rand.Read(b)
	s := &secrets{root: hex.EncodeToString(b), known: map[string]bool{}}
	s.patterns = spellings("", []byte(s.root))
	return s
}

// mark makes a secret: 64 lower-case hexadecimal digits that are recognised
// wherever 27 of them in a row turn up.
func (s *secrets) mark(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.names) >= 1<<(4*numberLength) {
		panic("rig: more secrets than a marker has numbers")
	}
	s.names = append(s.names, name)
	return strings.Repeat(fmt.Sprintf("%s%0*x", s.root, numberLength, len(s.names)-1), repeats)
}

// add makes a secret of foreign making known. One that is too short to be told
// from other text is refused.
func (s *secrets) add(name string, secret []byte) error {
	if len(secret) < pieceLength {
		return fmt.Errorf("rig: the secret %s has fewer than %d bytes", name, pieceLength)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[string(secret)] {
		return nil
	}
	s.known[string(secret)] = true
	for at := 0; at+pieceLength <= len(secret); at += pieceLength {
		s.patterns = append(s.patterns, spellings(name, secret[at:at+pieceLength])...)
	}
	return nil
}

// find returns the secrets that a text holds, each once for a form.
func (s *secrets) find(where string, text []byte) []Leak {
	s.mu.Lock()
	defer s.mu.Unlock()
	var leaks []Leak
	seen := map[Leak]bool{}
	found := func(secret, form string) {
		if leak := (Leak{secret, form, where}); !seen[leak] {
			seen[leak] = true
			leaks = append(leaks, leak)
		}
	}
	for _, p := range s.patterns {
		switch {
		case p.secret != "":
			if bytes.Contains(text, p.text) {
				found(p.secret, p.form)
			}
		case p.form == plain:
			for rest := text; ; {
				_, after, ok := bytes.Cut(rest, p.text)
				if !ok {
					break
				}
				found(s.nameBehind(after), p.form)
				rest = after
			}
		case bytes.Contains(text, p.text):
			found("a marked secret", p.form)
		}
	}
	return leaks
}

// nameBehind reads the number behind a root.
func (s *secrets) nameBehind(text []byte) string {
	var number int
	if len(text) >= numberLength {
		if n, err := fmt.Sscanf(string(text[:numberLength]), "%x", &number); n == 1 && err == nil && number < len(s.names) {
			return s.names[number]
		}
	}
	return "a marked secret"
}

// plain is the form of a secret that stands as it is.
const plain = "plain"

// spellings are how a piece of a secret may turn up: as it is, encoded, and as Go
// prints a slice of bytes.
func spellings(secret string, piece []byte) []pattern {
	var list []pattern
	add := func(form, text string) {
		if !slices.ContainsFunc(list, func(p pattern) bool { return string(p.text) == text }) {
			list = append(list, pattern{secret, form, []byte(text)})
		}
	}
	add(plain, string(piece))
	add("upper case", string(upper(piece)))
	add("hex", hex.EncodeToString(piece))
	add("upper-case hex", strings.ToUpper(hex.EncodeToString(piece)))
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			add("base64", inBase64(encoding, before, piece))
		}
	}
	numbers := func(verb, between string) string {
		parts := make([]string, len(piece))
		for i, b := range piece {
			parts[i] = fmt.Sprintf(verb, b)
		}
		return strings.Join(parts, between)
	}
	add("decimal bytes", numbers("%d", " "))
	add("decimal bytes", numbers("%d", ","))
	add("bytes of Go syntax", numbers("0x%x", ", "))
	return list
}

// upper changes ASCII letters alone, so that a piece changes as it does in any
// text around it.
func upper(text []byte) []byte {
	changed := bytes.Clone(text)
	for i, c := range changed {
		if c >= 'a' && c <= 'z' {
			changed[i] = c - 'a' + 'A'
		}
	}
	return changed
}

// inBase64 returns the characters that a piece alone decides when so many bytes
// modulo 3 stand before it and anything behind.
func inBase64(encoding *base64.Encoding, before int, piece []byte) string {
	text := encoding.EncodeToString(append(make([]byte, before), piece...))
	if (before+len(piece))%3 != 0 {
		text = text[:len(text)-1]
	}
	return text[(before*8+5)/6:]
}
