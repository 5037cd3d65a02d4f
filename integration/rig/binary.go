package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Variables of the environment that say which relay the tests run.
const (
	// BinaryVariable names a ready relay; nothing is built then. The path is
	// absolute. "go test" does not notice when the file changes: use -count=1.
	BinaryVariable = "RELAY_BINARY"
	// OverlayVariable names the JSON file of "go build -overlay", so that a
	// deliberately wrong relay is built. The path is absolute. It needs -count=1 as
	// well.
	OverlayVariable = "RELAY_OVERLAY"
)

const (
	command = "serve.zone/relay/cmd/relay"

	// buildWait bounds the build. With an empty cache and the race detector it
	// takes minutes on two busy cores.
	buildWait = 8 * time.Minute
)

// Main is the TestMain of a package whose tests use rigs: it runs them, removes
// the relay that was built for them, and fails when goroutines are left. Tags are build
// tags of that relay; a ready one, in BinaryVariable, cannot be tagged any more.
func Main(m *testing.M, tags ...string) {
	built.owned, built.tags = true, tags
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(built.dir); err != nil {
			fmt.Fprintln(os.Stderr, "rig: remove the built relay:", err)
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}

// built is the relay of this test process. It is the one state of the package
// that outlives a test: linking takes seconds, under the race detector more.
var built struct {
	once  sync.Once
	owned bool // Main will remove dir; set before any test runs
	tags  []string
	dir   string // "" when nothing was built
	path  string
	err   error
}

// relayBinary returns the path of the relay, which it builds the first time.
func relayBinary() (string, error) {
	built.once.Do(func() {
		if built.path = os.Getenv(BinaryVariable); built.path != "" {
			if built.err = judgeReady(built.path); built.err == nil && len(built.tags) > 0 {
				built.err = fmt.Errorf("rig: %s is set, and this package's relay is built with the tags %q", BinaryVariable, built.tags)
			}
			return
		}
		if !built.owned {
			built.err = errors.New("rig: nobody would remove the relay that is built: let TestMain call rig.Main")
			return
		}
		if built.dir, built.err = os.MkdirTemp("", "relay-rig-"); built.err != nil {
			return
		}
		built.path = filepath.Join(built.dir, "relay")
		built.err = build(built.path, os.Getenv(OverlayVariable), built.tags)
	})
	return built.path, built.err
}

func judgeReady(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("rig: %s is not an absolute path", BinaryVariable)
	}
	about, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("rig: %s: %w", BinaryVariable, err)
	}
	if !about.Mode().IsRegular() || about.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("rig: %s is not an executable file", BinaryVariable)
	}
	return nil
}

// build builds the relay as this test binary was built: with or without the race
// detector. Version control is left out, which would cost a walk of the tree.
func build(path, overlay string, tags []string) error {
	flags := []string{"-buildvcs=false", "-tags=" + strings.Join(tags, ",")}
	if raceEnabled {
		flags = append(flags, "-race")
	}
	if overlay != "" {
		if !filepath.IsAbs(overlay) {
			return fmt.Errorf("rig: %s is not an absolute path", OverlayVariable)
		}
		flags = append(flags, "-overlay="+overlay)
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildWait)
	defer cancel()
	if _, err := goCommand(ctx, append(append([]string{"build", "-o", path}, flags...), command)...); err != nil {
		return err
	}
	return noteSources(ctx, flags)
}

// noteSources looks at every folder of this module that the relay is built from.
// "go test" notes what a test looks at; without this it would go on reporting the
// results of an older relay as cached.
func noteSources(ctx context.Context, flags []string) error {
	const dirs = `{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}`
	list, err := goCommand(ctx, append(append([]string{"list", "-deps", "-f", dirs}, flags...), command)...)
	if err != nil {
		return err
	}
	for dir := range strings.FieldsSeq(list) {
		if _, err := os.ReadDir(dir); err != nil {
			return fmt.Errorf("rig: %w", err)
		}
	}
	return nil
}

func goCommand(ctx context.Context, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("rig: go %s: %w\n%s", args[0], err, stderr.Bytes())
	}
	return stdout.String(), nil
}
