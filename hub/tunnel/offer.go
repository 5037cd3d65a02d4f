package tunnel

import (
	"errors"
	"fmt"
	"slices"
)

// An Offer is what a node can do: the payload of Noise's first message.
type Offer struct {
	Versions      []uint8  // rising
	InnerMTU      uint16   // the largest inner packet it takes, MinInnerMTU to MaxInnerMTU
	Lanes         []Lane   // rising; LaneDatagram is always among them
	Ciphers       []Cipher // with LaneDirect only: the preferred one first, none twice
	ReceiverIndex uint32   // with LaneDirect only: what packets to the node bear, not zero
}

// ErrOffer is an offer of this program's own that breaks the rules for offers.
var ErrOffer = errors.New("offer breaks the rules for offers")

// Direct reports whether the offer has the direct lane.
func (o Offer) Direct() bool { return slices.Contains(o.Lanes, LaneDirect) }

var offerFields = setOf(fieldVersions, fieldInnerMTU, fieldLanes, fieldCiphers, fieldReceiverIndex)

// appendBody appends the fields of an offer.
func (o Offer) appendBody(dst []byte) []byte {
	dst = appendField(dst, fieldVersions, o.Versions...)
	dst = appendUint16(dst, fieldInnerMTU, o.InnerMTU)
	dst = appendField(dst, fieldLanes, bytesOf(o.Lanes)...)
	if o.Direct() {
		dst = appendField(dst, fieldCiphers, bytesOf(o.Ciphers)...)
		dst = appendUint32(dst, fieldReceiverIndex, o.ReceiverIndex)
	}
	return dst
}

// encode returns the fields of an offer that a reader takes.
func (o Offer) encode() ([]byte, error) {
	if len(o.Versions) > maxList || len(o.Lanes) > maxList || len(o.Ciphers) > maxList {
		return nil, ErrOffer
	}
	body := o.appendBody(nil)
	if _, err := readOffer(body); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOffer, err)
	}
	return body, nil
}

// readOffer reads an offer. Versions, lanes and ciphers that nobody knows yet
// are kept: a list says what the sender can do, and whoever chooses passes
// over what it does not know.
func readOffer(body []byte) (Offer, error) {
	f := readFields(body, offerFields)
	o := Offer{
		Versions: slices.Clone(f.list(fieldVersions)),
		InnerMTU: f.uint16(fieldInnerMTU),
		Lanes:    listOf[Lane](f.list(fieldLanes)),
	}
	f.require(fieldVersions, rises(o.Versions))
	f.require(fieldInnerMTU, o.InnerMTU >= MinInnerMTU && o.InnerMTU <= MaxInnerMTU)
	f.require(fieldLanes, rises(o.Lanes) && o.Lanes[0] == LaneDatagram)
	if o.Direct() {
		o.Ciphers = listOf[Cipher](f.list(fieldCiphers))
		f.require(fieldCiphers, distinct(o.Ciphers))
		o.ReceiverIndex = f.uint32(fieldReceiverIndex)
		f.require(fieldReceiverIndex, o.ReceiverIndex != 0)
	} else {
		f.forbid(fieldCiphers)
		f.forbid(fieldReceiverIndex)
	}
	if err := f.error(Node, FrameInitiation); err != nil {
		return Offer{}, err
	}
	return o, nil
}

// rises reports whether a list is not empty, begins above zero and rises.
func rises[T ~uint8](list []T) bool {
	last := T(0)
	for _, v := range list {
		if v <= last {
			return false
		}
		last = v
	}
	return len(list) > 0
}

// distinct reports whether a list is not empty and holds nothing twice, and no
// zero.
func distinct[T ~uint8](list []T) bool {
	for i, v := range list {
		if v == 0 || slices.Contains(list[:i], v) {
			return false
		}
	}
	return len(list) > 0
}

func bytesOf[T ~uint8](list []T) []byte {
	b := make([]byte, len(list))
	for i, v := range list {
		b[i] = byte(v)
	}
	return b
}

func listOf[T ~uint8](b []byte) []T {
	if b == nil {
		return nil
	}
	list := make([]T, len(b))
	for i, v := range b {
		list[i] = T(v)
	}
	return list
}
