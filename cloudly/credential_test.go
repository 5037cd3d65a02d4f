package cloudly

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/field"
)

// R11: only the well-formed, private file is used; nothing is trimmed.
func TestR11_CredentialFile(t *testing.T) {
	good := "clusterRelayToken_cred_with_underscores_" + strings.Repeat("0123456789abcdef", 4)
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(file("target", good, 0o600), link); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path, want string // a name, or empty for a usable one
	}{
		{file("good", good, 0o600), ""},
		{file("read only", good, 0o400), ""},
		{link, ""},
		{file("line feed", good+"\n", 0o600), CredentialLineEnd},
		{file("carriage return", good+"\r\n", 0o600), CredentialLineEnd},
		{file("only a line feed", "\n", 0o600), CredentialLineEnd},
		{file("leading space", " "+good, 0o600), CredentialShape},
		{file("trailing space", good+" ", 0o600), CredentialShape},
		{file("63 hex", good[:len(good)-1], 0o600), CredentialShape},
		{file("65 hex", good+"0", 0o600), CredentialShape},
		{file("upper case", strings.ToUpper(good), 0o600), CredentialShape},
		{file("upper-case hex", good[:len(good)-1]+"F", 0o600), CredentialShape},
		{file("no id", "clusterRelayToken__"+strings.Repeat("0", 64), 0o600), CredentialShape},
		{file("empty", "", 0o600), CredentialShape},
		{file("nul", good+"\x00", 0o600), CredentialShape},
		{file("long", strings.Repeat("x", 1<<20), 0o600), CredentialShape},
		{file("0644", good, 0o644), CredentialMode},
		{file("0640", good, 0o640), CredentialMode},
		{file("0660", good, 0o660), CredentialMode},
		{file("0601", good, 0o601), CredentialMode},
		{file("0602", good, 0o602), CredentialMode},
		{dir, CredentialNotAFile},
		{pipe, CredentialNotAFile},
		{filepath.Join(dir, "absent"), CredentialMissing},
		{filepath.Join(dir, "good", "below"), CredentialUnreadable},
	} {
		name := filepath.Base(test.path)
		bearer, err := CredentialFile(test.path).Read()
		if test.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			content, _ := os.ReadFile(test.path)
			if !bytes.Equal(bearer, content) {
				t.Errorf("%s: read something else", name)
			}
			continue
		}
		var fault *CredentialError
		if !errors.As(err, &fault) || fault.Name != test.want {
			t.Errorf("%s: %v, want %s", name, err, test.want)
			continue
		}
		if strings.Contains(err.Error(), "0123") || strings.Contains(field.Error(err).String(), "0123") {
			t.Errorf("%s: the error quotes the file: %v", name, err)
		}
		if bearer != nil {
			t.Errorf("%s: a bearer beside an error", name)
		}
	}
}

// R11: over the life of a session, a credential that cannot be used is never presented,
// and one that can be is as soon as it is there.
func TestR11_OnlyAUsableCredentialIsPresented(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bearer")
	write := func(content string, mode os.FileMode) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	write(bearerOf("0001")+"\n", 0o600)
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config, _ *world) { c.Credential = CredentialFile(path) })
		time.Sleep(time.Hour)
		if len(w.dialled()) != 0 {
			t.Fatalf("dialled at %v", w.dialled())
		}
		if a, b := w.check(CheckSession), w.check(CheckCredential); a != "failing credential-unusable" || b != "failing credential-line-end" {
			t.Fatalf("checks %s, %s", a, b)
		}
		if got := w.status().CredentialFault; got != "credential-line-end" {
			t.Fatalf("fault %s", got)
		}
		write(bearerOf("0001"), 0o644)
		time.Sleep(time.Minute)
		if got := w.check(CheckCredential); got != "failing credential-mode" || len(w.dialled()) != 0 {
			t.Fatalf("check %s, dials %v", got, w.dialled())
		}
		write(bearerOf("0001"), 0o600)
		time.Sleep(credentialEvery + time.Second)
		w.wantState("registered")
		if got := w.check(CheckCredential); got != "ok" {
			t.Fatalf("check %s", got)
		}
		if got := w.of(contract.DefaultMethodExchangeIdentity); len(got) != 1 || got[0].body != `{"token":"`+bearerOf("0001")+`"}` {
			t.Fatalf("exchanges %v", got)
		}
		// While the session stands a bad file costs nothing but a check.
		write("", 0o600)
		time.Sleep(time.Minute)
		w.wantState("registered")
		if got := w.check(CheckCredential); got != "failing credential-shape" {
			t.Fatalf("check %s", got)
		}
	})
}

// A file system that hangs costs one goroutine, whatever is tried meanwhile, and
// the session goes on when it answers.
func TestAHangingCredentialLeaksNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		hang := make(chan struct{})
		w.credential.mu.Lock()
		w.credential.hang = hang
		w.credential.mu.Unlock()
		time.Sleep(time.Hour)
		w.credential.mu.Lock()
		reads := w.credential.reads
		w.credential.hang = nil
		w.credential.mu.Unlock()
		if reads != 1 {
			t.Fatalf("%d reads hang", reads)
		}
		if got := w.check(CheckSession); got != "failing credential-unusable" {
			t.Fatalf("check %s", got)
		}
		close(hang)
		time.Sleep(longestDelay)
		w.wantState("registered")
	})
}

// The keeper tells what it sees in the order in which it read, once for each
// change.
func TestKeeperTellsChanges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		source := &fakeCredential{bearer: bearerOf("0001")}
		type saying struct {
			fresh bool
			fault string
		}
		var said []saying
		k := newKeeper(source, func(fresh bool, unusual *CredentialError) {
			s := saying{fresh: fresh}
			if unusual != nil {
				s.fault = unusual.Name
			}
			said = append(said, s)
		})
		ctx, cancel := testContext(t)
		done := make(chan struct{})
		go func() { defer close(done); k.run(ctx) }()
		if b, err := k.bearer(ctx, true); err != nil || string(b) != bearerOf("0001") {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		source.set(bearerOf("0002"), nil)
		time.Sleep(time.Minute)
		if b, err := k.bearer(ctx, false); err != nil || string(b) != bearerOf("0002") {
			t.Fatal(err)
		}
		source.set("", errors.New("of another kind"))
		time.Sleep(time.Minute)
		if _, err := k.bearer(ctx, true); err == nil {
			t.Fatal("no error")
		}
		source.set(bearerOf("0001"), nil)
		time.Sleep(time.Minute)
		source.set(bearerOf("0002"), nil)
		k.glanceSoon()
		time.Sleep(time.Second)
		if _, err := k.bearer(ctx, true); err != nil {
			t.Fatal(err)
		}
		cancel()
		<-done
		want := []saying{{false, ""}, {true, ""}, {false, CredentialUnreadable}, {false, ""}, {true, ""}, {false, ""}}
		if len(said) != len(want) {
			t.Fatalf("said %v, want %v", said, want)
		}
		for i := range want {
			if said[i] != want[i] {
				t.Fatalf("said %v, want %v", said, want)
			}
		}
		if !bytes.Equal(k.presented, make([]byte, len(k.presented))) {
			t.Fatal("the presented bearer is left behind")
		}
	})
}
