package startup_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

// unresolvable is a name that has no address, which Go's resolver knows without asking
// anybody (RFC 7686): what a test machine's resolver does with others is its own.
const unresolvable = "cloudly.onion"

// R97: a relay that Cloudly, its name, its certificate or its network keeps from
// registering waits and says so, ends by itself never, and on SIGTERM with 0, in
// whichever step that finds it.
func TestR97_CloudlyWasNeverReached(t *testing.T) {
	t.Parallel()
	away := func(state simulate.Reachability) rig.Option {
		return rig.Before(func(r *rig.Rig) { r.Cloudly.SetReachability(state) })
	}
	for name, c := range map[string]struct {
		options []rig.Option
		// What readiness and the event of the failed attempt say; "" for a step
		// that has not failed yet, whose name is state.
		reason, says, state string
	}{
		"nobody listens":   {[]rig.Option{rig.Before(func(r *rig.Rig) { r.Upstream.Refuse() })}, "dial-failed", "connection refused", ""},
		"no such name":     {[]rig.Option{rig.With("cloudly-url", "https://"+unresolvable), rig.Variable("GODEBUG", "netdns=go")}, "dial-failed", "", ""},
		"unknown issuer":   {[]rig.Option{rig.Without("cloudly-ca-file")}, "certificate-not-trusted", "x509: unknown authority", ""},
		"closes at once":   {[]rig.Option{away(simulate.Unreachable)}, "dial-failed", "", ""},
		"503":              {[]rig.Option{away(simulate.Unavailable)}, "upgrade-refused", "", ""},
		"dies when opened": {[]rig.Option{away(simulate.Dying)}, "socket-lost", "", ""},
		"never answers":    {[]rig.Option{away(simulate.Hanging)}, "", "", "dialing"},
		"says nothing":     {[]rig.Option{away(simulate.Mute)}, "", "", "exchanging"},
		"a dead network":   {[]rig.Option{rig.Before(func(r *rig.Rig) { r.Upstream.Stall() })}, "", "", "dialing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, c.options...)
			if c.reason == "" {
				r.Eventually("the step "+c.state, func() error {
					if got := rig.SectionOf[cloudly.Status](r, cloudly.Name).State; got != c.state {
						return errors.New("it is " + got)
					}
					return nil
				})
				wantRed(t, r, "cloudly/cloudly-session", "pending", "connecting")
				wantStops(t, r)
				return
			}
			wantRed(t, r, "cloudly/cloudly-session", "failing", c.reason)
			told := r.WaitEvent(string(cloudly.EventAttemptFailed), 0)
			if told.Text("reason") != c.reason || !strings.Contains(told.Text("error"), c.says) {
				t.Errorf("the event says %v, want %q in it", told.Fields, c.says)
			}
			// What is tried again by itself fails again and ends nothing.
			waitFailures(r, 2)
			wantStops(t, r)
		})
	}
}

// R97: a relay that does not trust Cloudly's certificate, because of a file that holds
// the wrong authority, needs no restart when that is put right.
func TestR97_AuthorityIsPutRight(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.NotStarted())
	other, err := rig.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	r.WriteFile(rig.AuthorityFile, other.PEM(), 0o644)
	r.Start()
	wantRed(t, r, "cloudly/cloudly-session", "failing", "certificate-not-trusted")
	r.WriteFile(rig.AuthorityFile, r.Authority.PEM(), 0o644)
	r.Signal(syscall.SIGHUP)
	wantGreen(t, r)
	waitSequences(t, r, 0)
}

// R97: a relay that was started before Cloudly is there when Cloudly is.
func TestR97_CloudlyComesLater(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Before(func(r *rig.Rig) { r.Upstream.Refuse() }))
	wantRed(t, r, "cloudly/cloudly-session", "failing", "dial-failed")
	resume(r)
	wantGreen(t, r)
	waitSequences(t, r, 0)
}
