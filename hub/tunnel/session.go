package tunnel

import (
	"github.com/flynn/noise"

	"serve.zone/relay/contract"
)

// A Session is a handshake that has succeeded. It does not change, but for the
// secrets of the direct lane, which Direct hands over.
type Session struct {
	side   Side
	peer   contract.NoiseKey
	offer  Offer
	answer Answer

	proof hidden[[KeySize]byte] // the node's confirmation
	root  hidden[root]          // none once Direct has handed it over
}

// newSession takes the results of Noise's Split. Its two keys go into the root
// and are used for nothing else.
func newSession(side Side, peer contract.NoiseKey, offer Offer, answer Answer, hash []byte, c1, c2 *noise.CipherState, export Exporter) (*Session, error) {
	lane, err := exportSecret(export, laneLabel, hash)
	if err != nil {
		return nil, err
	}
	k1, k2 := c1.UnsafeKey(), c2.UnsafeKey()
	root := newRoot([KeySize]byte(hash), k1, k2, lane)
	proof := root.master.proof(Node, 0, [KeySize]byte{}, [KeySize]byte{})
	return &Session{side, peer, offer, answer, hide(proof), hide(root)}, nil
}

// Side returns which end this program is.
func (s *Session) Side() Side { return s.side }

// Peer returns the other end's static key.
func (s *Session) Peer() contract.NoiseKey { return s.peer }

// Offer returns what the node offered.
func (s *Session) Offer() Offer { return s.offer }

// Answer returns what the hub decided.
func (s *Session) Answer() Answer { return s.answer }
