package appliance

import (
	"os"
	"strings"
	"testing"
	"time"
)

// An authority is replaced while the relay waits: it comes back without a restart.
func TestReloadTakesNewAuthoritiesOfCloudly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{relay: func(c *Config) {
			if err := os.WriteFile(c.Settings.Cloudly.CAFile, newAuthority(t).pem, 0o600); err != nil {
				t.Fatal(err)
			}
		}})
		time.Sleep(time.Minute)
		if n := r.net.dialled(cloudlyHost + ":443"); n < 4 || len(r.sequences()) != 0 {
			t.Fatalf("%d dials, %d registrations without the authority", n, len(r.sequences()))
		}
		if _, body := r.get("/readyz"); !strings.Contains(body, "certificate-not-trusted") {
			t.Errorf("readiness does not name it: %s", body)
		}
		r.write("ca.pem", []byte("no certificate"))
		r.relay.Reload()
		time.Sleep(time.Second)
		if _, body := r.get("/readyz?verbose"); !strings.Contains(body, "not-loaded") {
			t.Errorf("no advice tells of it: %s", body)
		}
		r.write("ca.pem", certificates().pem)
		r.relay.Reload()
		time.Sleep(time.Second)
		if len(r.sequences()) != 1 {
			t.Errorf("not registered after the reload\n%s", r.log)
		}
		if len(r.events(EventAuthoritiesRefused)) != 1 {
			t.Error("a file without a certificate was not told of")
		}
	})
}

func TestNewRefusesAuthoritiesThatCannotBeRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, content := range map[string][]byte{"gone.pem": nil, "empty.pem": []byte("-----BEGIN NOTHING-----")} {
			r := newRig(t, change{idle: true})
			if content != nil {
				r.write(name, content)
			}
			cfg := r.relay.cfg
			cfg.Settings.Cloudly.CAFile = r.dir + "/" + name
			if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "cloudly-ca-file") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
