package credential

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"serve.zone/relay/duty/field"
)

func TestRead_Files(t *testing.T) {
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	write := func(name, content string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path(name), []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path(name), mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
	}
	write("good", whole, 0o600)
	write("read-only", whole, 0o400)
	write("group", whole, 0o640)
	write("world", whole, 0o604)
	write("longest", whole+"#"+strings.Repeat("x", maxCredential-len(whole)-1), 0o600)
	write("too-long", whole+"#"+strings.Repeat("x", maxCredential-len(whole)), 0o600)
	write("long-key", strings.Repeat("x", maxKey+1), 0o600)
	if err := errors.Join(
		syscall.Mkfifo(path("pipe"), 0o600), os.Mkdir(path("folder"), 0o700),
		os.Symlink("good", path("link")), os.Symlink("loop", path("loop")),
	); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"good": "", "read-only": "", "longest": "", "link": "",
		"none": Missing, "group": TooOpen, "world": TooOpen, "too-long": TooLong, "pipe": NotAFile, "folder": NotAFile, "loop": Unreadable,
	} {
		_, err := Read(path(name))
		var why *Error
		errors.As(err, &why)
		if (want == "") != (err == nil) || want != "" && why.Name != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]string{"good": TooLong, "long-key": TooLong, "none": Missing, "world": TooOpen, "pipe": NotAFile} {
		_, err := ReadKey(path(name))
		var why *Error
		if !errors.As(err, &why) || why.Name != want {
			t.Errorf("key %s: %v", name, err)
		}
	}
}

func TestReadKey_Shapes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "key")
	for content, good := range map[string]bool{
		private: true, private + "\n": true, private + "\r\n": true,
		"": false, " " + private: false, private + " ": false, private[:43]: false, private + private: false, private + "\n" + private: false,
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		key, err := ReadKey(name)
		var why *Error
		switch {
		case good && (err != nil || key.Secret() != private):
			t.Errorf("%q: %v", content, err)
		case !good && (!errors.As(err, &why) || why.Name != NoKey || strings.Contains(err.Error(), "AQEB")):
			t.Errorf("%q: %v", content, err)
		}
	}
}

// A key file is its owner's alone whatever the umask, and takes nobody's place.
func TestCreate(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "key")
	if err := Create(name, keyOf(t, private)); err != nil {
		t.Fatal(err)
	}
	about, err := os.Lstat(name)
	if err != nil || about.Mode() != 0o600 {
		t.Errorf("%v, %v", about.Mode(), err)
	}
	if key, err := ReadKey(name); err != nil || key.Secret() != private {
		t.Errorf("read: %v", err)
	}

	other := keyOf(t, "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=")
	link := filepath.Join(folder, "link")
	if err := os.Symlink(filepath.Join(folder, "elsewhere"), link); err != nil {
		t.Fatal(err)
	}
	for _, taken := range []string{name, link, folder} {
		var why *Error
		if err := Create(taken, other); !errors.As(err, &why) || why.Name != Exists {
			t.Errorf("%s: %v", taken, err)
		}
	}
	if key, err := ReadKey(name); err != nil || key.Secret() != private {
		t.Errorf("what was there before: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(folder, "elsewhere")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link was followed: %v", err)
	}
	var why *Error
	if err := Create(filepath.Join(folder, "none", "key"), other); !errors.As(err, &why) || why.Name != NotMade {
		t.Errorf("in a folder that is not there: %v", err)
	}
}

// The folder is synced once the file is whole, and a file whose name may not be on the
// disk is none.
func TestCreate_SyncsTheFolder(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "key")
	var synced []string
	broken := errors.New("the disk is broken")
	err := create(name, keyOf(t, private), func(folder string) error {
		if key, err := ReadKey(name); err != nil || key.Secret() != private {
			t.Errorf("when the folder is synced, the file is %v", err)
		}
		synced = append(synced, folder)
		return broken
	})
	var why *Error
	if !errors.As(err, &why) || why.Name != NotMade || !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if len(synced) != 1 || synced[0] != folder {
		t.Errorf("synced %q", synced)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}

	if err := syncFolder(folder); err != nil {
		t.Error(err)
	}
	if err := syncFolder(filepath.Join(folder, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	t.Chdir(folder)
	if err := Create("bare", keyOf(t, private)); err != nil {
		t.Errorf("a name without a folder: %v", err)
	}
}

// Each name has a sentence for a person, and is one for a log line.
func TestErrorsHaveNames(t *testing.T) {
	if len(sentences) != 19 {
		t.Fatalf("there are %d", len(sentences))
	}
	for name, sentence := range sentences {
		err := &Error{Name: name, Key: "private-key", Line: 3, Cause: fs.ErrPermission}
		if got := field.Error(err).String(); got != "credential-"+name+": permission denied" {
			t.Errorf("the log says %q", got)
		}
		if want := "line 3: private-key: " + sentence + ": permission denied"; err.Error() != want || sentence == "" {
			t.Errorf("%q, want %q", err, want)
		}
	}
}
