package tunnel

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Terms are what a hub can do.
type Terms struct {
	Versions  []uint8
	InnerMTU  uint16        // of the whole network
	Lanes     []Lane        // LaneDatagram among them
	Ciphers   []Cipher      // the preferred one first
	Keepalive time.Duration // whole seconds, Keepalive to MaxKeepalive
}

// DatagramTerms are those of a hub that has the datagram lane alone.
func DatagramTerms() Terms {
	return Terms{
		Versions:  []uint8{Version},
		InnerMTU:  DefaultInnerMTU,
		Lanes:     []Lane{LaneDatagram},
		Keepalive: Keepalive,
	}
}

// Mismatch is what two ends have not in common.
type Mismatch string

// The mismatches.
const (
	MismatchVersion  Mismatch = "version"
	MismatchInnerMTU Mismatch = "inner-mtu"
)

// IncompatibleError is an offer that a hub's terms cannot meet. The connection
// ends with CloseIncompatible.
type IncompatibleError struct {
	What Mismatch
}

func (e *IncompatibleError) Error() string {
	return fmt.Sprintf("nothing in common with the node's offer: %s", e.What)
}

// ErrTerms are terms that no hub can have.
var ErrTerms = errors.New("terms of the hub are not valid")

// Validate tells what is wrong with terms, or returns nil.
func (t Terms) Validate() error {
	direct := slices.Contains(t.Lanes, LaneDirect)
	switch {
	case !distinct(t.Versions):
		return fmt.Errorf("%w: versions", ErrTerms)
	case t.InnerMTU < MinInnerMTU || t.InnerMTU > MaxInnerMTU:
		return fmt.Errorf("%w: inner mtu is not %d to %d", ErrTerms, MinInnerMTU, MaxInnerMTU)
	case !slices.Contains(t.Lanes, LaneDatagram):
		return fmt.Errorf("%w: no datagram lane", ErrTerms)
	case direct && !distinct(t.Ciphers):
		return fmt.Errorf("%w: ciphers", ErrTerms)
	case t.Keepalive < Keepalive || t.Keepalive > MaxKeepalive || t.Keepalive%time.Second != 0:
		return fmt.Errorf("%w: keepalive is not whole seconds from %v to %v", ErrTerms, Keepalive, MaxKeepalive)
	}
	return nil
}

// Negotiate chooses Version, InnerMTU, Lane, Cipher and Keepalive of an answer;
// the member's addresses and the receiver index are the hub's to add.
//
//   - Version is the highest that both know.
//   - InnerMTU is the hub's, which a node has to take whole: a packet comes
//     from any member, and none is dropped for its size.
//   - Lane is the direct one if both have it and a cipher in common.
//   - Cipher is AES-256-GCM if both prefer it, since an end without its
//     instructions would pay for both; else ChaCha20-Poly1305 if both have it,
//     else the first of the hub's that the node has.
func (t Terms) Negotiate(offer Offer) (Answer, error) {
	a := Answer{InnerMTU: t.InnerMTU, Lane: LaneDatagram, Keepalive: t.Keepalive}
	for _, v := range offer.Versions {
		if slices.Contains(t.Versions, v) {
			a.Version = max(a.Version, v)
		}
	}
	switch {
	case a.Version == 0:
		return Answer{}, &IncompatibleError{MismatchVersion}
	case offer.InnerMTU < t.InnerMTU:
		return Answer{}, &IncompatibleError{MismatchInnerMTU}
	case !offer.Direct() || !slices.Contains(t.Lanes, LaneDirect):
		return a, nil
	}
	if a.Cipher = chooseCipher(t.Ciphers, offer.Ciphers); a.Cipher != 0 {
		a.Lane = LaneDirect
	}
	return a, nil
}

func chooseCipher(hub, node []Cipher) Cipher {
	first := func(list []Cipher) Cipher {
		if len(list) == 0 {
			return 0
		}
		return list[0]
	}
	if first(hub) == CipherAES256GCM && first(node) == CipherAES256GCM {
		return CipherAES256GCM
	}
	for _, c := range append([]Cipher{CipherChaCha20}, hub...) {
		if slices.Contains(hub, c) && slices.Contains(node, c) {
			return c
		}
	}
	return 0
}
