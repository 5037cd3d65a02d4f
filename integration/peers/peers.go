package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// RequireVariable is the environment variable that, set to 1, turns a skip for want of Node or of the packages into
// a failure.
const RequireVariable = "RELAY_REQUIRE_PEERS"

const (
	// awaitTimeout bounds the wait for one event. The slowest scenario takes seconds on two busy cores under the
	// race detector; past this the peer is stuck.
	awaitTimeout = time.Minute
	// lifetime bounds a process whatever its test does.
	lifetime = 5 * time.Minute
	// stopGrace is how long a peer may take to end by itself once its stdin is closed.
	stopGrace = 2 * time.Second
)

// lenient lets a peer report lone surrogates, which JSON.stringify writes as escapes.
var lenient = jsontext.AllowInvalidUTF8(true)

// Process is one running Node peer.
type Process struct {
	tb     testing.TB
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	events *eventLog
	output *tail
	ended  chan struct{} // closed once the process has ended and exit is set
	exit   error
}

// Start runs a program of typedrequest8, such as "server8.mjs", and ends it with the test. It skips or fails the
// test when the machine cannot run it; see RequireVariable.
func Start(tb testing.TB, program string, args ...string) *Process {
	tb.Helper()
	node, dir, err := locate()
	if err != nil {
		if os.Getenv(RequireVariable) == "1" {
			tb.Fatalf("%s=1 but %v", RequireVariable, err)
		}
		tb.Skipf("no Node peers: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lifetime)
	p := &Process{
		tb:     tb,
		cmd:    exec.CommandContext(ctx, node, append([]string{program}, args...)...),
		events: newEventLog(),
		output: &tail{},
		ended:  make(chan struct{}),
	}
	if err := p.start(dir); err != nil {
		cancel()
		tb.Fatalf("start peer %s: %v", program, err)
	}
	tb.Cleanup(func() {
		p.stop()
		cancel()
	})
	return p
}

func (p *Process) start(dir string) error {
	control, events, err := os.Pipe()
	if err != nil {
		return err
	}
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	p.cmd.ExtraFiles = []*os.File{events} // file descriptor 3 of the child
	p.cmd.WaitDelay = stopGrace
	if p.stdin, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	events.Close()
	if err != nil {
		control.Close()
		return err
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.events.readFrom(control)
		control.Close()
	}()
	go func() {
		p.exit = p.cmd.Wait()
		<-read
		close(p.ended)
	}()
	return nil
}

func (p *Process) stop() {
	p.stdin.Close()
	select {
	case <-p.ended:
	case <-time.After(stopGrace):
		p.cmd.Process.Kill()
		<-p.ended
	}
}

// Await returns the first event of that name that has not been awaited yet, decoded into the value that into
// points to; into may be nil. It fails the test when the peer ends first or a minute passes.
func (p *Process) Await(event string, into any) {
	p.tb.Helper()
	timeout := time.NewTimer(awaitTimeout)
	defer timeout.Stop()
	for {
		line, ended, changed := p.events.take(event)
		if line != nil {
			if into == nil {
				return
			}
			if err := json.Unmarshal(line, into, lenient); err != nil {
				p.tb.Fatalf("peer event %s: %v", line, err)
			}
			return
		}
		if ended {
			// It closes its events before all that it wrote has arrived.
			select {
			case <-p.ended:
			case <-time.After(stopGrace):
			}
			p.tb.Fatalf("peer ended before the event %q%s", event, p.report())
		}
		select {
		case <-changed:
		case <-timeout.C:
			p.tb.Fatalf("no event %q in %v%s", event, awaitTimeout, p.report())
		}
	}
}

// URL awaits the event ready of a server and returns the ws:// URL it listens on.
func (p *Process) URL() string {
	p.tb.Helper()
	var ready struct {
		URL string `json:"url"`
	}
	p.Await("ready", &ready)
	return ready.URL
}

// Result awaits the next result of a client, which must be the named scenario's, and returns it as the JSON text
// that the client wrote.
func (p *Process) Result(scenario string) string {
	p.tb.Helper()
	var result struct {
		Scenario string         `json:"scenario"`
		Result   jsontext.Value `json:"result"`
	}
	p.Await("result", &result)
	if result.Scenario != scenario {
		p.tb.Fatalf("result of scenario %q, want %q%s", result.Scenario, scenario, p.report())
	}
	return string(result.Result)
}

// Send gives the peer one command of README.md's table, a value that encodes as a JSON object.
func (p *Process) Send(command any) {
	p.tb.Helper()
	line, err := json.Marshal(command)
	if err != nil {
		p.tb.Fatalf("encode command: %v", err)
	}
	if _, err := p.stdin.Write(append(line, '\n')); err != nil {
		p.tb.Fatalf("send command: %v%s", err, p.report())
	}
}

// Wait waits until the peer has ended by itself and returns its exit code.
func (p *Process) Wait() int {
	p.tb.Helper()
	select {
	case <-p.ended:
		var failed *exec.ExitError
		if p.exit != nil && !errors.As(p.exit, &failed) {
			p.tb.Fatalf("wait for peer: %v%s", p.exit, p.report())
		}
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(awaitTimeout):
		p.tb.Fatalf("peer still runs after %v%s", awaitTimeout, p.report())
		return -1
	}
}

// report is what a failed test shows: the events nobody awaited and the last output.
func (p *Process) report() string {
	return fmt.Sprintf("\npending events:\n%s\noutput:\n%s", p.events.pending(), p.output)
}

// locate finds node and the folder of the installed programs.
func locate() (node, dir string, err error) {
	if node, err = exec.LookPath("node"); err != nil {
		return "", "", fmt.Errorf("node is not installed: %w", err)
	}
	root, err := moduleRoot()
	if err != nil {
		return "", "", err
	}
	dir = filepath.Join(root, "integration", "peers", "typedrequest8")
	// setup writes this file last, so an installation that was cut short does not count.
	if _, err := os.Stat(filepath.Join(dir, "node_modules", ".installed")); err != nil {
		return "", "", fmt.Errorf("packages are not installed, run integration/peers/setup: %w", err)
	}
	return node, dir, nil
}

// moduleRoot walks up to this module's go.mod, past those of nested modules.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(content), "module serve.zone/relay\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod of serve.zone/relay above the working directory")
		}
		dir = parent
	}
}
