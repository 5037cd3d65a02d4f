// Package rules holds the repository to its own rules, so that every contributor runs them with the other tests:
// which room may import which (docs/architecture.md), how long a file may be, that each package says what it
// promises, that no committed text names a machine or a package registry, that each failpoint stands at one place, that
// nothing is logged past duty's logger, and that the race detector is really on when a run says so.
//
// Each rule is a pure function with a table test that feeds it what it must refuse, so that a rule which has stopped
// looking is noticed. The package has no code outside its tests.
package rules

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module is the import path of this repository's main module.
const module = "serve.zone/relay"

// moduleRoot is the repository's root folder.
func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(content), "module "+module+"\n") {
		t.Fatal("the go.mod two folders up is not that of " + module)
	}
	return root
}

// exists tells whether there is a file or folder of that name.
func exists(t *testing.T, name string) bool {
	t.Helper()
	_, err := os.Stat(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}
