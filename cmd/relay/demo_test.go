package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"serve.zone/relay/demo"
)

// demoRun is a run of `relay demo` in which the demonstration itself is played.
type demoRun struct {
	process
	verb           *demoVerb
	stdout, stderr safeBuffer
	signals        chan os.Signal
	comes          []os.Signal // once the demonstration has begun
	shown          demo.Config
}

func newDemoRun(t *testing.T, show func(context.Context, demo.Config) (bool, error), args ...string) *demoRun {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	d := &demoRun{signals: make(chan os.Signal)}
	d.process = process{
		stdout: &d.stdout, stderr: &d.stderr, prepare: func() error { return nil },
		signals: func() (<-chan os.Signal, func()) { return d.signals, func() {} },
	}
	v, err := parse(append([]string{"demo"}, args...), verbs())
	if err != nil {
		t.Fatal(err)
	}
	d.verb = v.(*demoVerb)
	d.verb.show = func(ctx context.Context, cfg demo.Config) (bool, error) {
		d.shown = cfg
		if err := os.WriteFile(filepath.Join(cfg.Dir, "file"), nil, 0o600); err != nil {
			t.Error(err)
		}
		for _, s := range d.comes {
			d.signals <- s
		}
		return show(ctx, cfg)
	}
	return d
}

// untidy reports what is left in the folder for temporary files.
func untidy(t *testing.T) []os.DirEntry {
	t.Helper()
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// Each way to end has its exit code, and leaves no file behind.
func TestDemo_ExitCodes(t *testing.T) {
	untilTold := func(ctx context.Context, _ demo.Config) (bool, error) { <-ctx.Done(); return true, nil }
	forEver := func(block chan struct{}) func(context.Context, demo.Config) (bool, error) {
		return func(context.Context, demo.Config) (bool, error) { <-block; return true, nil }
	}
	block := make(chan struct{})
	defer close(block)
	tests := map[string]struct {
		show    func(context.Context, demo.Config) (bool, error)
		signals []os.Signal
		code    int
		says    string
	}{
		"every step held":           {func(context.Context, demo.Config) (bool, error) { return true, nil }, nil, exitClean, ""},
		"a step did not":            {func(context.Context, demo.Config) (bool, error) { return false, nil }, nil, exitNotHeld, ""},
		"the output is not taken":   {func(context.Context, demo.Config) (bool, error) { return true, errors.New("broken pipe") }, nil, exitFailed, "relay: the demonstration could not go on: broken pipe\n"},
		"it panics":                 {func(context.Context, demo.Config) (bool, error) { panic("a value") }, nil, exitFailed, "could not go on: a panic\n"},
		"a signal ends it":          {untilTold, []os.Signal{syscall.SIGTERM}, exitClean, ""},
		"a closed terminal ends it": {untilTold, []os.Signal{syscall.SIGHUP}, exitClean, ""},
		"a second signal forces it": {forEver(block), []os.Signal{syscall.SIGINT, syscall.SIGINT}, exitForced, ""},
		"a second SIGHUP does not":  {untilTold, []os.Signal{syscall.SIGINT, syscall.SIGHUP}, exitClean, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := newDemoRun(t, test.show)
			d.comes = test.signals
			if code := d.verb.run(d.process); code != test.code {
				t.Errorf("ended with %d, want %d", code, test.code)
			}
			if said := d.stderr.String(); !strings.HasSuffix(said, test.says) || test.says == "" && said != "" || strings.Contains(said, "a value") {
				t.Errorf("says %q, want %q", said, test.says)
			}
			if left := untidy(t); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestDemo_NoFolderForFiles(t *testing.T) {
	d := newDemoRun(t, nil)
	t.Setenv("TMPDIR", filepath.Join(os.Getenv("TMPDIR"), "none"))
	if code := d.verb.run(d.process); code != exitFailed || !strings.HasPrefix(d.stderr.String(), "relay: the temporary folder could not be made: ") {
		t.Errorf("ended with %d, says %q", code, d.stderr.String())
	}
}

// What is asked for arrives, and what cannot be meant is refused by name.
func TestDemo_Flags(t *testing.T) {
	held := func(context.Context, demo.Config) (bool, error) { return true, nil }
	tests := []struct {
		args []string
		once bool
		size int64
		what demo.Break
	}{
		{nil, false, 64 << 20, ""},
		{[]string{"--once", "--size=1", "--break", "grant"}, true, 1 << 20, demo.BreakGrant},
		{[]string{"--size", "1024", "--json", "--break=renewal"}, false, 1 << 30, demo.BreakRenewal},
	}
	for _, test := range tests {
		d := newDemoRun(t, held, test.args...)
		if code := d.verb.run(d.process); code != exitClean {
			t.Errorf("%q ended with %d", test.args, code)
		}
		if c := d.shown; c.Once != test.once || c.Size != test.size || c.Break != test.what || c.Relay.Build.Version != version ||
			c.Relay.Listen == nil || c.Relay.Dial == nil || c.Relay.ListenPacket == nil || c.Relay.Wall == nil || c.Relay.Log == nil {
			t.Errorf("%q shows %+v", test.args, c)
		}
		d.shown.To.Close(demo.Summary{Kind: "end", Held: true})
		if isJSON := strings.HasPrefix(d.stdout.String(), "{"); isJSON != strings.Contains(strings.Join(test.args, " "), "--json") {
			t.Errorf("%q prints %q", test.args, d.stdout.String())
		}
	}
	for _, wrong := range []string{"--size=0", "--size=1025", "--size=x", "--size=-1", "--size=", "--break=x", "--break=", "extra"} {
		var usage *usageError
		if v, err := parse([]string{"demo", wrong}, verbs()); !errors.As(err, &usage) || usage.verb != "demo" {
			t.Errorf("%s: %v, %v", wrong, v, err)
		}
	}
}

// What is to be typed can be pasted, however the program was started.
func TestDemo_WhatToType(t *testing.T) {
	hash := strings.Repeat("0123456789abcdef", 4)
	for program, want := range map[string]string{
		"":                                       "relay",
		"relay":                                  "relay",
		"./relay":                                "./relay",
		"/opt/go-build/relay":                    "/opt/go-build/relay",
		"/tmp/go-build3400110474/relay":          "/tmp/go-build3400110474/relay",
		"/opt/my relay's/relay":                  `'/opt/my relay'\''s/relay'`,
		"/opt/a;b":                               "'/opt/a;b'",
		"/tmp/go-build3400110474/b001/exe/relay": "go run ./cmd/relay",
		"/var/cache/go-build/01/" + hash + "-d/relay": "go run ./cmd/relay",
		"/var/cache/01/" + hash + "-d/relay":          "go run ./cmd/relay",
		"/var/cache/01/" + hash + "/relay":            "/var/cache/01/" + hash + "/relay",
	} {
		if got := typed(program); got != want {
			t.Errorf("%q: %s, want %s", program, got, want)
		}
	}
	d := newDemoRun(t, func(context.Context, demo.Config) (bool, error) { return true, nil })
	d.program = "bin/relay"
	if d.verb.run(d.process); d.shown.Program != "bin/relay" {
		t.Errorf("the demonstration is told %q", d.shown.Program)
	}
}

// Colour is for a terminal alone, and for whoever did not ask to be spared.
func TestDemo_Colour(t *testing.T) {
	device, err := os.Open(os.DevNull) // a device, as a terminal is
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	both, neither, rewrites := demo.Terminal{Rewrite: true, Colour: true}, demo.Terminal{}, demo.Terminal{Rewrite: true}
	if got := terminalOf(new(safeBuffer), nil); got != neither {
		t.Errorf("no file: %+v", got)
	}
	if got := terminalOf(file, nil); got != neither {
		t.Errorf("a file: %+v", got)
	}
	for environ, want := range map[string]demo.Terminal{
		"TERM=xterm": both, "NO_COLOR=": both, "NO_COLOR=1": rewrites, "TERM=dumb": neither, "XNO_COLOR=1": both,
	} {
		if got := terminalOf(device, []string{environ}); got != want {
			t.Errorf("a terminal with %s: %+v", environ, got)
		}
	}
}
