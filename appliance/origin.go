package appliance

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// originName is the name of the duty that compares.
const originName = "origin"

// The events of the origin.
const (
	EventOriginMismatch duty.EventType = "origin-mismatch"
	EventOriginMatches  duty.EventType = "origin-matches"
)

// origin compares what nodes are told to dial with what they meet there: the
// origin that Cloudly answered, against the certificate that is served and the
// port that is bound (contract §5.3). A difference is shown and ends nothing;
// nodes would refuse the certificate anyway.
type origin struct {
	matches func(host string) bool // the certificate of the moment
	served  func() bool            // there is one
	bound   func() netip.AddrPort
	wall    func() time.Time
	events  *duty.Events

	mu     sync.Mutex // guards what follows
	stated string     // as accepted last; empty while custody has not begun
	told   string     // the reason that was published last
	shown  duty.Check
}

// OriginStatus is the origin's part of the status document.
type OriginStatus struct {
	Origin  string `json:"origin,omitempty"` // absent while no registration was accepted
	Matches bool   `json:"matches"`          // the certificate and the bound port are the origin's
	Reason  string `json:"reason,omitempty"` // why it does not match, or cannot be compared yet
}

// originEvery is how late the event of a mismatch that a swapped certificate
// made may be. The check itself is never late.
const originEvery = 10 * time.Second

// Reasons of the check of the origin.
const (
	originUnknown    = "origin-unknown"
	originMismatch   = "origin-mismatch"
	originUncertain  = "certificate-pending"
	checkOriginMatch = "origin"
)

// judgeOrigin compares. It returns the check without its Since.
func judgeOrigin(stated string, served bool, matches func(string) bool, bound netip.AddrPort) duty.Check {
	c, port := duty.Check{Name: checkOriginMatch}, bound.Port()
	parsed, ok := contract.ParseOrigin(stated)
	switch {
	case stated == "":
		c.Reason = originUnknown
		c.Hint = "Cloudly tells the origin when it accepts the registration."
	case !served:
		c.Reason = originUncertain
		c.Hint = "There is no certificate to compare the origin with."
	case !ok || !matches(parsed.Host) || parsed.Port != int(port):
		c.State, c.Reason = duty.Failing, originMismatch
		c.Hint = "Nodes are told to dial an origin whose host the certificate does not name, or whose port is not the one that is bound."
	default:
		c.State = duty.OK
	}
	if ok {
		c.Facts = field.List{field.Origin(stated), field.Address(bound)}
	}
	return c
}

// look compares now.
func (o *origin) look() duty.Check {
	served := o.served()
	bound := o.bound()
	now := o.wall()
	o.mu.Lock()
	defer o.mu.Unlock()
	c := judgeOrigin(o.stated, served, o.matches, bound)
	c.Since = now
	c = c.After(o.shown)
	o.shown = c
	return c
}

// registered takes the origin of an accepted registration.
func (o *origin) registered(_ *typedsocket.Socket, accepted cloudly.Accepted) {
	o.mu.Lock()
	o.stated = accepted.Answer.Origin
	o.mu.Unlock()
	o.tell()
}

// run compares from time to time: a certificate that was swapped can end a
// mismatch, or begin one, while nothing else happens.
func (o *origin) run(ctx context.Context) error {
	ticker := time.NewTicker(originEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			o.tell()
		case <-ctx.Done():
			return nil
		}
	}
}

// tell publishes when the comparison came out otherwise than last time.
func (o *origin) tell() {
	c := o.look()
	o.mu.Lock()
	before := o.told
	o.told = c.Reason
	stated := o.stated
	o.mu.Unlock()
	switch {
	case before == c.Reason:
	case c.Reason == originMismatch:
		o.events.Publish(EventOriginMismatch, field.Origin(stated), field.Address(o.bound()))
	case before == originMismatch && c.State == duty.OK:
		o.events.Publish(EventOriginMatches, field.Origin(stated))
	}
}

// Name returns the duty's name.
func (o *origin) Name() string { return originName }

// Checks returns the one check: whether the origin is what is served.
func (o *origin) Checks(time.Time) []duty.Check { return []duty.Check{o.look()} }

// Status returns an OriginStatus.
func (o *origin) Status() any {
	c := o.look()
	o.mu.Lock()
	defer o.mu.Unlock()
	return OriginStatus{Origin: o.stated, Matches: c.State == duty.OK, Reason: c.Reason}
}

// DropCustody forgets the origin: whose relay this is will be told anew.
func (o *origin) DropCustody(string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stated = ""
}

// Drain does nothing.
func (o *origin) Drain(context.Context) error { return nil }
