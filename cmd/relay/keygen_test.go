package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"serve.zone/relay/appliance"
	"serve.zone/relay/config"
	"serve.zone/relay/duty"
)

// keygen runs `relay keygen` and returns what it says.
func keygen(t *testing.T, flag string) (stdout string) {
	t.Helper()
	var out, stderr strings.Builder
	code := run(process{
		args: []string{"keygen", flag}, stdout: &out, stderr: &stderr, prepare: func() error { return nil },
	})
	if code != exitClean || stderr.String() != "" {
		t.Fatalf("keygen %s ended with %d: %s", flag, code, stderr.String())
	}
	return out.String()
}

// What keygen makes, serve takes as the hub's key, and has the same public one.
func TestKeygen_ServeTakesIt(t *testing.T) {
	name := filepath.Join(t.TempDir(), "hub.key")
	public := keygen(t, "--out="+name)
	flags := map[string]string{"hub-listen": "127.0.0.1:0", "hub-key-file": name, "allow-loopback": "true"}
	for _, flag := range validFlags {
		key, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		flags[key] = value
	}
	settings, _, err := config.Load(config.Sources{Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := build(appliance.Config{Settings: settings, Build: thisBuild(), Log: duty.NewLogger(duty.LogConfig{})}); err != nil {
		t.Fatal(err)
	}
	if public != keygen(t, "--public="+name) {
		t.Error("the public key is another one the second time")
	}
	private, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(private) != 45 || strings.Contains(public, string(private[:12])) {
		t.Errorf("the file has %d bytes, or shows in the public key", len(private))
	}
}

// A public key that nobody took is no success; the file is there, and its public key can
// be asked for.
func TestKeygen_AnswerThatIsNotTaken(t *testing.T) {
	name := filepath.Join(t.TempDir(), "hub.key")
	var stderr strings.Builder
	code := run(process{
		args: []string{"keygen", "--out=" + name}, stdout: fullWriter{}, stderr: &stderr, prepare: func() error { return nil },
	})
	if code != exitFailed || stderr.String() != "relay: could not write the answer: no space left\n" {
		t.Errorf("ended with %d: %s", code, stderr.String())
	}
	if public := keygen(t, "--public="+name); len(public) != 45 {
		t.Errorf("%q", public)
	}
}

// What the system does not grant is said, and no reason to make no key.
func TestKeygen_DumpsNotPrevented(t *testing.T) {
	var stdout, stderr strings.Builder
	code := run(process{
		args: []string{"keygen", "--out=" + filepath.Join(t.TempDir(), "hub.key")}, stdout: &stdout, stderr: &stderr,
		prepare: func() error { return os.ErrPermission },
	})
	if want := "relay: a dump of this process could show the key: permission denied\n"; code != exitClean || stderr.String() != want || len(stdout.String()) != 45 {
		t.Errorf("ended with %d: %q", code, stderr.String())
	}
}
