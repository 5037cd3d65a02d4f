//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childWait bounds what a test waits for a process of its own on a busy machine.
const childWait = time.Minute

// child is a process that runs the program, with the test as its service manager.
type child struct {
	t       *testing.T
	cmd     *exec.Cmd
	manager *net.UnixConn
	ended   chan error
}

// startChild runs `relay serve` on free ports of the loopback, without a Cloudly.
func startChild(t *testing.T, stderr *os.File, flags ...string) *child {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "relay", append([]string{
		"serve", "--allow-loopback", "--cloudly-url=http://127.0.0.1:1", "--credential-file=" + filepath.Join(t.TempDir(), "credential"),
		"--node-id=node-a", "--listen=127.0.0.1:0", "--operator-listen=127.0.0.1:0",
		"--tls-cert-file=" + filepath.Join(t.TempDir(), "origin.pem"), "--tls-key-file=" + filepath.Join(t.TempDir(), "origin-key.pem"),
	}, flags...)...)
	cmd.Env = []string{"NOTIFY_SOCKET=" + socket, raceEnv + "=" + raceOptions}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, manager: manager, ended: make(chan error, 1)}
	gone := make(chan struct{})
	go func() { defer close(gone); c.ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-gone
		manager.Close()
	})
	return c
}

// tells waits until the service manager is told this state.
func (c *child) tells(want string) {
	c.t.Helper()
	if err := c.manager.SetReadDeadline(time.Now().Add(childWait)); err != nil {
		c.t.Fatal(err)
	}
	state := make([]byte, 256)
	n, err := c.manager.Read(state)
	if err != nil {
		c.t.Fatalf("waiting for %s: %v", want, err)
	}
	if got := string(state[:n]); got != want {
		c.t.Fatalf("the service manager was told %q, want %q", got, want)
	}
}

func (c *child) send(sig syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		c.t.Fatal(err)
	}
}

// ends waits for the end of the process.
func (c *child) ends() syscall.WaitStatus {
	c.t.Helper()
	select {
	case err := <-c.ended:
		if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
			c.t.Fatal(err)
		}
		return c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	case <-time.After(childWait):
		c.t.Fatal("the process has not ended")
		return 0
	}
}

// exits waits for an end of its own accord, with this code.
func (c *child) exits(want int) {
	c.t.Helper()
	if status := c.ends(); !status.Exited() || status.ExitStatus() != want {
		c.t.Errorf("ended with status %#x, want exit code %d", uint32(status), want)
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// The life of a real process: the service manager is told, SIGHUP reloads, SIGTERM
// ends it, no core can be dumped, and standard error has nothing but JSON lines.
func TestProcess_Life(t *testing.T) {
	r, w := pipe(t)
	c := startChild(t, w)
	w.Close()
	c.tells("READY=1")

	limits, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.cmd.Process.Pid), "limits"))
	if err != nil {
		t.Fatal(err)
	}
	core := ""
	for line := range strings.Lines(string(limits)) {
		if name, value, found := strings.Cut(line, "Max core file size"); found && name == "" {
			core = strings.Join(strings.Fields(value), " ")
		}
	}
	if core != "0 0 bytes" {
		t.Errorf("core file size is %q", core)
	}

	c.send(syscall.SIGHUP)
	if err := r.SetReadDeadline(time.Now().Add(childWait)); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(r)
	for told := false; !told; {
		if !lines.Scan() {
			t.Fatalf("the log ended before it told of a reload: %v", lines.Err())
		}
		told = strings.Contains(lines.Text(), `"relay-reloaded"`)
		if !json.Valid(lines.Bytes()) {
			t.Errorf("line %s", lines.Text())
		}
	}
	c.send(syscall.SIGTERM)
	c.tells("STOPPING=1")
	for lines.Scan() {
		if !json.Valid(lines.Bytes()) {
			t.Errorf("line %s", lines.Text())
		}
	}
	c.exits(exitClean)
}

// A standard error that nobody holds open any more ends nothing.
func TestProcess_ClosedStandardError(t *testing.T) {
	r, w := pipe(t)
	c := startChild(t, w, "--log-level=debug")
	w.Close()
	c.tells("READY=1")
	r.Close()
	c.send(syscall.SIGHUP) // is told in a line, which is written before the end
	c.send(syscall.SIGTERM)
	c.tells("STOPPING=1")
	c.exits(exitClean)
}

// While the configuration is still read, SIGHUP ends nothing, and SIGTERM does.
func TestProcess_SignalsBeforeTheStart(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "relay.yaml")
			if err := syscall.Mkfifo(name, 0o600); err != nil {
				t.Fatal(err)
			}
			c := startChild(t, nil, "--config="+name)
			// The open returns when the process has opened the other end.
			file, err := os.OpenFile(name, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			c.send(sig)
			if sig == syscall.SIGTERM {
				if status := c.ends(); !status.Signaled() || status.Signal() != sig {
					t.Errorf("ended with status %#x, want by %v", uint32(status), sig)
				}
				return
			}
			if _, err := file.WriteString("log-level: error\n"); err != nil {
				t.Fatal(err)
			}
			if err := file.Close(); err != nil {
				t.Fatal(err)
			}
			c.tells("READY=1")
			c.send(syscall.SIGINT)
			c.tells("STOPPING=1")
			c.exits(exitClean)
		})
	}
}
