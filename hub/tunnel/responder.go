package tunnel

import (
	"errors"
	"fmt"
	"io"

	"github.com/flynn/noise"

	"serve.zone/relay/contract"
)

// A Responder is what a hub listens with: its own key and the authority of the
// network that it holds.
type Responder struct {
	Static      PrivateKey
	AuthorityID string

	random io.Reader // of the ephemeral key; nil outside tests
}

// Receive reads a node's first message from the stream that it opened, and
// nothing behind it. Nothing is answered yet: the hub looks at the key and the
// offer first.
//
// It waits only in the stream, so the caller sets the stream's deadline. Until
// it returns, at most MaxBody bytes of the peer are held.
func (r Responder) Receive(stream io.Reader, export Exporter) (*Request, error) {
	if r.Static.IsZero() {
		return nil, fmt.Errorf("handshake with a node: %w", ErrPrivateKey)
	}
	message, err := readNoise(stream, Node, FrameInitiation, initiationOverhead)
	if err != nil {
		return nil, fmt.Errorf("handshake with a node: %w", err)
	}
	request, err := r.open(message, export)
	if err != nil {
		return nil, fmt.Errorf("handshake with a node: %w", err)
	}
	return request, nil
}

func (r Responder) open(message []byte, export Exporter) (*Request, error) {
	prologue, err := prologue(r.AuthorityID, export)
	if err != nil {
		return nil, err
	}
	state, err := newNoise(Hub, r.Static, contract.NoiseKey{}, prologue, r.random)
	if err != nil {
		return nil, err
	}
	body, _, _, err := state.ReadMessage(nil, message)
	if err != nil {
		return nil, ErrNotAuthentic
	}
	offer, err := readOffer(body)
	if err != nil {
		return nil, err
	}
	return &Request{
		state:  hide(*state),
		export: export,
		peer:   contract.NoiseKey(state.PeerStatic()),
		offer:  offer,
	}, nil
}

// A Request is a node's first message: whoever wrote it holds the private key
// of Peer and sits at the other end of this TLS session.
type Request struct {
	state  hidden[noise.HandshakeState] // none once answered
	export Exporter
	peer   contract.NoiseKey
	offer  Offer
}

// ErrAnswered is a second answer to one request.
var ErrAnswered = errors.New("request has been answered")

// Peer returns the node's static key, by which the hub finds the member.
func (q *Request) Peer() contract.NoiseKey { return q.peer }

// Offer returns what the node can do.
func (q *Request) Offer() Offer { return q.offer }

// Answer writes the response, once. The session that it returns is not
// confirmed before its Control has read the node's confirmation.
func (q *Request) Answer(stream io.Writer, a Answer) (*Session, error) {
	session, frame, err := q.answer(a)
	if err != nil {
		return nil, fmt.Errorf("handshake with a node: %w", err)
	}
	if _, err := stream.Write(frame); err != nil {
		return nil, fmt.Errorf("handshake with a node: write response: %w", err)
	}
	return session, nil
}

func (q *Request) answer(a Answer) (*Session, []byte, error) {
	state := q.state.get()
	if state == nil {
		return nil, nil, ErrAnswered
	}
	body, err := a.encode(q.offer)
	if err != nil {
		return nil, nil, err
	}
	q.state = hidden[noise.HandshakeState]{}
	frame, c1, c2, err := state.WriteMessage(beginFrame(nil, FrameResponse), body)
	if err != nil {
		return nil, nil, err
	}
	session, err := newSession(Hub, q.peer, q.offer, a, state.ChannelBinding(), c1, c2, q.export)
	if err != nil {
		return nil, nil, err
	}
	return session, endFrame(frame, 0), nil
}
