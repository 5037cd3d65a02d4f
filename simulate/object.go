package simulate

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"serve.zone/relay/contract"
)

// object is a JSON object of a shape that contract has no reader for, because
// the relay only forwards it. It is read with exact keys, and each violation is
// one named reason.
type object struct {
	what    string
	members map[string]contract.Raw
	reasons []string
}

// readObject reads an object whose members are exactly the required ones, and
// any of the optional ones. What names the message.
func readObject(what string, body []byte, required []string, optional ...string) *object {
	o := &object{what: what, members: map[string]contract.Raw{}}
	if !o.read(body) {
		return o
	}
	known := make(map[string]bool, len(required)+len(optional))
	for _, name := range required {
		known[name] = true
		if o.members[name] == nil {
			o.refuse(name, "is missing")
		}
	}
	for _, name := range optional {
		known[name] = true
	}
	for name := range o.members {
		if !known[name] {
			o.refuse("body", "has a member that is not known")
		}
	}
	return o
}

// read takes the members apart; the tokenizer refuses duplicate names, invalid
// UTF-8 and lone surrogates.
func (o *object) read(body []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	if d.PeekKind() != '{' {
		o.refuse("body", "is not an object")
		return false
	}
	d.ReadToken()
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return o.broken()
		}
		key := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return o.broken()
		}
		o.members[key] = contract.Raw(bytes.Clone(value))
	}
	if _, err := d.ReadToken(); err != nil {
		return o.broken()
	}
	if len(bytes.TrimLeft(body[d.InputOffset():], " \t\r\n")) > 0 {
		o.refuse("body", "has data after its value")
		return false
	}
	return true
}

func (o *object) broken() bool {
	o.refuse("body", "is not strict json")
	return false
}

// refuse adds a reason, as long as there are not too many.
func (o *object) refuse(member, rule string) {
	if len(o.reasons) < maximumReasons {
		o.reasons = append(o.reasons, member+": "+rule)
	}
}

// err returns an *InvalidError with every reason, nil when there is none.
func (o *object) err() error {
	if len(o.reasons) == 0 {
		return nil
	}
	return &contract.InvalidError{What: o.what, Reasons: o.reasons}
}

// text returns a string member that satisfies the rule, "" otherwise.
func (o *object) text(name string, is func(string) bool, rule string) string {
	raw := o.members[name]
	if raw == nil {
		return ""
	}
	if raw[0] == '"' {
		if text, err := jsontext.AppendUnquote(nil, raw); err == nil && is(string(text)) {
			return string(text)
		}
	}
	o.refuse(name, rule)
	return ""
}

// counter returns a member that is a counter, 0 otherwise.
func (o *object) counter(name string) int64 {
	raw := o.members[name]
	if raw == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || !contract.IsCounter(n) {
		o.refuse(name, "is not a counter")
		return 0
	}
	return n
}

// count returns a member that is a count, 0 otherwise.
func (o *object) count(name string) int64 {
	raw := o.members[name]
	if raw == nil || string(raw) == "0" {
		return 0
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || !contract.IsCounter(n) {
		o.refuse(name, "is not a count")
		return 0
	}
	return n
}

// texts returns a member that is an array of strings.
func (o *object) texts(name string) []string {
	list := []string{}
	for _, raw := range o.elements(name) {
		text, err := jsontext.AppendUnquote(nil, raw)
		if raw[0] != '"' || err != nil {
			o.refuse(name, "is not an array of strings")
			return nil
		}
		list = append(list, string(text))
	}
	return list
}

// elements returns the values of an array.
func (o *object) elements(name string) []contract.Raw {
	raw := o.members[name]
	if raw == nil {
		return nil
	}
	if raw[0] != '[' {
		o.refuse(name, "is not an array")
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	d.ReadToken()
	list := []contract.Raw{}
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			o.refuse(name, "is not strict json")
			return nil
		}
		list = append(list, contract.Raw(bytes.Clone(value)))
	}
	return list
}

// appender writes itself as JSON, as every message of contract does.
type appender interface{ AppendJSON(dst []byte) []byte }

// composing writes an object member by member.
type composing struct{ dst []byte }

func compose() *composing { return &composing{dst: []byte{'{'}} }

func (c *composing) name(name string) {
	if len(c.dst) > 1 {
		c.dst = append(c.dst, ',')
	}
	c.dst = appendText(c.dst, name)
	c.dst = append(c.dst, ':')
}

func (c *composing) text(name, s string) *composing {
	c.name(name)
	c.dst = appendText(c.dst, s)
	return c
}

func (c *composing) integer(name string, n int64) *composing {
	c.name(name)
	c.dst = strconv.AppendInt(c.dst, n, 10)
	return c
}

func (c *composing) value(name string, v appender) *composing {
	c.name(name)
	c.dst = v.AppendJSON(c.dst)
	return c
}

// spread adds all members of an object that is written already.
func (c *composing) spread(members []byte) *composing {
	inner := bytes.TrimSpace(members)
	inner = bytes.TrimSpace(inner[1 : len(inner)-1])
	if len(inner) == 0 {
		return c
	}
	if len(c.dst) > 1 {
		c.dst = append(c.dst, ',')
	}
	c.dst = append(c.dst, inner...)
	return c
}

func (c *composing) end() contract.Raw { return append(c.dst, '}') }

func appendText(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}

// textList writes strings as an array.
type textList []string

func (l textList) AppendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	for i, s := range l {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, s)
	}
	return append(dst, ']')
}
