package appliance

import (
	"context"
	"sync/atomic"
	"time"

	"serve.zone/relay/duty"
)

// phase is how far the life of a relay is.
type phase uint32

const (
	starting phase = iota
	serving
	draining
	stopped
)

var phaseNames = [...]string{starting: "starting", serving: "serving", draining: "draining", stopped: "stopped"}

func (p phase) String() string { return phaseNames[p] }

// whole is the duty under which the relay speaks of itself.
type whole struct {
	cfg     Config
	trusted *authorities
	phase   atomic.Uint32
	since   atomic.Pointer[time.Time] // of the phase
}

func newWhole(cfg Config, trusted *authorities) *whole {
	w := &whole{cfg: cfg, trusted: trusted}
	w.enter(starting)
	return w
}

func (w *whole) enter(p phase) {
	now := w.cfg.Wall()
	w.phase.Store(uint32(p))
	w.since.Store(&now)
}

func (w *whole) now() phase { return phase(w.phase.Load()) }

// Status is the relay's part of the status document about itself.
type Status struct {
	Phase  string `json:"phase"` // starting, serving, draining or stopped
	NodeID string `json:"nodeId"`
	// CloudlyOrigin is where Cloudly is looked for, as configured.
	CloudlyOrigin string `json:"cloudlyOrigin"`
	TLSSource     string `json:"tlsSource"`
	// AllowLoopback tells that addresses are admitted that no cluster can use.
	AllowLoopback bool `json:"allowLoopback"`
}

// Name returns the duty's name.
func (w *whole) Name() string { return relayName }

// Checks returns whether the relay serves, and as advice whether the file of
// Cloudly's authorities could be read when it was last asked for.
func (w *whole) Checks(time.Time) []duty.Check {
	return []duty.Check{w.serving(), w.trusted.check()}
}

func (w *whole) serving() duty.Check {
	c := duty.Check{Name: "serving", State: duty.OK, Since: *w.since.Load()}
	switch p := w.now(); p {
	case starting:
		c.State, c.Reason = duty.Pending, p.String()
		c.Hint = "The relay has not bound its listeners yet."
	case draining, stopped:
		c.State, c.Reason = duty.Failing, p.String()
		c.Hint = "The relay was told to stop and takes nothing new."
	}
	return c
}

// Status returns a Status.
func (w *whole) Status() any {
	s := w.cfg.Settings
	return Status{
		Phase: w.now().String(), NodeID: s.NodeID, CloudlyOrigin: s.Cloudly.URL,
		TLSSource: string(s.TLS.Source), AllowLoopback: s.AllowLoopback,
	}
}

// DropCustody does nothing: it holds nothing.
func (w *whole) DropCustody(string) {}

// Drain does nothing: it is told its phase.
func (w *whole) Drain(context.Context) error { return nil }
