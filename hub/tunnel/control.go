package tunnel

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
)

// A Control reads what the other end sends behind the handshake. It belongs to
// one goroutine.
type Control struct {
	session   *Session
	stream    io.Reader
	from      Side
	confirmed bool // nothing has to be confirmed (any more)
	closed    bool
	body      [MaxBody]byte
}

// Control begins to read the messages of the other end from the stream that
// the handshake ran on.
func (s *Session) Control(stream io.Reader) *Control {
	return &Control{session: s, stream: stream, from: s.side.other(), confirmed: s.side == Node}
}

// Next returns the next message. On the hub the first one is always a Confirm
// whose proof is right. Frames of ignorable kinds are passed over, behind the
// confirmation. A *WireError says what the other end broke; io.EOF that it
// has closed the stream, in order if a Close came before.
//
// It waits only in the stream: the hub sets its deadline until the Confirm has
// come.
func (c *Control) Next() (Message, error) {
	for {
		kind, length, err := readHeader(c.stream, c.from)
		if err == nil {
			err = c.admit(kind)
		}
		if err == nil {
			err = readBody(c.stream, c.body[:length])
		}
		switch {
		case err == io.EOF:
			return nil, io.EOF
		case errors.As(err, new(*WireError)):
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("read frame of the %s: %w", c.from, err)
		case kind >= ignorable:
			continue
		}
		m, err := readMessage(kind, c.body[:length], c.from)
		if err == nil {
			err = c.note(m)
		}
		if err != nil {
			return nil, err
		}
		return m, nil
	}
}

// admit judges whether a frame of that kind may come now.
func (c *Control) admit(kind FrameKind) error {
	ok := true
	switch kind {
	case FrameInitiation, FrameResponse:
		ok = false
	case FrameConfirm:
		ok = !c.confirmed
	case FrameRekeyAsk, FrameRekeyOffer, FrameRekeyAnswer, FrameRekeyDone:
		ok = c.confirmed && c.session.answer.Lane == LaneDirect
	default:
		ok = c.confirmed
	}
	if !ok || c.closed {
		return &WireError{From: c.from, Frame: kind, Rule: RuleFrameOrder}
	}
	return nil
}

// note takes in what a message changes for those that follow.
func (c *Control) note(m Message) error {
	switch m := m.(type) {
	case Confirm:
		if subtle.ConstantTimeCompare(m.Proof[:], c.session.proof.get()[:]) != 1 {
			return &WireError{From: c.from, Frame: FrameConfirm, Field: fieldProof, Rule: RuleConfirmProof}
		}
		c.confirmed = true
	case Path:
		if m.Lane == LaneDirect && c.session.answer.Lane != LaneDirect {
			return &WireError{From: c.from, Frame: FramePath, Field: fieldLane, Rule: RuleFieldValue}
		}
	case Close:
		c.closed = true
	}
	return nil
}
