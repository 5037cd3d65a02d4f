package rig

import (
	"bytes"
	"encoding/base64"

	"github.com/go-json-experiment/json/jsontext"

	"serve.zone/relay/simulate"
)

// secretMembers are the members of messages whose values Cloudly makes itself, so
// that they bear no marker: identities and keys of nodes.
var secretMembers = []string{"jwt", "privateKey"}

// harvest makes the secrets known that stand in messages which crossed Cloudly's
// sockets.
func (s *secrets) harvest(frames []simulate.Frame) error {
	for _, f := range frames {
		for _, member := range secretMembers {
			if f.Binary || !bytes.Contains(f.Text, []byte(`"`+member+`"`)) {
				continue
			}
			for _, value := range valuesOf(f.Text, member) {
				if err := s.addValue("a "+member, value); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s *secrets) addValue(name, value string) error {
	if len(value) < pieceLength {
		return nil // a test's own filler
	}
	if key, err := base64.StdEncoding.DecodeString(value); err == nil && len(key) >= pieceLength {
		if err := s.add(name, key); err != nil {
			return err
		}
	}
	return s.add(name, []byte(value))
}

// valuesOf returns the texts of all members of a name, at any depth. It stops where
// the text is no JSON.
func valuesOf(text []byte, member string) []string {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var values []string
	wanted := false
	for {
		token, err := d.ReadToken()
		if err != nil {
			return values
		}
		if token.Kind() == '"' {
			// An odd number of tokens in an object means that this one was a name.
			kind, length := d.StackIndex(d.StackDepth())
			isName := kind == '{' && length%2 == 1
			if wanted && !isName {
				values = append(values, token.String())
			}
			wanted = isName && token.String() == member
			continue
		}
		wanted = false
	}
}
