package rig

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLedgerSeesEveryChange(t *testing.T) {
	dir := t.TempDir()
	l, err := newLedger(dir, "etc", "work")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etc/kept", "etc/filled", "etc/touched", "etc/opened", "etc/removed", "etc/replaced", "etc/forged"} {
		if _, err := l.write(name, []byte("content of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// What the rig changes itself is none.
	if _, err := l.write("etc/replaced", []byte("new"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := l.write("etc/taken back", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.remove("etc/taken back"); err != nil {
		t.Fatal(err)
	}
	if got, err := l.changes(); err != nil || len(got) != 0 {
		t.Fatalf("changes %v, %v", got, err)
	}
	if about, err := os.Stat(filepath.Join(dir, "etc/replaced")); err != nil || about.Mode() != 0o666 {
		t.Fatalf("%v, %v", about, err)
	}
	forged, err := os.Stat(filepath.Join(dir, "etc/forged"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, err := range map[string]error{
		"fill": os.WriteFile(at("etc/filled"), []byte("other"), 0o600),
		"forge": errors.Join(os.WriteFile(at("etc/forged"), []byte("content OF etc/forged"), 0o600),
			os.Chtimes(at("etc/forged"), forged.ModTime(), forged.ModTime())),
		"touch":  os.Chtimes(at("etc/touched"), time.Unix(1, 0), time.Unix(1, 0)),
		"open":   os.Chmod(at("etc/opened"), 0o644),
		"remove": os.Remove(at("etc/removed")),
		"create": os.WriteFile(at("work/created"), []byte("created"), 0o600),
		"folder": os.Mkdir(at("work/folder"), 0o700),
		"pipe":   syscall.Mkfifo(at("work/pipe"), 0o600),
		"link":   os.Symlink("nowhere", at("work/link")),
	} {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	changes, err := l.changes()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range changes {
		got[c.what] = string(c.content)
	}
	want := map[string]string{
		"changed etc/filled": "other", "changed etc/forged": "content OF etc/forged", "changed etc/touched": "content of etc/touched", "changed etc/opened": "content of etc/opened",
		"removed etc/removed": "", "created work/created": "created", "created work/folder": "",
		"created work/pipe": "", "created work/link": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestLedgerStaysInside(t *testing.T) {
	l, err := newLedger(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../x", "/x", ""} {
		if _, err := l.write(name, nil, 0o600); err == nil {
			t.Errorf("%q is written", name)
		}
	}
}
