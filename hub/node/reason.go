package node

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/hub/tunnel"
)

// A Reason is why a connection to the hub ended or never came to be. It decides when the
// next attempt is made (docs/tunnel.md, section 10).
type Reason string

// The reasons that the hub gives: its close codes by their names. Each says what the node
// does next.
const (
	HubDone         Reason = "done"          // the hub needs the tunnel no more: usual pace
	HubNotAdmitted  Reason = "not-admitted"  // the key is no member's (now): slow pace, at once with a renewed credential
	HubSuperseded   Reason = "superseded"    // another program with this key has taken the place: rare pace, counted with the next over every tunnel that stood for less than ten minutes
	HubDuplicateKey Reason = "duplicate-key" // this program and another alternate with one key: rare pace
	HubChanged      Reason = "changed"       // the control address changed: at once
	HubDraining     Reason = "draining"      // the hub is about to stop: after the time it named
	HubBusy         Reason = "busy"          // too many connections are half open: slow pace
	HubHandshake    Reason = "handshake"     // the hub could not open the first message: the credential is wrong, or the network hostile: rare pace
	HubIncompatible Reason = "incompatible"  // needs another program: rare pace
	HubProtocol     Reason = "protocol"      // the hub says that this program broke a rule: rare pace
	HubTimeout      Reason = "timeout"       // the hub waited too long for this node: usual pace
	HubInternal     Reason = "internal"      // a fault of the hub, or a code that is not known here: usual pace
)

// The reasons that the node finds by itself.
const (
	NoSocket        Reason = "no-socket"         // the system gave none: usual pace
	Unreachable     Reason = "unreachable"       // nothing answered: usual pace
	NoAnswer        Reason = "no-answer"         // QUIC was answered, the handshake on the stream was not: usual pace
	Silent          Reason = "silent"            // the tunnel was up, and nothing came for tunnel.IdleTimeout: at once
	Reset           Reason = "reset"             // the hub has started anew, with the same key: at once
	OtherProtocol   Reason = "other-protocol"    // whoever answers speaks something else: rare pace
	NoHybrid        Reason = "no-hybrid"         // whoever answers has not the key exchange that is asked for: rare pace
	HubNotAuthentic Reason = "hub-not-authentic" // whoever answers is not the hub of the credential: rare pace
	HubBrokeRule    Reason = "hub-broke-rule"    // a frame of the hub's broke a rule: rare pace
	HubHungUp       Reason = "hub-hung-up"       // the stream ended without a word: usual pace
	HubStuck        Reason = "hub-stuck"         // the hub reads nothing: usual pace
	Transport       Reason = "transport"         // QUIC failed: usual pace
	DeviceRefused   Reason = "device-refused"    // the device did not take the hub's settings: rare pace
)

// pace is how attempts that failed follow each other.
type pace struct{ first, most time.Duration }

// paces hold every reason.
var paces = map[Reason]pace{
	HubDone:         usual,
	HubNotAdmitted:  slow,
	HubSuperseded:   rare,
	HubDuplicateKey: rare,
	HubChanged:      prompt,
	HubDraining:     prompt,
	HubBusy:         slow,
	HubHandshake:    rare,
	HubIncompatible: rare,
	HubProtocol:     rare,
	HubTimeout:      usual,
	HubInternal:     usual,

	NoSocket:        usual,
	Unreachable:     usual,
	NoAnswer:        usual,
	Silent:          prompt,
	Reset:           prompt,
	OtherProtocol:   rare,
	NoHybrid:        rare,
	HubNotAuthentic: rare,
	HubBrokeRule:    rare,
	HubHungUp:       usual,
	HubStuck:        usual,
	Transport:       usual,
	DeviceRefused:   rare,
}

// Reasons returns every reason, for those who count by it, in no order.
func Reasons() []Reason {
	all := make([]Reason, 0, len(paces))
	for r := range paces {
		all = append(all, r)
	}
	return all
}

// wait is how long to wait before the next attempt, after that many failures in a row, at
// least one. random is below 1.
func (r Reason) wait(failures int, retryAfter time.Duration, random float64) time.Duration {
	p := paces[r]
	if retryAfter > 0 {
		return min(retryAfter+time.Duration(random*float64(spread)), mostWait)
	}
	if p.first == 0 {
		if failures == 1 {
			return 0
		}
		p.first, failures = usual.first, failures-1
	}
	wait := p.most
	// A shift of more than these bits is above every pace.
	if shift := failures - 1; shift < 16 {
		wait = min(p.first<<shift, p.most)
	}
	return wait - time.Duration(random*float64(wait)/2)
}

// reasonOfCode names what the hub closed with.
func reasonOfCode(code tunnel.CloseCode) Reason {
	r := Reason(code.String())
	if _, known := paces[r]; !known {
		return HubInternal
	}
	return r
}

// reasonOf names why an attempt failed, or a tunnel that was up ended.
func reasonOf(err error, up bool) Reason {
	var (
		wire      *tunnel.WireError
		reset     *quic.StatelessResetError
		idle      *quic.IdleTimeoutError
		handshake *quic.HandshakeTimeoutError
		transport *quic.TransportError
	)
	if code, ok := tunnel.PeerClose(err); ok {
		return reasonOfCode(code)
	}
	named := tunnel.NameTLSError(err)
	switch {
	case errors.Is(named, tunnel.ErrNoHybrid):
		return NoHybrid
	case errors.Is(named, tunnel.ErrOtherProtocol):
		return OtherProtocol
	case errors.Is(err, tunnel.ErrNotAuthentic):
		return HubNotAuthentic
	case errors.As(err, &wire):
		return HubBrokeRule
	case errors.As(err, &reset):
		return Reset
	case errors.As(err, &idle) && up:
		return Silent
	case errors.As(err, &idle), errors.As(err, &handshake), errors.Is(err, context.DeadlineExceeded):
		return Unreachable
	case errors.As(err, &transport) && transport.Remote && transport.ErrorCode == quic.ConnectionRefused:
		return HubBusy
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return HubHungUp
	case tunnel.CloseCodeFor(err) == tunnel.CloseTimeout:
		return NoAnswer
	}
	return Transport
}
