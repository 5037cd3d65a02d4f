package origincert

import (
	"crypto/tls"
	"errors"
	"time"
)

// Source is where the certificate of the relay's origin comes from.
type Source interface {
	// GetCertificate is what tls.Config wants. It never blocks. While there is
	// no certificate the error is ErrNone, and the handshake fails.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Status tells what is served at a time, and what was refused. It never
	// blocks.
	Status(now time.Time) Status
	// Matches reports whether the certificate is good for a host name or an
	// address, as clients judge it: what the relay compares its origin with
	// (contract §5.3).
	Matches(host string) bool
}

// ErrNone is met while there is no certificate to serve.
var ErrNone = errors.New("no certificate to serve")

// Status is the certificate's part of the status document: its subject and its
// dates, and nothing else of it (contract §17).
type Status struct {
	// State is pending, valid, expired or not-yet-valid.
	State     string    `json:"state"`
	Names     []string  `json:"names"` // host names and addresses, never nil
	NotBefore time.Time `json:"notBefore,omitzero"`
	NotAfter  time.Time `json:"notAfter,omitzero"`
	// Since is when the certificate was taken up, or, while there is none, since
	// when there is none.
	Since time.Time `json:"since,omitzero"`
	// AcceptedSince is since when what stands in the files is what is served, zero
	// while it is not. A check shows it.
	AcceptedSince time.Time `json:"-"`
	// Refused is the reason why what stands in the files now is not served,
	// empty when it is.
	Refused      string    `json:"refused,omitempty"`
	RefusedSince time.Time `json:"refusedSince,omitzero"`
}

// The states of a certificate.
const (
	StatePending     = "pending" // there is none
	StateValid       = "valid"
	StateExpired     = "expired"
	StateNotYetValid = "not-yet-valid"
)

// stateAt tells how a certificate with these dates stands.
func stateAt(notBefore, notAfter, now time.Time) string {
	switch {
	case now.Before(notBefore):
		return StateNotYetValid
	case now.After(notAfter):
		return StateExpired
	}
	return StateValid
}
