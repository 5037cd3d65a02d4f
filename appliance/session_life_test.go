package appliance

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/config"
	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// unbound reports whether nobody listens there.
func (r *rig) unbound(address string) bool {
	r.net.mu.Lock()
	defer r.net.mu.Unlock()
	return r.net.listeners[address] == nil
}

// R07: what cannot be right is refused before anything is bound.
func TestR07_RefusedBeforeAnythingIsBound(t *testing.T) {
	for name, alter := range map[string]func(*Config){
		"minimum above the version": func(c *Config) { c.Settings.Protocol.Offer.MinimumPeerVersion = "32.45.0" },
		"minimum of another major":  func(c *Config) { c.Settings.Protocol.Offer.MinimumPeerVersion = "31.0.0" },
		"no offer":                  func(c *Config) { c.Settings.Protocol.Offer = contract.Offer{} },
		"no origin of Cloudly": func(c *Config) {
			s := &c.Settings
			s.Cloudly.URL = "https://cloudly.example/"
			s.Registry.Upstream, s.Registry.RealmOrigin = s.Cloudly.URL, s.Cloudly.URL
		},
		"no release":         func(c *Config) { c.Build.Version = "v1" },
		"no seam":            func(c *Config) { c.Dial = nil },
		"no authority":       func(c *Config) { c.Settings.Cloudly.CAFile += ".gone" },
		"a key as authority": func(c *Config) { c.Settings.Cloudly.CAFile = c.Settings.TLS.KeyFile },
		"no such source":     func(c *Config) { c.Settings.TLS.Source = config.FromACME },
		"no such duty":       func(c *Config) { c.Settings.Registry.Upstream = "https://registry.example" },
		"no such hub":        func(c *Config) { c.Settings.Hub.Workers = 2 },
		"no key of the hub": func(c *Config) {
			c.Settings.Hub.Listen, c.Settings.Hub.KeyFile = netip.MustParseAddrPort("10.0.4.7:4433"), c.Settings.TLS.KeyFile
		},
		"a method of the relay": func(c *Config) { c.Settings.Protocol.NodeToCloudly = []string{contract.MethodRegisterClusterRelay} },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, change{idle: true})
				if relay, err := New(r.config(change{relay: alter})); err == nil || relay != nil {
					t.Errorf("it was built: %v", err)
				}
				if !r.unbound(relayListens) || !r.unbound(operatorAt) {
					t.Error("something is bound")
				}
				r.wantDials(0)
			})
		})
	}
}

// A relay that cannot bind all of its addresses binds none and dials nobody.
func TestStartThatFailsLeavesNothingBound(t *testing.T) {
	for _, taken := range []string{relayListens, operatorAt} {
		t.Run(taken, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, change{idle: true})
				other, err := r.net.listen(t.Context(), "tcp", taken)
				if err != nil {
					t.Fatal(err)
				}
				if err := r.relay.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "in use") {
					t.Errorf("start: %v", err)
				}
				other.Close()
				if !r.unbound(relayListens) || !r.unbound(operatorAt) {
					t.Error("something is bound")
				}
				after(time.Minute)
				r.wantDials(0)
				// Another start finds the addresses free.
				r.build(change{})
				r.start()
				r.registered(0)
				r.wantAgainst()
			})
		})
	}
}

// A relay that is closed without having run frees what it bound.
func TestCloseWithoutRun(t *testing.T) {
	for name, started := range map[string]bool{"started": true, "built alone": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, change{idle: true})
				if started {
					if err := r.relay.Start(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				for range 2 {
					if err := r.relay.Close(); err != nil {
						t.Errorf("close: %v", err)
					}
				}
				if !r.unbound(relayListens) || !r.unbound(operatorAt) {
					t.Error("something is bound")
				}
				r.wantDials(0)
			})
		})
	}
}

// Run with a context that has ended drains what Start bound, and dials nobody
// that it then leaves hanging.
func TestRunThatEndsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{idle: true})
		if err := r.relay.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.relay.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
		if !r.unbound(relayListens) || !r.unbound(operatorAt) {
			t.Error("something is bound")
		}
		after(0)
		if sockets := r.cloudly.Sockets(); len(sockets) != 0 {
			t.Errorf("sockets %v", sockets)
		}
	})
}

// Reload reads credential and certificate at once, as SIGHUP asks for.
func TestReload(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, a, _ := holding(t, change{})
		all := certificates()
		r.write("cert.pem", all.otherChain)
		r.write("key.pem", all.otherKey)
		after(0)
		r.wantAgainst()
		r.relay.Reload()
		after(0)
		r.wantAgainst("origin: origin-mismatch")
		r.write("cert.pem", all.relayChain)
		r.write("key.pem", all.relayKey)
		r.relay.Reload()
		after(0)
		r.wantAgainst()

		r.cloudly.RotateCredential()
		a.report() // which hears that the credential is stale
		after(0)
		r.write("credential", []byte(r.cloudly.Authorization()))
		after(0)
		r.wantDials(1)
		r.relay.Reload()
		after(0)
		r.wantDials(2)
		r.wantAgainst()
		if n := len(r.events(EventReloaded)); n != 3 {
			t.Errorf("%d events", n)
		}
	})
}

// R11: only a well-formed bearer in a private file is used; anything else is
// named, and nobody is dialled. What is put right is seen.
func TestR11_CredentialFile(t *testing.T) {
	const bearer = "clusterRelayToken_relay_credential-1_"
	lower := strings.Repeat("0a", 32)
	for name, c := range map[string]struct {
		content string
		mode    os.FileMode
		fault   string
	}{
		"a line end":     {bearer + lower + "\n", 0o600, "credential-line-end"},
		"63 digits":      {bearer + lower[1:], 0o600, "credential-shape"},
		"upper case":     {bearer + strings.ToUpper(lower), 0o600, "credential-shape"},
		"nothing":        {"", 0o600, "credential-shape"},
		"others read it": {bearer + lower, 0o644, "credential-mode"},
		"group reads it": {bearer + lower, 0o640, "credential-mode"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, change{idle: true, cloudly: func(c *simulate.CloudlyConfig) { c.Authorization = bearer + lower }})
				path := filepath.Join(r.dir, "credential")
				if err := errors.Join(os.WriteFile(path, []byte(c.content), 0o600), os.Chmod(path, c.mode)); err != nil {
					t.Fatal(err)
				}
				r.start()
				after(time.Minute)
				r.wantDials(0)
				r.wantAgainst("cloudly-session: credential-unusable", "origin: origin-unknown")
				r.wantAdvice("cloudly-credential", "failing "+c.fault)
				if fault := r.section("cloudly")["credentialFault"]; fault != c.fault {
					t.Errorf("status: %v", fault)
				}
				r.write("credential", []byte(bearer+lower))
				after(3 * time.Second)
				r.wantDials(1)
				r.wantAgainst()
				r.wantAdvice("cloudly-credential", "ok")
				r.wantSecret(bearer+lower, lower)
			})
		})
	}
}

// R13: the registration states what was really bound.
func TestR13_StatesWhatWasBound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{relay: func(c *Config) { c.Settings.Listen = netip.MustParseAddrPort("10.0.4.7:0") }})
		r.registered(0)
		want := contract.RelayFacts{Version: "0.1.0", NodeID: "node-relay", ListenAddress: "10.0.4.7", ListenPort: int64(r.relay.ListenAddr().Port())}
		if got := r.cloudly.Registrations()[0].Relay; got != want || want.ListenPort == 0 {
			t.Errorf("stated %+v, want %+v", got, want)
		}
		if r.unbound(r.relay.ListenAddr().String()) {
			t.Error("nobody listens there")
		}
		r.wantNoViolations()
	})
}
