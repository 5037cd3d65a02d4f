package stream

import "encoding/binary"

// HeaderSize is the length of a frame's header. A frame is one binary message:
//
//	 0       1       2               4               8               16
//	+-------+-------+---------------+---------------+----------------+
//	|version| kind  | reserved = 0  | stream number | value          | payload …
//	+-------+-------+---------------+---------------+----------------+
//
// All numbers are unsigned and big endian.
const HeaderSize = 16

// version is the version of these frames. It is also what a descriptor's
// transport states, so that no peer meets frames it does not know.
const version = 1

// Kind says what a frame means.
type Kind uint8

// The kinds. The comment says what value and payload hold.
const (
	kindOpenAck Kind = iota + 1 // total permitted; streamId
	kindData                    // offset of the first byte; 1 to ChunkSize bytes
	kindCredit                  // total permitted; nothing
	kindEnd                     // total sent; nothing
	kindAccept                  // total received; receipt
	kindReject                  // 0; reason
	kindAbort                   // 0; reason
)

var kindNames = [...]string{
	kindOpenAck: "open-ack",
	kindData:    "data",
	kindCredit:  "credit",
	kindEnd:     "end",
	kindAccept:  "accept",
	kindReject:  "reject",
	kindAbort:   "abort",
}

// String returns the kind's name.
func (k Kind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return "unknown"
	}
	return kindNames[k]
}

// terminal reports whether the frame ends its stream. Such a frame is never
// answered: two ends that answer each other's last word do so for ever.
func (k Kind) terminal() bool { return k >= kindAccept }

// frame is one parsed message. payload aliases the message.
type frame struct {
	kind    Kind
	number  uint32
	value   uint64
	payload []byte
}

// readFrame parses a binary message, or says why it is no frame.
func readFrame(p []byte) (frame, error) {
	switch {
	case len(p) < HeaderSize:
		return frame{}, &FrameError{Rule: FrameShort}
	case p[0] != version:
		return frame{}, &FrameError{Rule: FrameVersion}
	case p[1] == 0 || int(p[1]) >= len(kindNames):
		return frame{}, &FrameError{Rule: FrameKind}
	case p[2] != 0 || p[3] != 0:
		return frame{}, &FrameError{Rule: FrameReserved}
	}
	f := frame{
		kind:    Kind(p[1]),
		number:  binary.BigEndian.Uint32(p[4:]),
		value:   binary.BigEndian.Uint64(p[8:]),
		payload: p[HeaderSize:],
	}
	if f.number == 0 {
		return frame{}, &FrameError{Rule: FrameNumber}
	}
	return f, nil
}

// header returns the first HeaderSize bytes of a frame.
func header(kind Kind, number uint32, value uint64) (h [HeaderSize]byte) {
	h[0] = version
	h[1] = byte(kind)
	binary.BigEndian.PutUint32(h[4:], number)
	binary.BigEndian.PutUint64(h[8:], value)
	return h
}
