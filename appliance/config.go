package appliance

import (
	"context"
	"errors"
	"net"
	"time"

	"serve.zone/relay/config"
	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
)

// Build says which program this is.
type Build struct {
	// Version is a release version; Cloudly is told it (contract O21).
	Version string
	// Revision is the commit it was built from, empty when that is not known.
	Revision string
}

// Config is what an Appliance is made from: settings that config.Load returned,
// and the four seams to the world. Fields without a remark must be set.
type Config struct {
	Settings config.Config
	Build    Build

	// Listen and ListenPacket open the sockets that the relay serves, Dial the
	// connection to Cloudly. They have the form of package net.
	Listen       func(ctx context.Context, network, address string) (net.Listener, error)
	Dial         func(ctx context.Context, network, address string) (net.Conn, error)
	ListenPacket func(ctx context.Context, network, address string) (net.PacketConn, error)
	// Wall is the wall clock. Certificates, identities and leases are judged by
	// it; every wait uses timers.
	Wall func() time.Time

	Log *duty.Logger // nil says nothing
}

// UnsupportedError is a setting that this build cannot honour. It is refused and
// not ignored: a relay that serves less than it was told to must not look as if
// it did.
type UnsupportedError struct {
	Setting string // its name, as in the documentation of the configuration
	Needs   string // what is missing
}

func (e *UnsupportedError) Error() string { return e.Setting + ": " + e.rule() }

func (e *UnsupportedError) rule() string { return e.Needs + " is not part of this build" }

// unsupported returns what this build cannot honour. A setting that is empty was
// refused already, and nothing is compared with it.
func unsupported(s config.Config) []*UnsupportedError {
	var all []*UnsupportedError
	refuse := func(setting, needs string) { all = append(all, &UnsupportedError{Setting: setting, Needs: needs}) }
	if s.Hub.Workers > 1 {
		refuse("hub-workers", "a hub of several sockets")
	}
	if s.TLS.Source != config.FromFiles {
		refuse("tls-source", "the source "+string(s.TLS.Source))
	}
	if s.Cloudly.URL != "" && s.Registry.Upstream != s.Cloudly.URL {
		refuse("registry-upstream", "the registry")
	}
	if s.Registry.Upstream != "" && s.Registry.RealmOrigin != s.Registry.Upstream {
		refuse("registry-realm-origin", "the registry")
	}
	return all
}

// Judge is the config.Sources.Judge of this build, so that what it cannot honour is
// said with everything else that is wrong.
func Judge(s config.Config) []config.Refusal {
	var all []config.Refusal
	for _, e := range unsupported(s) {
		all = append(all, config.Refusal{Setting: e.Setting, Rule: config.Rule(e.rule())})
	}
	return all
}

// validate judges what the readers of single settings cannot.
func (c Config) validate() error {
	if c.Listen == nil || c.Dial == nil || c.ListenPacket == nil || c.Wall == nil {
		return errors.New("appliance: a seam is missing")
	}
	if !contract.IsReleaseVersion(c.Build.Version) {
		return errors.New("appliance: the version of this build is no release version")
	}
	if all := unsupported(c.Settings); len(all) > 0 {
		return all[0] // config.Load has said all of them, where it was told Judge
	}
	return nil
}
