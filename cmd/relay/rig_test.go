package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/appliance"
)

// fakeRelay starts, serves and drains as it is told. Functions that are nil do
// what goes well.
type fakeRelay struct {
	start   func(context.Context) error
	run     func(context.Context) error
	reload  func()
	mu      sync.Mutex
	reloads int // guarded by mu
}

func (f *fakeRelay) Start(ctx context.Context) error {
	if f.start != nil {
		return f.start(ctx)
	}
	return nil
}

func (f *fakeRelay) Run(ctx context.Context) error {
	if f.run != nil {
		return f.run(ctx)
	}
	<-ctx.Done()
	return nil
}

func (f *fakeRelay) Reload() {
	f.mu.Lock()
	f.reloads++
	f.mu.Unlock()
	if f.reload != nil {
		f.reload()
	}
}

func (f *fakeRelay) reloaded() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reloads
}

// safeBuffer is an output that several goroutines write to.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// rig is a run of `relay serve` with everything around it simulated, in the bubble
// of a synctest. It takes over the default loggers, so tests with it do not run
// in parallel.
type rig struct {
	process
	t       *testing.T
	relay   *fakeRelay
	signals chan os.Signal
	stdout  safeBuffer
	stderr  safeBuffer
	code    chan int // has room for the one

	mu    sync.Mutex
	told  []string           // guarded by mu; to the service manager
	built []appliance.Config // guarded by mu
}

// validFlags are a command line that nothing is wrong with.
var validFlags = []string{
	"--cloudly-url=https://cloudly.example", "--credential-file=credential", "--node-id=node-a",
	"--listen=192.0.2.10:8443", "--tls-cert-file=origin.pem", "--tls-key-file=origin-key.pem",
}

func newRig(t *testing.T, r *fakeRelay, flags ...string) *rig {
	t.Helper()
	s := &rig{t: t, relay: r, signals: make(chan os.Signal, waitingSignals), code: make(chan int, 1)}
	s.process = process{
		args: append(append([]string{"serve"}, validFlags...), flags...), stdout: &s.stdout, stderr: &s.stderr,
		prepare: func() error { return nil },
		signals: func() (<-chan os.Signal, func()) { return s.signals, func() {} },
		notify: func(state string) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.told = append(s.told, state)
			return nil
		},
		build: func(c appliance.Config) (relay, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.built = append(s.built, c)
			return r, nil
		},
	}
	return s
}

// start runs the program and returns when nothing happens any more.
func (s *rig) start() {
	go func() { s.code <- run(s.process) }()
	synctest.Wait()
}

// send sends a signal and returns when nothing happens any more.
func (s *rig) send(sig syscall.Signal) {
	s.signals <- sig
	synctest.Wait()
}

// goesOn fails the test if the program has ended.
func (s *rig) goesOn() {
	s.t.Helper()
	select {
	case code := <-s.code:
		s.t.Fatalf("ended with %d; stderr:\n%s", code, s.stderr.String())
	default:
	}
}

// ended fails the test unless the program has ended, with this code.
func (s *rig) ended(want int) {
	s.t.Helper()
	select {
	case code := <-s.code:
		if code != want {
			s.t.Errorf("ended with %d, want %d; stderr:\n%s", code, want, s.stderr.String())
		}
	default:
		s.t.Fatalf("has not ended; stderr:\n%s", s.stderr.String())
	}
}

// ends waits, in the bubble's time, for the end of the program.
func (s *rig) ends(want int) {
	s.t.Helper()
	if code := <-s.code; code != want {
		s.t.Errorf("ended with %d, want %d; stderr:\n%s", code, want, s.stderr.String())
	}
}

// tells compares what the service manager was told.
func (s *rig) tells(want ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff(want, s.told); diff != "" {
		s.t.Errorf("told (-want +got):\n%s", diff)
	}
}

// says fails the test unless standard error has each of the texts, once.
func (s *rig) says(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if n := strings.Count(s.stderr.String(), text); n != 1 {
			s.t.Errorf("stderr has %q %d times, want once:\n%s", text, n, s.stderr.String())
		}
	}
}
