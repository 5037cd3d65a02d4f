package tunnel

import (
	"context"
	"errors"
	"net"
	"os"

	"github.com/quic-go/quic-go"
)

// CloseCode is why a connection ends: the error code of QUIC's application
// close, and of the Close message before it. One that this program does not
// know is as good as CloseInternal.
type CloseCode uint16

// The close codes.
const (
	CloseDone         CloseCode = iota // its sender needs the tunnel no more
	CloseNotAdmitted                   // the key is no member's: unknown, withdrawn, expired, or there is no network
	CloseSuperseded                    // a newer handshake with the same key has taken the place
	CloseDuplicateKey                  // two ends alternate with one key, and switching is held
	CloseChanged                       // the member's control address changed: dial again at once
	CloseDraining                      // the hub is about to stop
	CloseBusy                          // too many connections are half open
	CloseHandshake                     // a Noise message is not authentic: other keys, another authority, or someone between
	CloseIncompatible                  // nothing in common with the offer
	CloseProtocol                      // a frame broke a rule
	CloseTimeout                       // the handshake, or an answer on the stream, took too long
	CloseInternal                      // the fault is its sender's own

	closeEnd
)

var closeNames = [closeEnd]string{
	CloseDone:         "done",
	CloseNotAdmitted:  "not-admitted",
	CloseSuperseded:   "superseded",
	CloseDuplicateKey: "duplicate-key",
	CloseChanged:      "changed",
	CloseDraining:     "draining",
	CloseBusy:         "busy",
	CloseHandshake:    "handshake",
	CloseIncompatible: "incompatible",
	CloseProtocol:     "protocol",
	CloseTimeout:      "timeout",
	CloseInternal:     "internal",
}

// String returns the code's name.
func (c CloseCode) String() string {
	if c >= closeEnd {
		return "unknown"
	}
	return closeNames[c]
}

// CloseCodes returns every code, for those who count by it.
func CloseCodes() []CloseCode {
	codes := make([]CloseCode, 0, closeEnd)
	for c := range closeEnd {
		codes = append(codes, c)
	}
	return codes
}

// QUIC returns the code as quic-go's CloseWithError takes it. The text beside
// it is always String's: a reason phrase is for people who look at a trace.
func (c CloseCode) QUIC() quic.ApplicationErrorCode { return quic.ApplicationErrorCode(c) }

// CloseCodeFor returns the code that a connection is closed with because of an
// error of this package: of a handshake, of Control's Next, of an exchange of
// keys.
func CloseCodeFor(err error) CloseCode {
	var (
		wire         *WireError
		incompatible *IncompatibleError
		timeout      net.Error
	)
	switch {
	case err == nil:
		return CloseDone
	case errors.As(err, &wire):
		return CloseProtocol
	case errors.As(err, &incompatible):
		return CloseIncompatible
	case errors.Is(err, ErrNotAuthentic):
		return CloseHandshake
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return CloseTimeout
	}
	return CloseInternal
}

// PeerClose returns the code that the other end closed the connection with, if
// err says so. A code that is none of CloseCodes is given as it came; one above
// 65,535 as 65,535.
func PeerClose(err error) (CloseCode, bool) {
	var closed *quic.ApplicationError
	if !errors.As(err, &closed) || !closed.Remote {
		return 0, false
	}
	return CloseCode(min(closed.ErrorCode, 0xffff)), true
}
