package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"serve.zone/relay/operator/client"
)

// start starts the relay and waits until it is ready.
func (c *cluster) start(ctx context.Context, e *evidence) error {
	if err := c.startRelay(ctx); err != nil {
		return err
	}
	if _, err := c.cloudly.WaitRegistered(ctx, 0); err != nil {
		return err
	}
	d, err := c.relay.console.until(ctx, func(d document) error {
		if s := d.Duties.Cloudly; !s.Registered || s.State == "" || s.Origin != c.origin() {
			return mismatch("a registered session to Cloudly", "state %s, origin %q, trouble %q", s.State, s.Origin, s.LastTrouble)
		}
		return nil
	})
	if err != nil {
		return err
	}
	all := c.cloudly.Registrations()
	if len(all) != 1 || all[0].Relay.VPNHub == nil {
		return mismatch("one registration, with a hub", "%d registrations", len(all))
	}
	r, hub := all[0].Relay, all[0].Relay.VPNHub
	e.add(cloudlyName, fmt.Sprintf("accepted relay %s: nodes dial %s:%d, tunnels end at %s:%d (UDP)",
		r.Version, r.ListenAddress, r.ListenPort, hub.Address, hub.QUICPort),
		"version", r.Version, "node", r.NodeID, "sequence", all[0].Sequence)
	took, err := registeredAfter(d)
	if err != nil {
		return err
	}
	e.add(fromStatus, fmt.Sprintf("the session is %s, %d ms after the relay was built up; nodes are told to dial %s",
		d.Duties.Cloudly.State, took.Milliseconds(), d.Duties.Cloudly.Origin),
		"state", d.Duties.Cloudly.State, "registeredSeconds", seconds(took), "origin", d.Duties.Cloudly.Origin)
	var ready client.Readiness
	err = eventually(ctx, settleWait, func() error {
		if ready, err = c.relay.console.Ready(ctx); err != nil {
			return mismatch("a relay that is ready", "%v", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return checked(e, ready)
}

// registeredAfter is how long the relay took to register, by its own clock.
func registeredAfter(d document) (time.Duration, error) {
	from, to := d.Start, d.Duties.Cloudly.RegisteredChanged
	if from.IsZero() || !to.After(from) {
		return 0, mismatch("a registration behind the start", "the start at %s, the registration at %s", clockText(from), clockText(to))
	}
	return to.Sub(from), nil
}

// checked counts the checks of a relay that is to be ready: every required one holds, and
// of those that only advise the others are named.
func checked(e *evidence, r client.Readiness) error {
	var required, advised int
	waiting, failing := []string{}, []string{}
	for _, f := range r.Findings {
		if !f.Advice {
			required++
			continue
		}
		advised++
		switch f.State {
		case "ok":
		case "pending":
			waiting = append(waiting, f.Check)
		default:
			failing = append(failing, f.Check)
		}
	}
	if against := r.Against(); !r.Ready || required == 0 || len(against) > 0 {
		return mismatch("a relay that is ready, and required checks that hold", "ready %t, %d of %d against", r.Ready, len(against), required)
	}
	says := fmt.Sprintf("ready: all %d required checks hold", required)
	var others []string
	if n := len(waiting); n > 0 {
		others = append(others, fmt.Sprintf("%d wait (%s)", n, strings.Join(waiting, ", ")))
	}
	if n := len(failing); n > 0 {
		others = append(others, fmt.Sprintf("%d fail (%s)", n, strings.Join(failing, ", ")))
	}
	if others == nil {
		says += fmt.Sprintf(", and all %d advised ones", advised)
	} else {
		says += fmt.Sprintf("; of %d advised ones %s", advised, strings.Join(others, " and "))
	}
	e.add(fromReady, says, "ready", r.Ready, "required", required, "advised", advised, "waiting", waiting, "failing", failing)
	return nil
}
