package startup_test

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"serve.zone/relay/integration/rig"
)

// wantRefused runs a relay that has to be refused for its configuration, and returns
// what it says. The test itself holds the ports meanwhile: one that were bound would
// end the start with another exit code, or not at all. Nobody is dialled.
func wantRefused(t *testing.T, options ...rig.Option) string {
	t.Helper()
	r := rig.New(t, append(options, rig.NotStarted())...)
	for _, address := range []string{r.ListenAddress(), r.OperatorAddress()} {
		defer occupy(t, r, address).Close()
	}
	if code := r.Run(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if n := r.Upstream.Accepted(); n != 0 {
		t.Errorf("cloudly was dialled %d times", n)
	}
	if lines := r.Log(""); len(lines) != 0 {
		t.Errorf("a relay that was never built has logged %v", lines)
	}
	if out := r.Stdout(); len(out) != 0 {
		t.Errorf("standard output has %q", out)
	}
	return string(r.Stderr())
}

// occupy takes an address of the rig. A process that another test starts at that moment
// has copies of what is open here until it has become its program, so an address that
// was let go may be in use for some moments more.
func occupy(t *testing.T, r *rig.Rig, address string) net.Listener {
	t.Helper()
	var held net.Listener
	r.Eventually("the address "+address, func() (err error) {
		held, err = net.Listen("tcp4", address)
		return err
	})
	return held
}

// wantReason reports a violation that is not said, or not the only one.
func wantReason(t *testing.T, said, want string) {
	t.Helper()
	if !strings.Contains(said, want+"\n") {
		t.Errorf("not said: %s\n%s", want, said)
	}
	if n := strings.Count(said, "\n"); n != 2 {
		t.Errorf("%d lines, want the verdict and one reason:\n%s", n, said)
	}
}

// R07: an own offer that does not hold ends the start before anything is bound. What
// is wrong with it in how many ways is cmd/relay's script r07_own_offer.
func TestR07_OwnOffer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ protocol, want string }{
		"minimum above the version": {
			"protocol:\n  interfacesVersion: 32.44.0\n  minimumPeerVersion: 32.44.1\n",
			"relay:   protocol.minimumPeerVersion (line 3 of the file): is above interfacesVersion",
		},
		// The default minimum is of major 32.
		"another major": {
			"protocol:\n  interfacesVersion: 33.0.0\n",
			"relay:   protocol.minimumPeerVersion: is of another major than interfacesVersion",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantReason(t, wantRefused(t, rig.Document(c.protocol)), c.want)
		})
	}
}

// R07: an own offer that holds, of another release, is what Cloudly is told.
func TestR07_OwnOfferThatHolds(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Document("protocol:\n  interfacesVersion: 32.45.0\n  minimumPeerVersion: 32.45.0\n"))
	// Cloudly speaks 32.44.0, which is below this relay's minimum.
	r.WaitCheck("cloudly", "cloudly-refusal", "failing")
	for _, method := range []string{openSession, register} {
		for _, m := range r.Cloudly.Frames().Received(method) {
			if want := []byte(`"protocol":{"interfacesVersion":"32.45.0","minimumPeerVersion":"32.45.0"}`); !bytes.Contains(m.Body, want) {
				t.Errorf("%s states another offer", method)
			}
		}
	}
	if len(r.Cloudly.Frames().Received(openSession)) != 1 {
		t.Error("the offer was not made once")
	}
}

// R14: addresses that nodes could not be sent to are refused, each by its own name,
// out of whichever source they come. Flags, and the rest of the names, are cmd/relay's
// script r14_listen_address.
func TestR14_ListenAddress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source      rig.Source
		value, want string
	}{
		"hostname in a variable":   {rig.Environment, "relay.example:8443", "listen (from RELAY_LISTEN): is not a canonical ipv4 literal"},
		"loopback in a variable":   {rig.Environment, "127.0.0.1:8443", "listen (from RELAY_LISTEN): is a loopback address"},
		"link-local in a variable": {rig.Environment, "169.254.1.1:8443", "listen (from RELAY_LISTEN): is a link-local address"},
		"wildcard in the file":     {rig.File, "0.0.0.0:8443", "listen (line 4 of the file): is the unspecified address"},
		"ipv6 in the file":         {rig.File, "[2001:db8::1]:8443", "listen (line 4 of the file): is not a canonical ipv4 literal"},
		"multicast":                {rig.Flags, "224.0.0.251:8443", "listen (from --listen): is a multicast address"},
		"broadcast":                {rig.Flags, "255.255.255.255:8443", "listen (from --listen): is the broadcast address"},
		"leading zeros":            {rig.Flags, "10.0.04.7:8443", "listen (from --listen): is not a canonical ipv4 literal"},
		"mapped":                   {rig.Flags, "[::ffff:10.0.4.7]:8443", "listen (from --listen): is not a canonical ipv4 literal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantReason(t, wantRefused(t, rig.From(c.source), rig.Without("allow-loopback"), rig.With("listen", c.value)), "relay:   "+c.want)
		})
	}
}
