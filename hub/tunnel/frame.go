package tunnel

import (
	"encoding/binary"
	"io"
)

// What crosses the stream are frames:
//
//	+------+-----------------+- - - - - - - -
//	| kind | length          | body
//	+------+-----------------+- - - - - - - -
//
// Numbers are unsigned and big endian. As with fields, a kind from ignorable
// on is passed over by those who do not know it.
const headerSize = 3

// FrameKind says what a frame is.
type FrameKind uint8

// The kinds.
const (
	FrameInitiation  FrameKind = 1 // node: Noise's first message, with an Offer
	FrameResponse    FrameKind = 2 // hub: Noise's second message, with an Answer
	FrameConfirm     FrameKind = 3 // node: Confirm, right behind the response
	FrameRekeyAsk    FrameKind = 4 // hub: RekeyAsk
	FrameRekeyOffer  FrameKind = 5 // node: RekeyOffer
	FrameRekeyAnswer FrameKind = 6 // hub: RekeyAnswer
	FrameRekeyDone   FrameKind = 7 // node: RekeyDone
	FramePath        FrameKind = 8 // either: Path
	FrameClose       FrameKind = 9 // either: Close
)

// frameKinds has the name of each kind and who may send it.
var frameKinds = [...]struct {
	name      string
	node, hub bool
}{
	FrameInitiation:  {"initiation", true, false},
	FrameResponse:    {"response", false, true},
	FrameConfirm:     {"confirm", true, false},
	FrameRekeyAsk:    {"rekey-ask", false, true},
	FrameRekeyOffer:  {"rekey-offer", true, false},
	FrameRekeyAnswer: {"rekey-answer", false, true},
	FrameRekeyDone:   {"rekey-done", true, false},
	FramePath:        {"path", true, true},
	FrameClose:       {"close", true, true},
}

// String returns the kind's name.
func (k FrameKind) String() string {
	if !k.known() {
		return "unknown"
	}
	return frameKinds[k].name
}

func (k FrameKind) known() bool { return k > 0 && int(k) < len(frameKinds) }

func (k FrameKind) sentBy(side Side) bool {
	return k.known() && (side == Node && frameKinds[k].node || side == Hub && frameKinds[k].hub)
}

// readHeader reads the header of the next frame and judges what needs no body.
// It returns io.EOF where the stream ends between two frames, and
// io.ErrUnexpectedEOF where it ends inside one.
func readHeader(r io.Reader, from Side) (kind FrameKind, length int, err error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, 0, err
	}
	kind, length = FrameKind(header[0]), int(binary.BigEndian.Uint16(header[1:]))
	switch {
	case !kind.known() && kind < ignorable:
		err = &WireError{From: from, Frame: kind, Rule: RuleFrameKind}
	case kind.known() && !kind.sentBy(from):
		err = &WireError{From: from, Frame: kind, Rule: RuleFrameDirection}
	case length > MaxBody:
		err = &WireError{From: from, Frame: kind, Rule: RuleFrameLength}
	}
	return kind, length, err
}

// readBody reads a body whose header has been read.
func readBody(r io.Reader, body []byte) error {
	if _, err := io.ReadFull(r, body); err == io.EOF {
		return io.ErrUnexpectedEOF
	} else if err != nil {
		return err
	}
	return nil
}

// beginFrame appends the header of a frame whose length endFrame fills in.
func beginFrame(dst []byte, kind FrameKind) []byte { return append(dst, byte(kind), 0, 0) }

// endFrame fills in the length of the frame that begins at start.
func endFrame(dst []byte, start int) []byte {
	binary.BigEndian.PutUint16(dst[start+1:], uint16(len(dst)-start-headerSize))
	return dst
}
