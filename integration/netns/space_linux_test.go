package netns_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// testLimit bounds every wait that has no limit of its own. It is no expectation: a test
// that reaches it has failed.
const testLimit = 30 * time.Second

// space is a network namespace. It has no name anywhere: it lasts as long as the descriptor,
// or a process in it.
type space struct {
	t    testing.TB
	file *os.File
}

// home is the namespace that this process was started in.
func home(t testing.TB) *space {
	t.Helper()
	s := &space{t: t}
	s.hold(func() error { return nil })
	return s
}

// newSpace makes a namespace, whose loopback interface is up. It has no IPv6, of which the
// kernel sends packets by itself.
func newSpace(t testing.TB) *space {
	t.Helper()
	s := &space{t: t}
	s.hold(func() error { return unix.Unshare(unix.CLONE_NEWNET) })
	err := s.inside(func() error {
		return os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without it
		t.Fatal(err)
	}
	s.ip("link set lo up")
	return s
}

// hold opens the namespace that a thread is in after it has done something.
func (s *space) hold(first func() error) {
	s.t.Helper()
	err := onThread(func() (err error) {
		if err = first(); err == nil {
			s.file, err = os.Open("/proc/thread-self/ns/net")
		}
		return err
	})
	if err != nil {
		s.t.Fatalf("hold a network namespace: %v", err)
	}
	s.t.Cleanup(func() { s.file.Close() })
}

// onThread runs f on a thread that ends with it, so that what f does to the thread concerns
// nobody else.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked
		done <- f()
	}()
	return <-done
}

// inside runs f on a thread that is in the namespace.
func (s *space) inside(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(s.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter a network namespace: %w", err)
		}
		return f()
	})
}

// set sets a variable of the namespace below /proc/sys/net/ipv4.
func (s *space) set(name, value string) {
	s.t.Helper()
	err := s.inside(func() error { return os.WriteFile("/proc/sys/net/ipv4/"+name, []byte(value), 0) })
	if err != nil {
		s.t.Fatal(err)
	}
}

// ip runs commands of ip(8), one a line.
func (s *space) ip(commands string) {
	s.t.Helper()
	s.must(commands, "ip", "-batch", "-")
}

// nft runs commands of nft(8), one a line.
func (s *space) nft(commands string) {
	s.t.Helper()
	s.must(commands, "nft", "-f", "-")
}

// must runs a program that has to succeed, and returns its output.
func (s *space) must(stdin, name string, arguments ...string) string {
	s.t.Helper()
	p := s.start(stdin, name, arguments...)
	if err := p.wait(testLimit); err != nil {
		s.t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(arguments, " "), err, stdin, p.output())
	}
	return p.output()
}

// program is a program that runs in a namespace, or has.
type program struct {
	name   string
	cmd    *exec.Cmd
	ended  chan struct{}
	err    error // once ended
	stdout lines
	stderr lines
}

// start starts a program, which ends with the test at the latest.
func (s *space) start(stdin, name string, arguments ...string) *program {
	s.t.Helper()
	p := &program{name: name, cmd: exec.Command(name, arguments...), ended: make(chan struct{})}
	p.cmd.Stdin = strings.NewReader(stdin)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.WaitDelay = time.Second
	// The race detector would sleep a second before every exit.
	p.cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=50")
	started := make(chan error, 1)
	go func() {
		err := s.inside(func() error {
			err := p.cmd.Start()
			started <- err
			if err == nil {
				// The thread stays until the program has ended: the kernel takes its end for
				// that of the parent (Pdeathsig).
				p.err = p.cmd.Wait()
				close(p.ended)
			}
			return nil
		})
		if err != nil {
			started <- err
		}
	}()
	if err := <-started; err != nil {
		s.t.Fatalf("start %s: %v", name, err)
	}
	s.t.Cleanup(p.stop)
	return p
}

// wait waits until the program has ended, and returns its error. What does not end is
// killed.
func (p *program) wait(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	select {
	case <-p.ended:
		return p.err
	case <-ctx.Done():
		p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("killed after %v", limit)
	}
}

// stop ends a program that runs until it is stopped.
func (p *program) stop() {
	p.cmd.Process.Kill()
	<-p.ended
}

// running reports an error where the program has ended.
func (p *program) running() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s has ended: %w\n%s", p.name, p.err, p.output())
	default:
		return nil
	}
}

// output is what the program has written so far.
func (p *program) output() string { return p.stdout.String() + p.stderr.String() }

// lines keeps what is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
