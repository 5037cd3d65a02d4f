package demo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// What package contract has no reader for, since a relay only carries it, is read here:
// names exactly as they are spelled, none twice, and no error that quotes a value.

// object is the members of a JSON object by name.
type object map[string]jsontext.Value

var errNoObject = errors.New("is not an object of strict JSON")

// readObject reads an object that has members of these names. What else it has is in it,
// too.
func readObject(text []byte, names ...string) (object, error) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if d.PeekKind() != '{' {
		return nil, errNoObject
	}
	d.ReadToken() // the brace that was seen
	o := object{}
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return nil, errNoObject
		}
		name := token.String() // the token is gone with the next one
		value, err := d.ReadValue()
		if err != nil {
			return nil, errNoObject
		}
		o[name] = value.Clone()
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, errNoObject
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, errNoObject
	}
	for _, name := range names {
		if _, ok := o[name]; !ok {
			return nil, fmt.Errorf("%s: is missing", name)
		}
	}
	return o, nil
}

// readExactly is readObject of an object that has nothing else.
func readExactly(text []byte, names ...string) (object, error) {
	o, err := readObject(text, names...)
	for name := range o {
		if !slices.Contains(names, name) {
			return nil, errors.New("has a member that is not known")
		}
	}
	return o, err
}

// text returns a member that is a string.
func (o object) text(name string) (string, error) {
	value := o[name]
	if value.Kind() != '"' {
		return "", fmt.Errorf("%s: is not a string", name)
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return "", fmt.Errorf("%s: is not a string", name)
	}
	return string(text), nil
}

// integer returns a member that is a whole number from 1 to a limit.
func (o object) integer(name string, limit int64) (int64, error) {
	n, err := strconv.ParseInt(string(o[name]), 10, 64)
	if err != nil || n < 1 || n > limit {
		return 0, fmt.Errorf("%s: is not a whole number from 1 to %d", name, limit)
	}
	return n, nil
}

// firstChain returns the chain of certificates, PEM, of a table's first route.
func firstChain(table []byte) (string, error) {
	o, err := readObject(table, "routes")
	if err != nil {
		return "", err
	}
	d := jsontext.NewDecoder(bytes.NewReader(o["routes"]))
	if d.PeekKind() != '[' {
		return "", errors.New("routes: is not an array")
	}
	d.ReadToken() // the bracket that was seen
	if d.PeekKind() == ']' {
		return "", errors.New("routes: is empty")
	}
	first, err := d.ReadValue()
	if err != nil {
		return "", errNoObject // the array was read before, so this is no error that there is
	}
	route, err := readObject(first, "certificate")
	if err != nil {
		return "", fmt.Errorf("routes[0]: %w", err)
	}
	certificate, err := readObject(route["certificate"], "chain")
	if err != nil {
		return "", fmt.Errorf("routes[0].certificate: %w", err)
	}
	return certificate.text("chain")
}
