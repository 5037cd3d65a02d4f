//go:build linux

package hub_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"serve.zone/relay/integration/rig"
)

// output keeps what a process writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// program is the built relay, run by another verb than serve.
type program struct {
	c              *cluster
	cmd            *exec.Cmd
	stdout, stderr output
	started, ended chan error
}

// run starts the relay with a verb. What still runs at the end of the test is killed.
func (c *cluster) run(args ...string) *program {
	c.t.Helper()
	p := &program{c: c, started: make(chan error, 1), ended: make(chan error, 1)}
	p.cmd = exec.Command(rig.Program(c.t), args...)
	p.cmd.Env = []string{"PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=50"}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	// It dies with the test's process, however that ends. The kernel takes the end of the
	// thread that started it for that.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		p.started <- err
		if err == nil {
			p.ended <- p.cmd.Wait()
		}
	}()
	if err := <-p.started; err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-gone
		if c.t.Failed() {
			c.t.Logf("relay %s:\n%s%s", args[0], p.stdout.String(), p.stderr.String())
		}
		// A private key may stand in no output.
		for owner, key := range c.keys {
			if strings.Contains(p.stdout.String()+p.stderr.String(), key.Secret()[:12]) {
				c.t.Errorf("relay %s has shown the key of %s", args[0], owner)
			}
		}
	})
	return p
}

// exits waits for the end of the program, with this exit code.
func (p *program) exits(want int) {
	p.c.t.Helper()
	select {
	case err := <-p.ended:
		if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
			p.c.t.Fatal(err)
		}
		if got := p.cmd.ProcessState.ExitCode(); got != want {
			p.c.t.Fatalf("relay %v ended with %d, want %d", p.cmd.Args[1:], got, want)
		}
	case <-time.After(rig.DefaultWait):
		p.c.t.Fatalf("relay %s has not ended", p.cmd.Args[1])
	}
}

// signal sends the program a signal.
func (p *program) signal(s os.Signal) {
	p.c.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.c.t.Fatal(err)
	}
}

// lines are those of the program's log that have a message.
func (p *program) lines(message string) []map[string]any {
	var found []map[string]any
	for line := range strings.Lines(p.stderr.String()) {
		var fields map[string]any
		if json.Unmarshal([]byte(line), &fields) == nil && fields["msg"] == message {
			found = append(found, fields)
		}
	}
	return found
}

// logged waits until the program's log has n lines with a message, and returns the last.
func (p *program) logged(message string, n int) map[string]any {
	p.c.t.Helper()
	var found []map[string]any
	p.c.Eventually(message, func() error {
		if found = p.lines(message); len(found) < n {
			return fmt.Errorf("it stands in the log %d times", len(found))
		}
		return nil
	})
	return found[len(found)-1]
}

// credential writes the file of a node's credential, in place at once, and returns its
// name. change replaces texts in it.
func (c *cluster) credential(folder string, n int, expires time.Time, change ...string) string {
	c.t.Helper()
	hub := c.facts()
	text := fmt.Sprintf("hub: %s:%d\nhub-public-key: %s\nauthority-id: %s\nprivate-key: %s\nexpires-at: %d\n",
		hub.Address, hub.QUICPort, hub.PublicKey, authority, c.keys[name(n)].Secret(), expires.UnixMilli())
	file := filepath.Join(folder, name(n)+".yaml")
	draft := file + ".draft"
	if err := os.WriteFile(draft, []byte(strings.NewReplacer(change...).Replace(text)), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(draft, file); err != nil {
		c.t.Fatal(err)
	}
	return file
}

// connected waits until the hub has so many members with a session.
func (c *cluster) connected(want int) {
	c.t.Helper()
	c.Eventually("members that are connected", func() error {
		if n, _ := c.Metrics().Value("relay_hub_live_sessions"); int(n) != want {
			return fmt.Errorf("there are %v", n)
		}
		return nil
	})
}
