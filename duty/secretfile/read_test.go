package secretfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"serve.zone/relay/duty/secretfile"
)

func TestRead(t *testing.T) {
	const limit = 16
	folder := t.TempDir()
	write := func(name, text string, mode fs.FileMode) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
		return path
	}
	full := strings.Repeat("s", limit)
	for _, test := range []struct {
		name, path, want string
		err              error
	}{
		{"empty", write("empty", "", 0o600), "", nil},
		{"as it is", write("short", " secret\n", 0o600), " secret\n", nil},
		{"of the limit", write("full", full, 0o400), full, nil},
		{"one byte more", write("long", full+"s", 0o600), "", secretfile.ErrTooLong},
		{"read by its group", write("group", full, 0o640), "", secretfile.ErrTooOpen},
		{"written by others", write("other", full, 0o602), "", secretfile.ErrTooOpen},
		{"a folder", folder, "", secretfile.ErrNotAFile},
		{"missing", filepath.Join(folder, "none"), "", fs.ErrNotExist},
	} {
		got, err := secretfile.Read(test.path, limit)
		if string(got) != test.want || !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
			t.Errorf("%s: %q, %v", test.name, got, err)
		}
		if err != nil && strings.Contains(err.Error(), full[:4]) {
			t.Errorf("%s: the error quotes the file: %v", test.name, err)
		}
	}
}
