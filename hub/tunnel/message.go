package tunnel

import (
	"fmt"
	"io"
	"time"
)

// Message is one of the messages that cross the stream behind the handshake.
type Message interface {
	// Kind returns the kind of the message's frame.
	Kind() FrameKind
	appendBody([]byte) []byte
}

// Confirm is the node's first message behind the response: the proof that it
// has derived the keys. Until the hub has read it the connection carries no
// packet and takes no member's place.
type Confirm struct {
	Proof [KeySize]byte
}

// RekeyAsk asks the node to begin the next epoch.
type RekeyAsk struct{}

// RekeyOffer begins an epoch.
type RekeyOffer struct {
	Epoch  uint32
	Public [KeySize]byte // X25519, new for this exchange
}

// RekeyAnswer agrees to an epoch. The hub opens packets of it from now on.
type RekeyAnswer struct {
	Epoch  uint32
	Public [KeySize]byte // X25519, new for this exchange
	Proof  [KeySize]byte
}

// RekeyDone ends the exchange: the hub may seal under the epoch from now on.
type RekeyDone struct {
	Epoch uint32
	Proof [KeySize]byte
}

// Path says how large the sender's datagrams on a lane are at most. The other
// end shows it; nothing follows from it.
type Path struct {
	Lane Lane
	Size uint16 // bytes of a QUIC datagram's or of a UDP datagram's payload, not zero
}

// Close is the last message of its sender: why it is about to close the
// connection. The connection's own close repeats the code, but only this
// message is sent again when it is lost.
type Close struct {
	Code CloseCode
	// RetryAfter is when dialling again makes sense: whole milliseconds, zero
	// for at the node's own pace.
	RetryAfter time.Duration
}

// Kind returns FrameConfirm.
func (Confirm) Kind() FrameKind { return FrameConfirm }

// Kind returns FrameRekeyAsk.
func (RekeyAsk) Kind() FrameKind { return FrameRekeyAsk }

// Kind returns FrameRekeyOffer.
func (RekeyOffer) Kind() FrameKind { return FrameRekeyOffer }

// Kind returns FrameRekeyAnswer.
func (RekeyAnswer) Kind() FrameKind { return FrameRekeyAnswer }

// Kind returns FrameRekeyDone.
func (RekeyDone) Kind() FrameKind { return FrameRekeyDone }

// Kind returns FramePath.
func (Path) Kind() FrameKind { return FramePath }

// Kind returns FrameClose.
func (Close) Kind() FrameKind { return FrameClose }

func (m Confirm) appendBody(dst []byte) []byte { return appendField(dst, fieldProof, m.Proof[:]...) }

func (RekeyAsk) appendBody(dst []byte) []byte { return dst }

func (m RekeyOffer) appendBody(dst []byte) []byte {
	dst = appendUint32(dst, fieldEpoch, m.Epoch)
	return appendField(dst, fieldPublicKey, m.Public[:]...)
}

func (m RekeyAnswer) appendBody(dst []byte) []byte {
	dst = appendUint32(dst, fieldEpoch, m.Epoch)
	dst = appendField(dst, fieldPublicKey, m.Public[:]...)
	return appendField(dst, fieldProof, m.Proof[:]...)
}

func (m RekeyDone) appendBody(dst []byte) []byte {
	dst = appendUint32(dst, fieldEpoch, m.Epoch)
	return appendField(dst, fieldProof, m.Proof[:]...)
}

func (m Path) appendBody(dst []byte) []byte {
	dst = appendField(dst, fieldLane, byte(m.Lane))
	return appendUint16(dst, fieldDatagramSize, m.Size)
}

func (m Close) appendBody(dst []byte) []byte {
	dst = appendUint16(dst, fieldCloseCode, uint16(m.Code))
	return appendUint32(dst, fieldRetryAfter, uint32(min(max(m.RetryAfter.Milliseconds(), 0), maxRetryAfter)))
}

// maxRetryAfter is an hour in milliseconds: a longer wait would be no advice
// for a network that must heal by itself.
const maxRetryAfter = int64(time.Hour / time.Millisecond)

// AppendMessage appends the frame of a message. A Close's RetryAfter is cut to
// an hour.
func AppendMessage(dst []byte, m Message) []byte {
	start := len(dst)
	return endFrame(m.appendBody(beginFrame(dst, m.Kind())), start)
}

// WriteMessage writes the frame of a message with one call of Write, which is
// also its only wait.
func WriteMessage(w io.Writer, m Message) error {
	if _, err := w.Write(AppendMessage(nil, m)); err != nil {
		return fmt.Errorf("write %s frame: %w", m.Kind(), err)
	}
	return nil
}

// readMessage reads the body of a message behind the handshake.
func readMessage(kind FrameKind, body []byte, from Side) (Message, error) {
	var (
		m Message
		f fields
	)
	switch kind {
	case FrameConfirm:
		f = readFields(body, setOf(fieldProof))
		m = Confirm{f.key(fieldProof)}
	case FrameRekeyAsk:
		f = readFields(body, 0)
		m = RekeyAsk{}
	case FrameRekeyOffer:
		f = readFields(body, setOf(fieldEpoch, fieldPublicKey))
		m = RekeyOffer{f.uint32(fieldEpoch), f.key(fieldPublicKey)}
	case FrameRekeyAnswer:
		f = readFields(body, setOf(fieldEpoch, fieldPublicKey, fieldProof))
		m = RekeyAnswer{f.uint32(fieldEpoch), f.key(fieldPublicKey), f.key(fieldProof)}
	case FrameRekeyDone:
		f = readFields(body, setOf(fieldEpoch, fieldProof))
		m = RekeyDone{f.uint32(fieldEpoch), f.key(fieldProof)}
	case FramePath:
		f = readFields(body, setOf(fieldLane, fieldDatagramSize))
		p := Path{Lane(f.uint8(fieldLane)), f.uint16(fieldDatagramSize)}
		f.require(fieldLane, p.Lane == LaneDatagram || p.Lane == LaneDirect)
		f.require(fieldDatagramSize, p.Size != 0)
		m = p
	case FrameClose:
		f = readFields(body, setOf(fieldCloseCode, fieldRetryAfter))
		code, after := f.uint16(fieldCloseCode), f.uint32(fieldRetryAfter)
		f.require(fieldRetryAfter, int64(after) <= maxRetryAfter)
		m = Close{CloseCode(code), time.Duration(after) * time.Millisecond}
	default:
		return nil, &WireError{From: from, Frame: kind, Rule: RuleFrameOrder}
	}
	if err := f.error(from, kind); err != nil {
		return nil, err
	}
	return m, nil
}
