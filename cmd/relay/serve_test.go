package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/appliance"
	"serve.zone/relay/contract"
)

const (
	ready    = "READY=1"
	stopping = "STOPPING=1"
)

func TestServe_OneSignalDrains(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRig(t, &fakeRelay{run: func(ctx context.Context) error {
					<-ctx.Done()
					time.Sleep(10 * time.Second) // a drain as long as one may be
					return nil
				}})
				s.start()
				s.goesOn()
				s.tells(ready)
				s.send(sig)
				s.goesOn()
				s.tells(ready, stopping)
				s.ends(exitClean)
				s.says(`"reason":"` + signalName(sig) + `"`)
			})
		})
	}
}

func TestServe_SecondSignalEndsAtOnce(t *testing.T) {
	for _, sigs := range [][2]syscall.Signal{
		{syscall.SIGTERM, syscall.SIGTERM}, {syscall.SIGINT, syscall.SIGINT}, {syscall.SIGINT, syscall.SIGTERM},
	} {
		t.Run(sigs[0].String()+" and "+sigs[1].String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				hangs := make(chan struct{})
				s := newRig(t, &fakeRelay{run: func(context.Context) error { <-hangs; return nil }})
				defer close(hangs)
				s.start()
				s.send(sigs[0])
				s.goesOn()
				s.send(sigs[1])
				s.ended(exitForced)
				if waited := time.Since(begin); waited != 0 {
					t.Errorf("a second signal took %v", waited)
				}
			})
		})
	}
}

// A second signal is heard even when the service manager and the log hang.
func TestServe_SecondSignalWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		hangs := make(chan struct{})
		s := newRig(t, &fakeRelay{})
		s.relay.run = func(context.Context) error { <-hangs; return nil }
		s.notify = func(string) error { <-hangs; return nil }
		s.process.stderr = hangingWriter(hangs)
		defer close(hangs)
		s.start()
		s.send(syscall.SIGTERM)
		s.send(syscall.SIGTERM)
		s.ends(exitForced)
		if waited := time.Since(begin); waited > forcedFlushWait {
			t.Errorf("a second signal took %v", waited)
		}
	})
}

type hangingWriter chan struct{}

func (w hangingWriter) Write(p []byte) (int, error) { <-w; return len(p), nil }

// A log that nobody reads holds up neither the service nor its end.
func TestServe_EndsBesideAnOutputThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		s := newRig(t, &fakeRelay{})
		s.process.stderr = hangingWriter(hangs)
		defer close(hangs)
		s.start()
		s.send(syscall.SIGHUP)
		if n := s.relay.reloaded(); n != 1 {
			t.Errorf("reloaded %d times, want once", n)
		}
		begin := time.Now()
		s.send(syscall.SIGTERM)
		s.ends(exitClean)
		if waited := time.Since(begin); waited != flushWait {
			t.Errorf("waited %v for the log, want %v", waited, flushWait)
		}
	})
}

func TestServe_HangupReloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drained := make(chan struct{})
		s := newRig(t, &fakeRelay{run: func(ctx context.Context) error { <-ctx.Done(); <-drained; return nil }})
		s.start()
		s.send(syscall.SIGHUP)
		s.send(syscall.SIGHUP)
		s.goesOn()
		if n := s.relay.reloaded(); n != 2 {
			t.Errorf("reloaded %d times, want 2", n)
		}
		// During the drain it is neither a reload nor a second signal.
		s.send(syscall.SIGTERM)
		s.send(syscall.SIGHUP)
		s.goesOn()
		if n := s.relay.reloaded(); n != 2 {
			t.Errorf("reloaded %d times during the drain", n-2)
		}
		s.says(`"msg":"reload-left-out","reason":"stopping"`)
		close(drained)
		synctest.Wait()
		s.ended(exitClean)
		s.tells(ready, stopping)
	})
}

// Behind a reload that hangs one waits for all signals of a burst, which is said. A
// signal to stop is heard behind it, and the service manager is told of it.
func TestServe_ReloadThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs, drained := make(chan struct{}), make(chan struct{})
		s := newRig(t, &fakeRelay{reload: func() { <-hangs }, run: func(ctx context.Context) error { <-ctx.Done(); <-drained; return nil }})
		s.start()
		s.send(syscall.SIGHUP)
		s.send(syscall.SIGHUP)
		if strings.Contains(s.stderr.String(), "reload-left-out") {
			t.Error("the one that waits is said to be left out")
		}
		s.send(syscall.SIGHUP)
		s.says(`"msg":"reload-left-out","reason":"one-waits"`)
		for range 50 {
			s.send(syscall.SIGHUP)
		}
		s.send(syscall.SIGTERM)
		s.tells(ready, stopping)
		begin := time.Now()
		close(drained)
		s.ends(exitClean)
		if waited := time.Since(begin); waited != asideWait {
			t.Errorf("waited %v for the reload, want %v", waited, asideWait)
		}
		s.says(`"msg":"reload-not-ended"`)
		close(hangs)
		synctest.Wait()
		if n := s.relay.reloaded(); n != 2 {
			t.Errorf("reloaded %d times, want once and once more", n)
		}
	})
}

// What was changed while a reload ran is read by the one that waits behind it.
func TestServe_ReloadBehindAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t, &fakeRelay{reload: func() { time.Sleep(time.Minute) }})
		s.start()
		for range 3 {
			s.send(syscall.SIGHUP)
		}
		time.Sleep(2*time.Minute + time.Second)
		if n := s.relay.reloaded(); n != 2 {
			t.Errorf("reloaded %d times, want twice", n)
		}
		s.send(syscall.SIGHUP)
		if n := s.relay.reloaded(); n != 3 {
			t.Errorf("reloaded %d times, want three times", n)
		}
		time.Sleep(time.Minute)
		s.send(syscall.SIGTERM)
		s.ended(exitClean)
	})
}

// A service manager that hangs holds up no reload, and the end for a moment alone.
func TestServe_ServiceManagerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		s := newRig(t, &fakeRelay{})
		s.notify = func(string) error { <-hangs; return nil }
		defer close(hangs)
		s.start()
		for range 2 {
			s.send(syscall.SIGHUP)
		}
		if n := s.relay.reloaded(); n != 2 {
			t.Errorf("reloaded %d times, want twice", n)
		}
		begin := time.Now()
		s.send(syscall.SIGTERM)
		s.ends(exitClean)
		if waited := time.Since(begin); waited != asideWait {
			t.Errorf("waited %v, want %v", waited, asideWait)
		}
		s.says(`"msg":"service-manager-not-told","reason":"no-answer"`)
	})
}

func TestServe_ServiceManagerThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t, &fakeRelay{})
		s.notify = func(string) error { return syscall.ECONNREFUSED }
		s.start()
		s.goesOn()
		s.says(`"msg":"service-manager-not-told","error":"connection refused"`)
		s.send(syscall.SIGTERM)
		s.ended(exitClean)
	})
}

func TestServe_DrainThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		s := newRig(t, &fakeRelay{run: func(context.Context) error { <-hangs; return nil }})
		defer close(hangs)
		s.start()
		begin := time.Now()
		s.send(syscall.SIGTERM)
		s.ends(exitFailed)
		if waited := time.Since(begin); waited != stopWait {
			t.Errorf("ended after %v, want %v", waited, stopWait)
		}
		s.says(`"msg":"stop-overdue"`)
	})
}

// B120: a start that failed is no success to a service manager.
func TestB120_CodesOfEnds(t *testing.T) {
	inUse := &net.OpError{
		Op: "listen", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 10), Port: 8443},
		Err: os.NewSyscallError("bind", syscall.EADDRINUSE),
	}
	untilStopped := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	tests := []struct {
		name  string
		relay *fakeRelay
		stop  bool // SIGTERM is sent
		code  int
		says  []string
		told  []string
	}{
		{
			name:  "could not start",
			relay: &fakeRelay{start: func(context.Context) error { return inUse }},
			code:  exitFailed, says: []string{"relay: could not start: listen tcp 192.0.2.10:8443: bind: address already in use\n"},
		},
		{
			name:  "told to stop before it had started",
			relay: &fakeRelay{start: untilStopped}, stop: true,
			code: exitClean, told: []string{stopping},
		},
		{
			name:  "told to stop, and had just started",
			relay: &fakeRelay{start: func(ctx context.Context) error { <-ctx.Done(); return nil }}, stop: true,
			code: exitClean, told: []string{stopping},
		},
		{
			name:  "could not start, and was told to stop meanwhile",
			relay: &fakeRelay{start: func(ctx context.Context) error { <-ctx.Done(); return inUse }}, stop: true,
			code: exitFailed, says: []string{"relay: could not start: "}, told: []string{stopping},
		},
		{
			name:  "panics as it starts",
			relay: &fakeRelay{start: func(context.Context) error { panic("5ec2e7") }},
			code:  exitFailed, says: []string{`"msg":"panic-recovered"`, `"msg":"relay-ended","error":"panicked"`},
		},
		{
			name:  "could not go on",
			relay: &fakeRelay{run: func(context.Context) error { time.Sleep(time.Hour); return inUse }},
			code:  exitFailed, says: []string{`"msg":"relay-ended","error":"listen tcp 192.0.2.10:8443: bind: address already in use"`},
			told: []string{ready},
		},
		{
			name:  "panics",
			relay: &fakeRelay{run: func(context.Context) error { time.Sleep(time.Hour); panic("5ec2e7") }},
			code:  exitFailed, says: []string{`"msg":"panic-recovered"`, `"msg":"relay-ended","error":"panicked"`}, told: []string{ready},
		},
		{
			name:  "ends unasked",
			relay: &fakeRelay{run: func(context.Context) error { time.Sleep(time.Hour); return nil }},
			code:  exitFailed, says: []string{`"msg":"relay-ended","reason":"unasked"`}, told: []string{ready},
		},
		{
			name:  "fails in its drain",
			relay: &fakeRelay{run: func(ctx context.Context) error { <-ctx.Done(); return inUse }}, stop: true,
			code: exitFailed, says: []string{`"msg":"relay-ended"`}, told: []string{ready, stopping},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRig(t, test.relay)
				s.start()
				if test.stop {
					s.goesOn()
					s.send(syscall.SIGTERM)
				}
				s.ends(test.code)
				s.says(test.says...)
				s.tells(test.told...)
				if strings.Contains(s.stderr.String(), "5ec2e7") {
					t.Errorf("the text of a panic is shown:\n%s", s.stderr.String())
				}
			})
		})
	}
}

func TestServe_ReloadThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t, &fakeRelay{reload: func() { panic("5ec2e7") }})
		s.start()
		s.send(syscall.SIGHUP)
		s.send(syscall.SIGHUP)
		s.goesOn()
		if n := s.relay.reloaded(); n != 2 {
			t.Errorf("reloaded %d times, want 2", n)
		}
		s.send(syscall.SIGTERM)
		s.ended(exitClean)
	})
}

func TestServe_RefusedByTheAppliance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t, &fakeRelay{})
		s.build = func(appliance.Config) (relay, error) {
			return nil, &appliance.UnsupportedError{Setting: "tls-source", Needs: "the source acme"}
		}
		s.start()
		s.ended(exitConfiguration)
		s.says("relay: the configuration is not valid: tls-source: ")
		s.tells()
	})
}

// R07, R14: of a configuration that is not valid nothing is built, so nothing can
// be bound.
func TestR07_R14_NothingIsBuilt(t *testing.T) {
	const offer = "protocol:\n  interfacesVersion: 32.44.0\n  minimumPeerVersion: "
	tests := []struct {
		name, listen, file string
		code               int
	}{
		{"nothing wrong", "192.0.2.10:8443", offer + "32.44.0\n", exitClean},
		{"minimum above the version", "192.0.2.10:8443", offer + "32.44.1\n", exitConfiguration},
		{"minimum of another major", "192.0.2.10:8443", offer + "31.0.0\n", exitConfiguration},
		{"loopback", "127.0.0.1:8443", offer + "32.44.0\n", exitConfiguration},
		{"link-local", "169.254.1.1:8443", offer + "32.44.0\n", exitConfiguration},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRig(t, &fakeRelay{})
				s.args = []string{
					"serve", "--cloudly-url=https://cloudly.example", "--credential-file=credential", "--node-id=node-a",
					"--tls-cert-file=origin.pem", "--tls-key-file=origin-key.pem", "--config=relay.yaml", "--listen=" + test.listen,
				}
				s.open = func(name string) (io.ReadCloser, error) {
					if name != "relay.yaml" {
						return nil, os.ErrNotExist
					}
					return io.NopCloser(strings.NewReader(test.file)), nil
				}
				s.signals <- syscall.SIGTERM
				s.start()
				s.ended(test.code)
				if built := len(s.built) != 0; built != (test.code == exitClean) {
					t.Errorf("built: %t", built)
				}
			})
		})
	}
}

func TestServe_GivesTheApplianceWhatWasConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t, &fakeRelay{}, "--hub-workers=1")
		s.environ = []string{"RELAY_LOG_LEVEL=error", "RELAY_HUB_WORKERS=4"}
		s.start()
		s.send(syscall.SIGTERM)
		s.ended(exitClean)
		if len(s.built) != 1 {
			t.Fatalf("built %d relays", len(s.built))
		}
		c := s.built[0]
		if c.Settings.NodeID != "node-a" || c.Settings.Hub.Workers != 1 || c.Settings.Log.Level != slog.LevelError {
			t.Errorf("settings %+v", c.Settings)
		}
		if !contract.IsReleaseVersion(c.Build.Version) {
			t.Errorf("version %q is no release version", c.Build.Version)
		}
		if c.Log == nil || c.Log.Enabled(slog.LevelWarn) || !c.Log.Enabled(slog.LevelError) {
			t.Error("the log has not the level error")
		}
		if got := s.stderr.String(); got != "" {
			t.Errorf("below its level the log has\n%s", got)
		}
	})
}

// Contract §18: what libraries log ends in the one logger, which drops its text.
func TestServe_TakesOverTheDefaultLoggers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var before bytes.Buffer
		log.SetOutput(&before)
		defer log.SetOutput(os.Stderr)
		s := newRig(t, &fakeRelay{run: func(ctx context.Context) error {
			log.Print("5ec2e7")
			slog.Error("5ec2e7")
			<-ctx.Done()
			return nil
		}})
		s.start()
		s.send(syscall.SIGTERM)
		s.ended(exitClean)
		log.Print("after")
		if got := before.String(); strings.Contains(got, "5ec2e7") || !strings.Contains(got, "after") {
			t.Errorf("what was there before got %q", got)
		}
		s.says(`"source":"log"`, `"source":"slog"`)
		for line := range strings.Lines(s.stderr.String()) {
			if !json.Valid([]byte(line)) || strings.Contains(line, "5ec2e7") {
				t.Errorf("line %s", line)
			}
		}
	})
}

func TestServe_LogFormat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t, &fakeRelay{}, "--log-format=text")
		s.start()
		s.send(syscall.SIGTERM)
		s.ended(exitClean)
		s.says("msg=signal-received reason=sigterm\n")
	})
}

func TestServe_SaysWhatWasNotPrevented(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t, &fakeRelay{})
		s.prepare = func() error {
			return errors.Join(nil, os.NewSyscallError("prctl", syscall.EPERM))
		}
		s.start()
		s.goesOn()
		s.says(`"msg":"dumps-not-prevented","error":"prctl: operation not permitted"`)
		s.send(syscall.SIGTERM)
		s.ended(exitClean)
	})
}
