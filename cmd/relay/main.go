package main

import (
	"context"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"serve.zone/relay/appliance"
	"serve.zone/relay/duty/failpoint"
)

func main() {
	failpoint.Attach()
	os.Exit(run(process{
		program: os.Args[0], args: os.Args[1:], environ: os.Environ(), stdout: os.Stdout, stderr: os.Stderr,
		open:    func(name string) (io.ReadCloser, error) { return os.Open(name) },
		prepare: prepare, signals: subscribe, notify: notify, build: build,
	}))
}

// prepare does what must have happened before a secret is read or a line is
// written. The error says what the system did not grant.
func prepare() error {
	// A write to a closed standard error would end the process otherwise.
	signal.Ignore(syscall.SIGPIPE)
	// A reload that is asked for before there is something to reload must not end
	// the process: the files are about to be read anyway.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	return withoutDumps()
}

// waitingSignals is how many signals wait while one is handled. Beyond it the
// runtime drops them, and a drain must not be lost behind a burst of SIGHUP.
const waitingSignals = 64

func subscribe() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, waitingSignals)
	signal.Notify(c, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// notify tells systemd, where it wants to be told.
func notify(state string) error {
	_, err := daemon.SdNotify(false, state)
	return err
}

// seams gives a configuration the system's.
func seams(c appliance.Config) appliance.Config {
	var sockets net.ListenConfig
	dialer := net.Dialer{Control: boundUnsent} // its caller's context bounds a dial
	c.Listen, c.ListenPacket, c.Dial = sockets.Listen, sockets.ListenPacket, dialer.DialContext
	c.Wall = failpoint.Wall(failpoint.Clock, time.Now)
	return c
}

// build makes an appliance of the real world.
func build(c appliance.Config) (relay, error) {
	a, err := appliance.New(seams(c))
	if err != nil {
		return nil, err
	}
	return a, nil
}

// relay is the appliance as this package sees it.
type relay interface {
	// Start binds. An error means that nothing is bound.
	Start(ctx context.Context) error
	// Run serves until ctx ends, then drains, and has closed everything when it
	// returns.
	Run(ctx context.Context) error
	// Reload reads files again, at any time.
	Reload()
}
