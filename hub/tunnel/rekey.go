package tunnel

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"time"
)

// Keys are the two keys of an epoch of the direct lane. They are handed from
// Epochs to a Direct and never shown.
type Keys struct {
	epoch      uint32
	cipher     Cipher
	seal, open hidden[[KeySize]byte]
}

// Epoch returns which epoch the keys are of.
func (k Keys) Epoch() uint32 { return k.epoch }

// String says which epoch the keys are of, and nothing of them.
func (k Keys) String() string { return fmt.Sprintf("keys of epoch %d", k.epoch) }

// GoString is String.
func (k Keys) GoString() string { return k.String() }

// Format is String, whatever the verb.
func (k Keys) Format(f fmt.State, _ rune) { io.WriteString(f, k.String()) }

// Epochs are one end's part in the exchanges of keys: a state machine whose
// events are the messages of the control stream. It belongs to the goroutine
// that owns the stream.
//
// The node begins: Begin, and Finish with the hub's answer. The hub answers:
// Answer, and Complete with the node's last message. Epochs keeps the newest
// secret and that of an exchange under way, nothing older.
type Epochs struct {
	side   Side
	cipher Cipher
	random io.Reader

	root     hidden[root] // of the newest epoch
	epoch    uint32       // its number
	finished time.Time

	pending bool
	offered PrivateKey        // node: of the offer under way
	next    hidden[exchanged] // hub: of the answer under way
}

// exchanged is an epoch that the node has not proved yet.
type exchanged struct {
	master master
	proof  [KeySize]byte
}

// Errors of a node that begins an exchange.
var (
	ErrRekeyPending = errors.New("an exchange of keys is under way")
	ErrRekeyEarly   = fmt.Errorf("the last exchange of keys ended less than %v ago", RekeySpacing)
)

// Direct hands over the direct lane of a session that has one, and the
// exchanges that renew its keys; now is the end of the handshake. Without that
// lane, and a second time, it returns nil: two lanes with the same keys would
// seal under the same counters.
func (s *Session) Direct(now time.Time) (*Direct, *Epochs) {
	if s.answer.Lane != LaneDirect || s.root.get() == nil {
		return nil, nil
	}
	e := &Epochs{
		side:   s.side,
		cipher: s.answer.Cipher,
		random: rand.Reader,
		root:   s.root,
	}
	// The hub learns of the end of the handshake later than the node, so it
	// measures between exchanges only, where it is the earlier one.
	if s.side == Node {
		e.finished = now
	}
	s.root = hidden[root]{}
	return newDirect(s, e.keys(e.root.get().master, 0), now), e
}

func (e *Epochs) keys(m master, epoch uint32) Keys {
	seal, open := m.key(e.side, e.cipher, epoch), m.key(e.side.other(), e.cipher, epoch)
	return Keys{epoch, e.cipher, hide(seal), hide(open)}
}

// Begin begins the next epoch, on the node.
func (e *Epochs) Begin(now time.Time) (RekeyOffer, error) {
	switch {
	case e.pending:
		return RekeyOffer{}, ErrRekeyPending
	case now.Sub(e.finished) < RekeySpacing:
		return RekeyOffer{}, ErrRekeyEarly
	}
	key, err := GeneratePrivateKey(e.random)
	if err != nil {
		return RekeyOffer{}, fmt.Errorf("begin epoch %d: %w", e.epoch+1, err)
	}
	e.pending, e.offered = true, key
	return RekeyOffer{e.epoch + 1, key.public}, nil
}

// Answer takes part in a node's exchange, on the hub. The Direct opens under
// the keys before the answer leaves.
func (e *Epochs) Answer(offer RekeyOffer, now time.Time) (RekeyAnswer, Keys, error) {
	switch {
	case e.side != Hub || e.pending:
		return RekeyAnswer{}, Keys{}, e.broke(FrameRekeyOffer, RuleRekeyOrder)
	case offer.Epoch != e.epoch+1:
		return RekeyAnswer{}, Keys{}, e.broke(FrameRekeyOffer, RuleRekeyEpoch)
	case now.Sub(e.finished) < minRekeySpacing:
		return RekeyAnswer{}, Keys{}, e.broke(FrameRekeyOffer, RuleRekeyEarly)
	}
	key, err := GeneratePrivateKey(e.random)
	if err != nil {
		return RekeyAnswer{}, Keys{}, fmt.Errorf("answer for epoch %d: %w", offer.Epoch, err)
	}
	shared, err := key.exchange(offer.Public)
	if err != nil {
		return RekeyAnswer{}, Keys{}, e.broke(FrameRekeyOffer, RuleRekeyKey)
	}
	next := e.root.get().next(shared)
	e.pending, e.finished = true, now
	e.next = hide(exchanged{next, next.proof(Node, offer.Epoch, offer.Public, key.public)})
	answer := RekeyAnswer{offer.Epoch, key.public, next.proof(Hub, offer.Epoch, offer.Public, key.public)}
	return answer, e.keys(next, offer.Epoch), nil
}

// Finish ends the exchange on the node. The Direct opens and seals under the
// keys from then on: the hub has proved that it has them.
func (e *Epochs) Finish(answer RekeyAnswer, now time.Time) (RekeyDone, Keys, error) {
	switch {
	case e.side != Node || !e.pending:
		return RekeyDone{}, Keys{}, e.broke(FrameRekeyAnswer, RuleRekeyOrder)
	case answer.Epoch != e.epoch+1:
		return RekeyDone{}, Keys{}, e.broke(FrameRekeyAnswer, RuleRekeyEpoch)
	}
	shared, err := e.offered.exchange(answer.Public)
	if err != nil {
		return RekeyDone{}, Keys{}, e.broke(FrameRekeyAnswer, RuleRekeyKey)
	}
	next := e.root.get().next(shared)
	want := next.proof(Hub, answer.Epoch, e.offered.public, answer.Public)
	if subtle.ConstantTimeCompare(answer.Proof[:], want[:]) != 1 {
		return RekeyDone{}, Keys{}, e.broke(FrameRekeyAnswer, RuleRekeyProof)
	}
	done := RekeyDone{answer.Epoch, next.proof(Node, answer.Epoch, e.offered.public, answer.Public)}
	e.advance(next)
	e.finished = now
	return done, e.keys(next, e.epoch), nil
}

// Complete ends the exchange on the hub, and returns the epoch that the Direct
// may seal under from then on: the node has proved that it has the keys.
func (e *Epochs) Complete(done RekeyDone) (epoch uint32, err error) {
	switch {
	case e.side != Hub || !e.pending:
		return 0, e.broke(FrameRekeyDone, RuleRekeyOrder)
	case done.Epoch != e.epoch+1:
		return 0, e.broke(FrameRekeyDone, RuleRekeyEpoch)
	case subtle.ConstantTimeCompare(done.Proof[:], e.next.get().proof[:]) != 1:
		return 0, e.broke(FrameRekeyDone, RuleRekeyProof)
	}
	e.advance(e.next.get().master)
	return e.epoch, nil
}

// advance moves to the secret of the next epoch and forgets all before it.
func (e *Epochs) advance(next master) {
	e.root, e.epoch = hide(root{next, e.root.get().lane}), e.epoch+1
	e.pending, e.offered, e.next = false, PrivateKey{}, hidden[exchanged]{}
}

func (e *Epochs) broke(frame FrameKind, rule Rule) error {
	return &WireError{From: e.side.other(), Frame: frame, Rule: rule}
}
