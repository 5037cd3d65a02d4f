package startup_test

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/integration/rig"
	origincert "serve.zone/relay/tls"
)

// R94: files that the operator puts there, as they should not be. Paths are shown, what
// stands in them is not; and names in a certificate that is refused are nobody's.
func TestR94_Files(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.WaitReady()
	good := r.Issue(rig.Leaf{})
	for i, credential := range []string{"%\n", "%", "clusterRelayToken_%_%%", "Bearer %", "{\"token\":\"%\"}", strings.Repeat("%", 64), "\xff\x00%"} {
		// Each before it is good again, so that what is refused is this one.
		r.InstallCredential(r.Cloudly.Authorization())
		r.Signal(syscall.SIGHUP)
		r.WaitCheck(cloudly.Name, cloudly.CheckCredential, "ok")
		marker := r.Marker(fmt.Sprint("credential file ", i))
		r.WriteFile(rig.CredentialFile, []byte(strings.ReplaceAll(credential, "%", marker)), 0o600)
		r.Signal(syscall.SIGHUP)
		r.WaitCheck(cloudly.Name, cloudly.CheckCredential, "failing")
	}
	block := func(kind string) func(string) []byte {
		return func(marker string) []byte {
			return pem.EncodeToMemory(&pem.Block{Type: kind, Headers: map[string]string{marker: marker}, Bytes: []byte(marker)})
		}
	}
	plain := func(marker string) []byte { return []byte(marker + "\n") }
	for i, c := range []struct {
		file    string
		content func(string) []byte
		want    origincert.Refusal
	}{
		{rig.KeyFile, plain, origincert.KeyMalformed},
		{rig.KeyFile, block("PRIVATE KEY"), origincert.KeyMalformed},
		{rig.KeyFile, block("ENCRYPTED PRIVATE KEY"), origincert.KeyMalformed},
		{rig.KeyFile, func(m string) []byte { return append(bytes.Clone(good.Key), block("EC PRIVATE KEY")(m)...) }, origincert.KeyMalformed},
		{rig.CertificateFile, plain, origincert.CertificateMalformed},
		{rig.CertificateFile, block("CERTIFICATE"), origincert.CertificateMalformed},
		// A key in the file that anyone may read.
		{rig.CertificateFile, func(m string) []byte { return append(bytes.Clone(good.Certificate), block("PRIVATE KEY")(m)...) }, origincert.CertificateMalformed},
		{rig.CertificateFile, func(m string) []byte {
			return r.Issue(rig.Leaf{Names: []string{m[:60] + ".example"}}).Certificate
		}, origincert.KeyMismatch},
		{"", func(m string) []byte {
			r.InstallCertificate(r.Issue(rig.Leaf{
				Names:     []string{m[:60] + ".example", "*." + m[:60] + ".example"},
				NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour),
			}))
			return nil
		}, origincert.CertificateExpired},
	} {
		r.InstallCertificate(good)
		r.Signal(syscall.SIGHUP)
		r.WaitCheck(origincert.Name, "certificate-files", "ok")
		content := c.content(r.Marker(fmt.Sprintf("%s %d", filepath.Base(c.file), i)))
		if c.file != "" {
			mode := os.FileMode(0o644)
			if c.file == rig.KeyFile {
				mode = 0o600
			}
			r.WriteFile(c.file, content, mode)
		}
		r.Signal(syscall.SIGHUP)
		r.WaitCheck(origincert.Name, "certificate-files", "failing", c.want.String())
	}
	if !r.Ready() {
		t.Errorf("not ready, although nothing that is in use has changed: %q", r.Readiness().Against())
	}
	wantNoPanic(t, r)
}

// R94: configuration that is not valid is listed without its values, whichever setting
// and source they are of, and so are unknown names of settings.
func TestR94_Configuration(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]rig.Source{"flags": rig.Flags, "environment": rig.Environment, "file": rig.File} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.From(source), rig.NotStarted())
			settings := []string{
				"cloudly-url", "node-id", "listen", "operator-listen", "tls-source", "hub-workers", "log-level", "log-format",
				"allow-loopback", "hub-listen", "registry-upstream", "acme-directory",
			}
			for _, setting := range settings {
				// Too short for the shape of a key, so that each is judged by its own
				// rule, and not a host name.
				r.Set(setting, "!"+r.Marker("value of " + setting)[:40])
			}
			if code := r.Run(); code != 1 {
				t.Errorf("exit code %d", code)
			}
			for _, setting := range settings {
				if !bytes.Contains(r.Stderr(), []byte("relay:   "+setting+" (")) {
					t.Errorf("%s was not refused", setting)
				}
			}
		})
	}
	t.Run("protocol section", func(t *testing.T) {
		t.Parallel()
		r := rig.New(t, rig.NotStarted())
		m := func(what string) string { return r.Marker(what)[:40] }
		r.WriteFile("etc/other.yaml", []byte(fmt.Sprintf("protocol:\n  interfacesVersion: %s\n  socketPath: %s\n  exchangeMethod: '%s %s'\n  %s: %s\n  forward:\n    nodeToCloudly: ['%s!']\n%s: %s\n",
			m("version"), m("path"), m("method"), m("method"), m("name in the section"), m("value"), m("extra method"), m("name"), m("value of a name"))), 0o600)
		r.Set("config", r.Path("etc/other.yaml"))
		if code := r.Run(); code != 1 {
			t.Errorf("exit code %d", code)
		}
		if n := bytes.Count(r.Stderr(), []byte("\n")); n < 6 {
			t.Errorf("%d lines are said of it:\n%s", n, r.Stderr())
		}
	})
	t.Run("authority", func(t *testing.T) {
		t.Parallel()
		r := rig.New(t, rig.NotStarted())
		r.WriteFile(rig.AuthorityFile, []byte("-----BEGIN CERTIFICATE-----\n"+r.Marker("authority file")+"\n-----END CERTIFICATE-----\n"), 0o600)
		if code := r.Run(); code != 1 {
			t.Errorf("exit code %d", code)
		}
	})
	// What the relay must not use it does not repeat either.
	t.Run("ignored variable", func(t *testing.T) {
		t.Parallel()
		const token = "CORESTORE_API_TOKEN"
		secret := strings.Repeat("5ec2e7a", 6)
		r := rig.New(t, rig.Variable(token, secret))
		r.AddSecret(token, []byte(secret))
		r.WaitReady()
		if n := bytes.Count(r.Stderr(), []byte(token)); n != 1 {
			t.Errorf("%s is named %d times", token, n)
		}
	})
}

// recorder is a test to which a rig may complain.
type recorder struct {
	testing.TB
	complaints []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.complaints = append(r.complaints, fmt.Sprintf(format, args...))
}
func (r *recorder) Error(args ...any) { r.complaints = append(r.complaints, fmt.Sprintln(args...)) }
func (r *recorder) Failed() bool      { return len(r.complaints) > 0 || r.TB.Failed() }
func (r *recorder) Log(...any)        {}
func (r *recorder) Logf(string, ...any) {
	// The end of the relay's output belongs to a test that has failed.
}

// has reports whether a complaint has all of these words.
func (r *recorder) has(words ...string) bool {
	for _, c := range r.complaints {
		found := true
		for _, word := range words {
			found = found && strings.Contains(c, word)
		}
		if found {
			return true
		}
	}
	return false
}

// R94: the audit that all of this rests on. A secret that really is shown, because it
// is given to the relay as something that it shows, is found wherever it turns up: in the
// log, on the pages, and in a file that was not there.
func TestR94_TheAuditFindsWhatIsShown(t *testing.T) {
	t.Parallel()
	complaints := &recorder{TB: t}
	r := rig.New(complaints)
	r.WaitReady()
	r.AssertNoMarkers()
	if len(complaints.complaints) != 0 {
		t.Fatalf("before anything is shown: %q", complaints.complaints)
	}
	// A whole marker has the shape of a key, and would be withheld.
	newPuppet(t, r, r.Marker("node id")[:28]).Cut()
	r.WaitEvent("listener-socket-closed", 0)
	stray := filepath.Join(r.Dir(), "work", "stray")
	if err := os.WriteFile(stray, []byte("a copy: "+r.Marker("copied")), 0o600); err != nil {
		t.Fatal(err)
	}
	r.AssertNoMarkers()
	for _, words := range [][]string{
		{"node id (plain)", "standard error"}, {"node id (plain)", "/events"}, {"copied (plain)", "created work/stray"},
	} {
		if !complaints.has(words...) {
			t.Errorf("not found: %q among %q", words, complaints.complaints)
		}
	}
	if err := os.Remove(stray); err != nil {
		t.Fatal(err)
	}
}
