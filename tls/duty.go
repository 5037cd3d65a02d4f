package origincert

import (
	"context"
	"time"

	"serve.zone/relay/duty"
)

// Duty shows a Source as a duty of the relay, named "tls". Its checks are those of
// Status.Checks; whoever shows them elsewhere has no need of it.
type Duty struct {
	Source Source
	Wall   func() time.Time // the clock that Status judges by
}

var _ duty.Duty = Duty{}

// Name returns the duty's name.
func (d Duty) Name() string { return Name }

// Checks returns what Status.Checks says of the source.
func (d Duty) Checks(now time.Time) []duty.Check { return d.Source.Status(now).Checks(now) }

// Status returns the source's Status.
func (d Duty) Status() any { return d.Source.Status(d.Wall()) }

// DropCustody does nothing: the certificate is the origin's, and is kept
// (contract §6.2).
func (d Duty) DropCustody(string) {}

// Drain does nothing: handshakes end with the listener.
func (d Duty) Drain(context.Context) error { return nil }
