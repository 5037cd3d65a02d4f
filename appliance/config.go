package appliance

import (
	"context"
	"errors"
	"fmt"
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

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s: %s is not part of this build", e.Setting, e.Needs)
}

// validate judges what the readers of single settings cannot.
func (c Config) validate() error {
	if c.Listen == nil || c.Dial == nil || c.ListenPacket == nil || c.Wall == nil {
		return errors.New("appliance: a seam is missing")
	}
	if !contract.IsReleaseVersion(c.Build.Version) {
		return errors.New("appliance: the version of this build is no release version")
	}
	s := c.Settings
	switch {
	case s.TLS.Source != config.FromFiles:
		return &UnsupportedError{Setting: "tls-source", Needs: "the source " + string(s.TLS.Source)}
	case s.Hub.Workers > 1:
		return &UnsupportedError{Setting: "hub-workers", Needs: "a hub of several sockets"}
	case s.Registry.Upstream != s.Cloudly.URL:
		return &UnsupportedError{Setting: "registry-upstream", Needs: "the registry"}
	case s.Registry.RealmOrigin != s.Registry.Upstream:
		return &UnsupportedError{Setting: "registry-realm-origin", Needs: "the registry"}
	}
	return nil
}
