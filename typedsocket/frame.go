package typedsocket

import (
	"crypto/rand"
	"encoding/binary"
)

// WebSocket opcodes (RFC 6455 §11.8).
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xa
)

// finBit marks the last frame of a message (RFC 6455 §5.2).
const finBit = 0x80

// maskBit marks a masked payload (RFC 6455 §5.3): every frame of a client.
const maskBit = 0x80

// maxHeader is the longest frame header: 2 bytes, 8 of length, 4 of mask.
const maxHeader = 14

// maxControl is the longest payload of a control frame (RFC 6455 §5.5).
const maxControl = 125

// appendHeader appends the header of a frame of n payload bytes. first is its
// first byte: the opcode, and finBit.
func appendHeader(dst []byte, first byte, n int, mask *[4]byte) []byte {
	dst = append(dst, first)
	bit := byte(0)
	if mask != nil {
		bit = maskBit
	}
	switch {
	case n <= maxControl:
		dst = append(dst, bit|byte(n))
	case n <= 0xffff:
		dst = append(dst, bit|126)
		dst = binary.BigEndian.AppendUint16(dst, uint16(n))
	default:
		dst = append(dst, bit|127)
		dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	}
	if mask != nil {
		dst = append(dst, mask[:]...)
	}
	return dst
}

// applyMask masks p in place (RFC 6455 §5.3).
func applyMask(p []byte, mask [4]byte) {
	word := uint64(binary.LittleEndian.Uint32(mask[:]))
	word |= word << 32
	for len(p) >= 32 {
		chunk := p[:32]
		binary.LittleEndian.PutUint64(chunk, binary.LittleEndian.Uint64(chunk)^word)
		binary.LittleEndian.PutUint64(chunk[8:], binary.LittleEndian.Uint64(chunk[8:])^word)
		binary.LittleEndian.PutUint64(chunk[16:], binary.LittleEndian.Uint64(chunk[16:])^word)
		binary.LittleEndian.PutUint64(chunk[24:], binary.LittleEndian.Uint64(chunk[24:])^word)
		p = p[32:]
	}
	for i := range p {
		p[i] ^= mask[i&3]
	}
}

// appendControl appends a whole control frame.
func appendControl(dst []byte, opcode byte, payload []byte, mask *[4]byte) []byte {
	dst = appendHeader(dst, finBit|opcode, len(payload), mask)
	at := len(dst)
	dst = append(dst, payload...)
	if mask != nil {
		applyMask(dst[at:], *mask)
	}
	return dst
}

// closePayload is the payload of a close frame (RFC 6455 §5.5.1).
func closePayload(code CloseCode, reason string) []byte {
	p := binary.BigEndian.AppendUint16(nil, uint16(code))
	return append(p, cutReason(reason)...)
}

// maskSource hands out mask keys. They must be unpredictable to whoever chose
// the payload (RFC 6455 §10.3), so they come from crypto/rand, 64 at a time.
type maskSource struct {
	pool [256]byte
	left int
}

func (m *maskSource) next() (mask [4]byte) {
	if m.left == 0 {
		rand.Read(m.pool[:]) // never fails (crypto/rand)
		m.left = len(m.pool)
	}
	m.left -= 4
	copy(mask[:], m.pool[m.left:])
	return mask
}
