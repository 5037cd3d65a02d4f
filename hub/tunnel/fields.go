package tunnel

import (
	"encoding/binary"
	"net/netip"
)

// The body of every message is a list of fields: number, length, value, in
// rising order of their numbers. A number means the same in every message.
//
//	+--------+--------+- - - - - - - -
//	| number | length | value
//	+--------+--------+- - - - - - - -
//
// Numbers from ignorable on may be passed over by those who do not know them;
// all others must be known, or the message is refused. So a new field says by
// its number whether the message means the same without it.
const ignorable = 0x80

// The fields.
const (
	fieldVersions       = 0x01 // 1 to maxList versions, rising
	fieldInnerMTU       = 0x02 // uint16
	fieldLanes          = 0x03 // 1 to maxList lanes, rising
	fieldCiphers        = 0x04 // 1 to maxList ciphers, the preferred one first
	fieldReceiverIndex  = 0x05 // uint32
	fieldVersion        = 0x06 // uint8
	fieldLane           = 0x07 // uint8
	fieldCipher         = 0x08 // uint8
	fieldControlAddress = 0x09 // 4 bytes and the length of the control prefix
	fieldHubAddress     = 0x0a // 4 bytes
	fieldKeepalive      = 0x0b // uint8, seconds
	fieldEpoch          = 0x0c // uint32
	fieldPublicKey      = 0x0d // 32 bytes
	fieldProof          = 0x0e // 32 bytes
	fieldDatagramSize   = 0x0f // uint16
	fieldCloseCode      = 0x10 // uint16
	fieldRetryAfter     = 0x11 // uint32, milliseconds

	fieldEnd = 0x12
)

// fieldSet is a set of field numbers.
type fieldSet uint32

func setOf(numbers ...uint8) (s fieldSet) {
	for _, n := range numbers {
		s |= 1 << n
	}
	return s
}

func (s fieldSet) has(n uint8) bool { return n < fieldEnd && s>>n&1 == 1 }

// fields are the fields of one body while it is read. The first fault found is
// kept, and what is read after it is zero, so that readers need one look at
// the end.
type fields struct {
	values [fieldEnd][]byte
	found  fieldSet
	fault  Rule
	at     uint8
}

// readFields splits a body of which the numbers in known are understood.
func readFields(body []byte, known fieldSet) (f fields) {
	last := 0
	for len(body) > 0 {
		number := body[0]
		switch {
		case len(body) < 2 || len(body)-2 < int(body[1]):
			f.fail(number, RuleFieldTruncated)
			return f
		case int(number) <= last:
			f.fail(number, RuleFieldOrder)
			return f
		case number < ignorable && !known.has(number):
			f.fail(number, RuleFieldUnknown)
			return f
		}
		value := body[2 : 2+int(body[1])]
		if number < ignorable {
			f.values[number] = value
			f.found |= 1 << number
		}
		last, body = int(number), body[2+len(value):]
	}
	return f
}

func (f *fields) fail(number uint8, rule Rule) {
	if f.fault == 0 {
		f.at, f.fault = number, rule
	}
}

// error returns the fault as the fault of a frame, or nil.
func (f *fields) error(from Side, frame FrameKind) error {
	if f.fault == 0 {
		return nil
	}
	return &WireError{From: from, Frame: frame, Field: f.at, Rule: f.fault}
}

// fixed returns the value of a field that must be there with that length.
func (f *fields) fixed(number uint8, length int) []byte {
	switch {
	case !f.found.has(number):
		f.fail(number, RuleFieldMissing)
	case len(f.values[number]) != length:
		f.fail(number, RuleFieldLength)
	}
	if f.fault != 0 {
		return make([]byte, length)
	}
	return f.values[number]
}

// require fails the field unless ok. A field of an earlier fault is left alone.
func (f *fields) require(number uint8, ok bool) {
	if !ok {
		f.fail(number, RuleFieldValue)
	}
}

// forbid fails a field that has no meaning beside what others say.
func (f *fields) forbid(number uint8) {
	if f.found.has(number) {
		f.fail(number, RuleFieldUnknown)
	}
}

func (f *fields) uint8(number uint8) uint8   { return f.fixed(number, 1)[0] }
func (f *fields) uint16(number uint8) uint16 { return binary.BigEndian.Uint16(f.fixed(number, 2)) }
func (f *fields) uint32(number uint8) uint32 { return binary.BigEndian.Uint32(f.fixed(number, 4)) }

func (f *fields) key(number uint8) [KeySize]byte { return [KeySize]byte(f.fixed(number, KeySize)) }

func (f *fields) address(number uint8) netip.Addr {
	return netip.AddrFrom4([4]byte(f.fixed(number, 4)))
}

// prefix reads an address with the length of the prefix around it.
func (f *fields) prefix(number uint8) netip.Prefix {
	b := f.fixed(number, 5)
	return netip.PrefixFrom(netip.AddrFrom4([4]byte(b)), int(b[4]))
}

// list returns the value of a field that must be there with 1 to maxList bytes.
func (f *fields) list(number uint8) []byte {
	switch {
	case !f.found.has(number):
		f.fail(number, RuleFieldMissing)
	case len(f.values[number]) == 0 || len(f.values[number]) > maxList:
		f.fail(number, RuleFieldLength)
	}
	if f.fault != 0 {
		return nil
	}
	return f.values[number]
}

func appendField(dst []byte, number uint8, value ...byte) []byte {
	return append(append(dst, number, uint8(len(value))), value...)
}

func appendUint16(dst []byte, number uint8, value uint16) []byte {
	return binary.BigEndian.AppendUint16(append(dst, number, 2), value)
}

func appendUint32(dst []byte, number uint8, value uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, number, 4), value)
}

func appendAddress(dst []byte, number uint8, a netip.Addr) []byte {
	b := a.As4()
	return appendField(dst, number, b[:]...)
}
