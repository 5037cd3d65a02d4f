package hub

import (
	"errors"
	"strings"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/tunnel"
	"serve.zone/relay/typedsocket"
)

// VPNNetworkInvalid refuses a pushed network that breaks a rule of contract §10.2.
// OWN: the seeds have no name for it.
const VPNNetworkInvalid contract.RefusalName = "vpn-network-invalid"

// handshakeEnd is how a connection's handshake ended. The peer is told less: see
// code.
type handshakeEnd uint8

const (
	endConfirmed    handshakeEnd = iota
	endHeld                      // another one stands, and lives, or a newer one waits for its place
	endUnknown                   // the key was never a member's
	endWithdrawn                 // the key is no member's any more
	endExpired                   // the member's time is over
	endNoNetwork                 // there is no network
	endNotAuthentic              // other keys, another authority, or someone between
	endIncompatible              // nothing in common with the offer
	endProtocol                  // a frame broke a rule
	endTimeout                   // it took too long
	endGone                      // the connection ended first
	endNoHybrid                  // TLS: no X25519MLKEM768
	endOtherALPN                 // TLS: another protocol
	endFull                      // too many are half open
	endSubnetFull                // too many of one /24 are half open
	endDisplaced                 // it gave way to another when too many were half open
	endDraining                  // the relay is about to stop
	endFault                     // a mistake of this program
	handshakeEnds                // how many there are
)

var handshakeEndNames = [handshakeEnds]string{
	endConfirmed: "confirmed", endHeld: "duplicate-key", endUnknown: "key-unknown", endWithdrawn: "key-withdrawn",
	endExpired: "expired", endNoNetwork: "no-network", endNotAuthentic: "not-authentic",
	endIncompatible: "incompatible", endProtocol: "protocol", endTimeout: "timeout", endGone: "gone",
	endNoHybrid: "tls-no-hybrid", endOtherALPN: "tls-other-protocol", endFull: "too-many",
	endSubnetFull: "too-many-of-one-subnet", endDisplaced: "displaced", endDraining: "draining", endFault: "fault",
}

// String returns the name of the end.
func (e handshakeEnd) String() string { return handshakeEndNames[e] }

// code is what the peer is told. Whether a key is unknown, withdrawn or expired is
// nobody's business but the operator's (design §5.1).
func (e handshakeEnd) code() tunnel.CloseCode {
	switch e {
	case endHeld:
		return tunnel.CloseDuplicateKey
	case endUnknown, endWithdrawn, endExpired, endNoNetwork:
		return tunnel.CloseNotAdmitted
	case endNotAuthentic:
		return tunnel.CloseHandshake
	case endIncompatible:
		return tunnel.CloseIncompatible
	case endProtocol:
		return tunnel.CloseProtocol
	case endTimeout:
		return tunnel.CloseTimeout
	case endFull, endSubnetFull, endDisplaced:
		return tunnel.CloseBusy
	case endDraining:
		return tunnel.CloseDraining
	}
	return tunnel.CloseInternal
}

// told reports whether a handshake that ended so is an event: it says that a node
// or the network needs somebody's attention.
func (e handshakeEnd) told() bool {
	switch e {
	case endConfirmed, endGone, endDraining, endHeld:
		return false
	}
	return true
}

// endFor is how a handshake ended that failed with an error of package tunnel.
func endFor(err error) handshakeEnd {
	switch tunnel.CloseCodeFor(err) {
	case tunnel.CloseProtocol:
		return endProtocol
	case tunnel.CloseIncompatible:
		return endIncompatible
	case tunnel.CloseHandshake:
		return endNotAuthentic
	case tunnel.CloseTimeout:
		return endTimeout
	}
	return endGone
}

// sessionEnd is why a session ended.
type sessionEnd uint8

const (
	endedByPeer    sessionEnd = iota // the node closed it, or its stream
	endedSilent                      // nothing came for too long
	endedWithdrawn                   // its member is none any more
	endedChanged                     // its member's address or id changed
	endedExpired                     // its member's time is over
	endedNewer                       // a newer connection of the member took the place
	endedProtocol                    // a frame broke a rule
	endedStuck                       // the node does not read its stream, or takes hardly any packet
	endedCustody                     // custody ended
	endedEmptied                     // the cluster has no network any more
	endedDraining                    // the relay is about to stop
	endedFault                       // a mistake of this program
	sessionEnds                      // how many there are
)

var sessionEndNames = [sessionEnds]string{
	endedByPeer: "closed-by-node", endedSilent: "silent", endedWithdrawn: "withdrawn", endedChanged: "changed",
	endedExpired: "expired", endedNewer: "superseded", endedProtocol: "protocol", endedStuck: "stuck",
	endedCustody: "custody-ended", endedEmptied: "network-emptied", endedDraining: "draining", endedFault: "fault",
}

// String returns the name of the end.
func (e sessionEnd) String() string { return sessionEndNames[e] }

// networkEnd is what became of a network that was pushed or pulled.
type networkEnd uint8

const (
	networkAccepted   networkEnd = iota
	networkReplayed              // it is the one held
	networkEmptied               // the cluster has none
	networkStale                 // its revision is not the next one
	networkForeign               // another authority or control prefix
	networkFailed                // it could not be taken over
	networkInvalid               // it broke a rule
	networkNotReady              // custody had ended, or it came over another socket than the session's
	networkOverloaded            // too many waited to be judged
	networkUnanswered            // the pull was not answered with one
	networkEnds                  // how many there are
)

var networkEndNames = [networkEnds]string{
	networkAccepted: "accepted", networkReplayed: "replayed", networkEmptied: "emptied", networkStale: "stale",
	networkForeign: "foreign", networkFailed: "failed", networkInvalid: "invalid", networkNotReady: "not-ready",
	networkOverloaded: "overloaded", networkUnanswered: "unanswered",
}

// String returns the name of the end.
func (e networkEnd) String() string { return networkEndNames[e] }

// origin is how a network came.
type origin uint8

const (
	pushed  origin = iota
	pulled         // Cloudly was asked for it
	origins        // how many there are
)

var originNames = [origins]string{pushed: "pushed", pulled: "pulled"}

// String returns the name of the origin.
func (o origin) String() string { return originNames[o] }

// refusing is what a request is refused with: the text and the data of an error.
type refusing interface {
	error
	AppendData(dst []byte) []byte
}

func refuse(r *typedsocket.Request, with refusing) { r.Refuse(with.Error(), with.AppendData(nil)) }

func refusal(name contract.RefusalName, reason string) *contract.Refusal {
	return &contract.Refusal{Name: name, Reason: reason}
}

func notReady() *contract.Refusal {
	return refusal(contract.RelayNotReady, "the relay holds no session to Cloudly, or is about to stop")
}

// reasonsOf lists the named reasons of a body that was refused. They name members
// and rules and quote nothing (package contract).
func reasonsOf(err error) string {
	var invalid *contract.InvalidError
	if !errors.As(err, &invalid) {
		return ""
	}
	return strings.Join(invalid.Reasons, "; ")
}
