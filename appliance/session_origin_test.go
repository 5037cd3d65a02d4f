package appliance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/simulate"
)

// R18: nodes are told an origin that the certificate does not name. The relay
// says so and goes on. When the files are swapped it is ready again, on the same
// socket and without another registration; and the other way round.
func TestR18_OriginAndCertificate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{cloudly: func(c *simulate.CloudlyConfig) { c.Origin = elsewhere }})
		r.net.alias("other.serve.zone:8443", relayListens)
		r.registered(0)
		w := r.wired("node-a") // by the name that the certificate has
		all := certificates()
		for range 2 {
			r.wantAgainst("origin: origin-mismatch")
			want := map[string]any{"origin": elsewhere, "matches": false, "reason": "origin-mismatch"}
			if diff := cmp.Diff(want, r.section("origin")); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			r.write("cert.pem", all.otherChain)
			r.write("key.pem", all.otherKey)
			after(3 * time.Second)
			r.wantAgainst()
			if diff := cmp.Diff(map[string]any{"origin": elsewhere, "matches": true}, r.section("origin")); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			after(10 * time.Second)
			r.write("cert.pem", all.relayChain)
			r.write("key.pem", all.relayKey)
			after(10 * time.Second)
		}
		if diff := cmp.Diff([]string{elsewhere, elsewhere, elsewhere}, r.says(EventOriginMismatch, "origin")); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{elsewhere, elsewhere}, r.says(EventOriginMatches, "origin")); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		r.write("cert.pem", all.otherChain)
		r.write("key.pem", all.otherKey)
		after(3 * time.Second)
		p := r.dialling("node-b", func(c *simulate.PalletConfig) { c.URL = elsewhere })
		if _, err := p.WaitRegistered(r.soon(), 0); err != nil {
			t.Errorf("a node that dials the origin: %v", err)
		}
		w.wantOpen()
		if err := w.report(); err != nil {
			t.Errorf("on a socket from before the swap: %v", err)
		}
		r.wantSequences(0)
		r.wantDials(1)
		r.wantNoViolations(p)
	})
}

// R18: the origin's port is not the one that is bound. No certificate can mend
// that; a registration that answers another origin does.
func TestR18_OriginAndPort(t *testing.T) {
	for name, origin := range map[string]string{"another port": "https://" + originHost + ":9443", "no port": "https://" + originHost} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, change{cloudly: func(c *simulate.CloudlyConfig) { c.Origin = origin }})
				r.registered(0)
				r.wantAgainst("origin: origin-mismatch")
				after(time.Minute)
				if diff := cmp.Diff([]string{relayListens}, r.says(EventOriginMismatch, "address")); diff != "" {
					t.Errorf("what is bound (-want +got):\n%s", diff)
				}
				want := "[required, for 1m0s since 2000-01-01T00:00:00Z, origin=" + origin + " address=" + relayListens + "]\n"
				if _, body := r.get("/readyz?verbose"); !strings.Contains(body, want) {
					t.Errorf("no %q in %s", want, body)
				}
				if err := r.cloudly.EnableRelay(originText); err != nil {
					t.Fatal(err)
				}
				if err := r.cloudly.PushConfiguration(r.soon()); err != nil {
					t.Fatal(err)
				}
				after(0)
				r.wantAgainst()
				r.wantSequences(0, 1)
				r.wantDials(1)
				if n := len(r.events(EventOriginMatches)); n != 1 {
					t.Errorf("the end was said %d times", n)
				}
				r.wantNoViolations()
			})
		})
	}
}

// R18: a relay whose certificate is not there yet registers all the same, and
// tells what it waits for.
func TestR18_NoCertificateYet(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{idle: true})
		if err := os.Remove(filepath.Join(r.dir, "cert.pem")); err != nil {
			t.Fatal(err)
		}
		r.start()
		r.registered(0)
		r.wantAgainst("certificate: certificate-unreadable", "origin: certificate-pending")
		after(time.Minute)
		r.write("cert.pem", certificates().relayChain)
		after(3 * time.Second)
		r.wantAgainst()
		r.wantDials(1)
		if n := len(r.events(EventOriginMismatch)); n != 0 {
			t.Errorf("a missing certificate was called a mismatch %d times", n)
		}
	})
}
