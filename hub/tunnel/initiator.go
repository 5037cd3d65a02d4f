package tunnel

import (
	"errors"
	"fmt"
	"io"

	"github.com/flynn/noise"

	"serve.zone/relay/contract"
)

// An Initiator is what a node dials with: its own key, and what the credential
// says of the hub (contract §7.4).
type Initiator struct {
	Static      PrivateKey
	Hub         contract.NoiseKey
	AuthorityID string
	Offer       Offer

	random io.Reader // of the ephemeral key; nil outside tests
}

// Handshake runs the handshake on a stream that the node has opened, and
// confirms it: three messages, of which it writes the first and the last. When
// it returns, the hub is who it should be, and may already send packets.
//
// It waits only in the stream, so the caller sets the stream's deadline, at
// most HandshakeLimit away. It reads nothing beyond the hub's response.
func (i Initiator) Handshake(stream io.ReadWriter, export Exporter) (*Session, error) {
	state, frame, err := i.begin(export)
	if err != nil {
		return nil, fmt.Errorf("handshake with the hub: %w", err)
	}
	if _, err := stream.Write(frame); err != nil {
		return nil, fmt.Errorf("handshake with the hub: write initiation: %w", err)
	}
	message, err := readNoise(stream, Hub, FrameResponse, responseOverhead)
	if err != nil {
		return nil, fmt.Errorf("handshake with the hub: %w", err)
	}
	session, err := i.finish(state, message, export)
	if err != nil {
		return nil, fmt.Errorf("handshake with the hub: %w", err)
	}
	if err := WriteMessage(stream, Confirm{*session.proof.get()}); err != nil {
		return nil, fmt.Errorf("handshake with the hub: %w", err)
	}
	return session, nil
}

// begin makes the frame of Noise's first message.
func (i Initiator) begin(export Exporter) (*noise.HandshakeState, []byte, error) {
	if i.Static.IsZero() {
		return nil, nil, ErrPrivateKey
	}
	offer, err := i.Offer.encode()
	if err != nil {
		return nil, nil, err
	}
	prologue, err := prologue(i.AuthorityID, export)
	if err != nil {
		return nil, nil, err
	}
	state, err := newNoise(Node, i.Static, i.Hub, prologue, i.random)
	if err != nil {
		return nil, nil, err
	}
	frame, _, _, err := state.WriteMessage(beginFrame(nil, FrameInitiation), offer)
	if err != nil {
		return nil, nil, err
	}
	return state, endFrame(frame, 0), nil
}

// finish reads Noise's second message.
func (i Initiator) finish(state *noise.HandshakeState, message []byte, export Exporter) (*Session, error) {
	body, c1, c2, err := state.ReadMessage(nil, message)
	if err != nil {
		return nil, ErrNotAuthentic
	}
	answer, err := readAnswer(body, i.Offer)
	if err != nil {
		return nil, err
	}
	return newSession(Node, i.Hub, i.Offer, answer, state.ChannelBinding(), c1, c2, export)
}

// readNoise reads the frame of a Noise message, which must come now.
func readNoise(r io.Reader, from Side, want FrameKind, overhead int) ([]byte, error) {
	kind, length, err := readHeader(r, from)
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("read %s frame: %w", want, io.ErrUnexpectedEOF)
	case errors.As(err, new(*WireError)):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("read %s frame: %w", want, err)
	case kind != want:
		return nil, &WireError{From: from, Frame: kind, Rule: RuleFrameOrder}
	case length < overhead:
		return nil, &WireError{From: from, Frame: kind, Rule: RuleFrameLength}
	}
	message := make([]byte, length)
	if err := readBody(r, message); err != nil {
		return nil, fmt.Errorf("read %s frame: %w", want, err)
	}
	return message, nil
}
