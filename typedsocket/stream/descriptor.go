package stream

import (
	"bytes"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Direction is which way the bytes of a stream go, seen from one side.
type Direction string

// The directions. The texts are those of creatorDirection.
const (
	Send    Direction = "send"
	Receive Direction = "receive"
)

// Opposite returns the direction as the other side sees it.
func (d Direction) Opposite() Direction {
	if d == Send {
		return Receive
	}
	return Send
}

// protocol is the descriptor's protocol, the one of TypedRequest 8.
const protocol = "virtual-stream-v1"

// digestPrefix and the 64 lower case hexadecimal digits behind it are the only
// form of a digest.
const digestPrefix = "sha256:"

// Integrity is what a stream's bytes are known to be, always by SHA-256.
type Integrity struct {
	ByteLength int64  // 0 to MaxTotal
	Digest     string // "sha256:" and 64 lower case hexadecimal digits
}

// Descriptor is the JSON object that stands for a stream in a message
// (typedsocket.md §1.9).
type Descriptor struct {
	StreamID         string     // 1 to MaxStreamID UTF-16 units
	CreatorDirection Direction  // as the side that made the descriptor sees it
	ContentType      string     // "" when absent
	Integrity        *Integrity // nil when absent
	Transport        []byte     // any JSON value, byte for byte
}

// ReadDescriptor reads a descriptor exactly as TypedRequest 8 does: unknown
// members are ignored, the known ones must be right. It is stricter in the
// JSON itself: duplicate names, invalid UTF-8, lone surrogates and trailing
// data are refused (design O1), and more than MaxDescriptor bytes. It does not
// judge the transport, and keeps nothing of raw. Its error is a DescriptorError.
func ReadDescriptor(raw []byte) (Descriptor, error) {
	var d Descriptor
	var marked, versioned, carried bool
	if len(raw) > MaxDescriptor {
		return d, &DescriptorError{Rule: "is longer than " + strconv.Itoa(MaxDescriptor) + " bytes"}
	}
	err := eachMember(raw, func(name string, value jsontext.Value) *DescriptorError {
		text, isText := stringOf(value)
		switch name {
		case "_isVirtualStream":
			marked = value.Kind() == 't'
		case "protocol":
			versioned = isText && text == protocol
		case "streamId":
			d.StreamID = text
		case "creatorDirection":
			d.CreatorDirection = Direction(text)
		case "contentType":
			d.ContentType = text
			if text == "" {
				return &DescriptorError{Member: name, Rule: "must be a non-empty string"}
			}
		case "integrity":
			var err *DescriptorError
			d.Integrity, err = readIntegrity(value)
			return err
		case "transport":
			d.Transport, carried = value.Clone(), true
		}
		return nil
	})
	if err != nil {
		return Descriptor{}, err
	}
	if !marked {
		return Descriptor{}, &DescriptorError{Member: "_isVirtualStream", Rule: "must be true"}
	}
	if !versioned {
		return Descriptor{}, &DescriptorError{Member: "protocol", Rule: "must be " + protocol}
	}
	if !carried {
		return Descriptor{}, &DescriptorError{Member: "transport", Rule: "is missing"}
	}
	if err := d.validate(); err != nil {
		return Descriptor{}, err
	}
	return d, nil
}

// validate checks the members that have a rule beyond their JSON type.
func (d Descriptor) validate() *DescriptorError {
	if n := utf16Len(d.StreamID); n < 1 || n > MaxStreamID || !utf8.ValidString(d.StreamID) {
		return &DescriptorError{Member: "streamId", Rule: "must be a string of 1 to 256 UTF-16 units"}
	}
	if d.CreatorDirection != Send && d.CreatorDirection != Receive {
		return &DescriptorError{Member: "creatorDirection", Rule: "must be send or receive"}
	}
	if !utf8.ValidString(d.ContentType) {
		return &DescriptorError{Member: "contentType", Rule: "must be UTF-8"}
	}
	if d.Integrity == nil {
		return nil
	}
	return d.Integrity.validate()
}

func (i Integrity) validate() *DescriptorError {
	if i.ByteLength < 0 || i.ByteLength > MaxTotal {
		return &DescriptorError{Member: "integrity.byteLength", Rule: "must be an integer from 0 to 2^53-1"}
	}
	if !isDigest(i.Digest) {
		return &DescriptorError{Member: "integrity.digest", Rule: "must be sha256: and 64 lower case hexadecimal digits"}
	}
	return nil
}

func isDigest(s string) bool {
	if len(s) != len(digestPrefix)+64 || s[:len(digestPrefix)] != digestPrefix {
		return false
	}
	for _, c := range []byte(s[len(digestPrefix):]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// readIntegrity reads the member integrity; what else it holds is not checked.
func readIntegrity(raw jsontext.Value) (*Integrity, *DescriptorError) {
	i := Integrity{ByteLength: -1}
	algorithm := ""
	if raw.Kind() != '{' {
		return nil, &DescriptorError{Member: "integrity", Rule: "must be an object"}
	}
	err := eachMember(raw, func(name string, value jsontext.Value) *DescriptorError {
		switch name {
		case "algorithm":
			algorithm, _ = stringOf(value)
		case "byteLength":
			i.ByteLength = integerOf(value)
		case "digest":
			i.Digest, _ = stringOf(value)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if algorithm != "sha256" {
		return nil, &DescriptorError{Member: "integrity.algorithm", Rule: "must be sha256"}
	}
	if err := i.validate(); err != nil {
		return nil, err
	}
	return &i, nil
}

// appendDescriptor appends the JSON of d, members in the order of TypedRequest.
func appendDescriptor(dst []byte, d Descriptor) []byte {
	dst = append(dst, `{"_isVirtualStream":true,"protocol":"`+protocol+`","streamId":`...)
	dst = appendString(dst, d.StreamID)
	dst = append(dst, `,"creatorDirection":"`+string(d.CreatorDirection)+`"`...)
	if d.ContentType != "" {
		dst = append(dst, `,"contentType":`...)
		dst = appendString(dst, d.ContentType)
	}
	if d.Integrity != nil {
		dst = append(dst, `,"integrity":{"algorithm":"sha256","byteLength":`...)
		dst = strconv.AppendInt(dst, d.Integrity.ByteLength, 10)
		dst = append(dst, `,"digest":"`+d.Integrity.Digest+`"}`...)
	}
	dst = append(dst, `,"transport":`...)
	dst = append(dst, d.Transport...)
	return append(dst, '}')
}

// ourTransport says in a descriptor which frames carry the bytes.
var ourTransport = `{"relayStream":` + strconv.Itoa(version) + `}`

// isOurTransport reports whether a descriptor's transport states the version
// of our frames. What else it holds is ignored: a later version may say more.
func isOurTransport(raw []byte) bool {
	if jsontext.Value(raw).Kind() != '{' {
		return false
	}
	stated := int64(0)
	err := eachMember(raw, func(name string, value jsontext.Value) *DescriptorError {
		if name == "relayStream" {
			stated = integerOf(value)
		}
		return nil
	})
	return err == nil && stated == version
}

// eachMember calls f with the name and raw value of each member of the one
// JSON object that raw is, and stops at the first error.
func eachMember(raw []byte, f func(name string, value jsontext.Value) *DescriptorError) *DescriptorError {
	notStrict := &DescriptorError{Rule: "is not one strict JSON object"}
	d := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return notStrict
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return notStrict
		}
		key := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return notStrict
		}
		if err := f(key, value); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return notStrict
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return notStrict
	}
	return nil
}

// stringOf returns the text of a JSON string.
func stringOf(v jsontext.Value) (string, bool) {
	if v.Kind() != '"' {
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, v)
	return string(text), err == nil
}

// integerOf returns a JSON number that is an integer from 0 to MaxTotal, and
// -1 for everything else. Numbers count by value, as a double: a JavaScript
// peer cannot tell 3 from 3.0 or 3e0.
func integerOf(v jsontext.Value) int64 {
	if v.Kind() != '0' {
		return -1
	}
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil || n != math.Trunc(n) || n < 0 || n > MaxTotal {
		return -1
	}
	return int64(n)
}

// appendString appends s, which is valid UTF-8, as a JSON string.
func appendString(dst []byte, s string) []byte {
	quoted, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		panic("stream: quoting text that was checked to be UTF-8")
	}
	return quoted
}
