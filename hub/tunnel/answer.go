package tunnel

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// An Answer is what the hub decided: the payload of Noise's second message.
type Answer struct {
	Version       uint8
	InnerMTU      uint16 // of the whole network, MinInnerMTU to MaxInnerMTU
	ReceiverIndex uint32 // with LaneDirect only: what packets to the hub bear, not zero
	Lane          Lane   // the preferred one of those that both ends have
	Cipher        Cipher // with LaneDirect only

	// ControlAddress is the member's own address in the control prefix, whose
	// length it bears, 8 to 30. HubAddress is the hub's in the same prefix.
	ControlAddress netip.Prefix
	HubAddress     netip.Addr

	// Keepalive is the longest the node may go without sending something that
	// asks for an acknowledgement: whole seconds, 10 to 60.
	Keepalive time.Duration
}

// ErrAnswer is an answer of this program's own that breaks the rules for
// answers, or answers another offer.
var ErrAnswer = errors.New("answer breaks the rules for answers")

// The lengths of a control prefix (contract §10.2): a private range has at
// least 8 bits, a subnet with a hub and a member at most 30.
const (
	minControlPrefix = 8
	maxControlPrefix = 30
)

var answerFields = setOf(fieldInnerMTU, fieldReceiverIndex, fieldVersion, fieldLane, fieldCipher,
	fieldControlAddress, fieldHubAddress, fieldKeepalive)

func (a Answer) appendBody(dst []byte) []byte {
	dst = appendUint16(dst, fieldInnerMTU, a.InnerMTU)
	if a.Lane == LaneDirect {
		dst = appendUint32(dst, fieldReceiverIndex, a.ReceiverIndex)
	}
	dst = appendField(dst, fieldVersion, a.Version)
	dst = appendField(dst, fieldLane, byte(a.Lane))
	if a.Lane == LaneDirect {
		dst = appendField(dst, fieldCipher, byte(a.Cipher))
	}
	control := a.ControlAddress.Addr().As4()
	dst = appendField(dst, fieldControlAddress, control[0], control[1], control[2], control[3], byte(a.ControlAddress.Bits()))
	dst = appendAddress(dst, fieldHubAddress, a.HubAddress)
	return appendField(dst, fieldKeepalive, byte(a.Keepalive/time.Second))
}

// encode returns the fields of an answer that the reader with that offer takes.
func (a Answer) encode(offer Offer) ([]byte, error) {
	switch {
	case !a.ControlAddress.Addr().Is4() || !a.HubAddress.Is4():
		return nil, fmt.Errorf("%w: an address is not ipv4", ErrAnswer)
	case a.Keepalive%time.Second != 0 || a.Keepalive < 0 || a.Keepalive > MaxKeepalive:
		return nil, fmt.Errorf("%w: keepalive is not whole seconds up to %v", ErrAnswer, MaxKeepalive)
	}
	body := a.appendBody(nil)
	if _, err := readAnswer(body, offer); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return body, nil
}

// readAnswer reads the answer to an offer.
func readAnswer(body []byte, offer Offer) (Answer, error) {
	f := readFields(body, answerFields)
	a := Answer{
		InnerMTU:       f.uint16(fieldInnerMTU),
		Version:        f.uint8(fieldVersion),
		Lane:           Lane(f.uint8(fieldLane)),
		ControlAddress: f.prefix(fieldControlAddress),
		HubAddress:     f.address(fieldHubAddress),
		Keepalive:      time.Duration(f.uint8(fieldKeepalive)) * time.Second,
	}
	f.require(fieldInnerMTU, a.InnerMTU >= MinInnerMTU && a.InnerMTU <= MaxInnerMTU)
	bits := a.ControlAddress.Bits()
	f.require(fieldControlAddress, bits >= minControlPrefix && bits <= maxControlPrefix && a.ControlAddress.Addr() != a.HubAddress)
	f.require(fieldHubAddress, a.ControlAddress.Contains(a.HubAddress))
	f.require(fieldKeepalive, a.Keepalive >= Keepalive && a.Keepalive <= MaxKeepalive)
	if a.Lane == LaneDirect {
		a.ReceiverIndex = f.uint32(fieldReceiverIndex)
		f.require(fieldReceiverIndex, a.ReceiverIndex != 0)
		a.Cipher = Cipher(f.uint8(fieldCipher))
	} else {
		f.forbid(fieldReceiverIndex)
		f.forbid(fieldCipher)
	}
	a.judgeChoice(&f, offer)
	if err := f.error(Hub, FrameResponse); err != nil {
		return Answer{}, err
	}
	return a, nil
}

// judgeChoice holds what was chosen against what was offered.
func (a Answer) judgeChoice(f *fields, offer Offer) {
	for _, choice := range []struct {
		field   uint8
		offered bool
	}{
		{fieldVersion, slices.Contains(offer.Versions, a.Version)},
		{fieldInnerMTU, a.InnerMTU <= offer.InnerMTU},
		{fieldLane, slices.Contains(offer.Lanes, a.Lane)},
		{fieldCipher, a.Lane != LaneDirect || slices.Contains(offer.Ciphers, a.Cipher)},
	} {
		if !choice.offered {
			f.fail(choice.field, RuleNotOffered)
		}
	}
}
