package rig

import (
	"errors"
	"os"
	"syscall"
	"time"
)

const (
	// startWait bounds the time from the start of the process to the first answer of
	// the operator endpoint.
	startWait = 30 * time.Second
	// stopWait is more than a relay ever takes after SIGTERM (design §8: 10 s), on a
	// busy machine.
	stopWait = 40 * time.Second

	// The events that tell where a relay listens.
	listenerBound = "listener-bound"
	operatorBound = "operator-bound"
)

// Start starts the relay and returns when its operator endpoint answers.
func (r *Rig) Start() {
	r.t.Helper()
	from := r.stderr.len()
	if r.options.anyPort {
		r.bound("")
		r.operator = ""
		r.Upstream.Stall() // until Cloudly knows the origin
	}
	r.launch()
	err := r.poll(startWait, func() error {
		if r.options.anyPort && !r.learnPorts(from) {
			return errors.New("its log does not tell what it has bound")
		}
		_, err := r.fetch("/livez")
		return err
	})
	if err != nil {
		r.t.Fatalf("start the relay: %v", err)
	}
	if !r.options.anyPort {
		return
	}
	if r.enable {
		if err := r.Cloudly.EnableRelay(r.origin); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := r.Upstream.Resume(); err != nil {
		r.t.Fatal(err)
	}
}

// launch starts the process.
func (r *Rig) launch() {
	r.t.Helper()
	if r.process != nil {
		r.t.Fatal("rig: the relay runs already")
	}
	cmd, err := r.command()
	if err != nil {
		r.t.Fatal(err)
	}
	p, err := launch(cmd)
	if err != nil {
		r.t.Fatalf("start the relay: %v", err)
	}
	r.process, r.expected = p, false
}

// learnPorts reads from the log where this start of the relay listens.
func (r *Rig) learnPorts(from int) bool {
	text, _ := r.stderr.bytes()
	for _, line := range readLines(text[from:]) {
		switch line.Message {
		case listenerBound:
			r.bound(line.Text("address"))
		case operatorBound:
			r.operator = line.Text("address")
		}
	}
	return r.ListenAddress() != "" && r.operator != ""
}

// Run starts the relay, waits for it to end by itself, and returns its exit code:
// for starts that must be refused. It is killed, and the test fails, when it is
// still there after DefaultWait.
func (r *Rig) Run() int {
	r.t.Helper()
	r.launch()
	r.expected = true
	if !r.process.await(DefaultWait) {
		r.process.kill()
		r.ended()
		r.t.Fatalf("the relay goes on after %s where it should have ended", DefaultWait)
	}
	return r.ended()
}

// Running reports whether the relay's process is there.
func (r *Rig) Running() bool {
	if r.process == nil {
		return false
	}
	select {
	case <-r.process.ended:
		return false
	default:
		return true
	}
}

// PID returns the id of the relay's process.
func (r *Rig) PID() int {
	r.t.Helper()
	return r.mustRun().cmd.Process.Pid
}

// Signal sends the relay a signal. After one that ends it, the test judges by Wait
// how it ended, or nobody does.
func (r *Rig) Signal(s os.Signal) {
	r.t.Helper()
	p := r.mustRun()
	if s != syscall.SIGHUP {
		r.expected = true
	}
	if err := p.signal(s); err != nil {
		r.t.Fatalf("signal the relay: %v", err)
	}
}

// Stop sends SIGTERM, waits for the relay to end, and returns its exit code.
func (r *Rig) Stop() int {
	r.t.Helper()
	r.mustRun()
	r.expected = true
	// One that has ended this very moment has an exit code as well.
	if err := r.process.signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		r.t.Fatalf("signal the relay: %v", err)
	}
	return r.Wait()
}

// Wait waits for the relay to end and returns its exit code, -1 when a signal
// ended it. One that does not end writes its stacks and is killed, and the test
// fails.
func (r *Rig) Wait() int {
	r.t.Helper()
	p := r.mustRun()
	r.expected = true
	if !p.await(r.options.stopWait) {
		r.dump(p)
		r.ended()
		r.t.Fatalf("the relay has not ended within %s; its stacks stand in the log", r.options.stopWait)
	}
	return r.ended()
}

// dump has a process that does not end write its stacks, and kills it.
func (r *Rig) dump(p *process) {
	from := r.stderr.len()
	p.signal(syscall.SIGQUIT)
	p.await(dumpWait)
	p.kill()
	r.stacks = r.Stderr()[from:]
}

// Kill ends the relay as a crash does, and waits for it.
func (r *Rig) Kill() {
	r.t.Helper()
	r.mustRun()
	r.expected = true
	r.process.kill()
	r.ended()
}

// Restart stops the relay, which must exit with 0, and starts it again with the
// settings of now.
func (r *Rig) Restart() {
	r.t.Helper()
	if code := r.Stop(); code != 0 {
		r.t.Fatalf("stop the relay: exit code %d", code)
	}
	r.Start()
}

func (r *Rig) mustRun() *process {
	r.t.Helper()
	if r.process == nil {
		r.t.Fatal("rig: no relay runs")
	}
	return r.process
}

// ended takes note of a process that has ended and returns its exit code.
func (r *Rig) ended() int {
	r.t.Helper()
	code, err := r.process.exit()
	if err != nil {
		r.t.Errorf("wait for the relay: %v", err)
	}
	r.process = nil
	return code
}

// endedByItself returns the exit code of a relay that nobody has told to end.
func (r *Rig) endedByItself() (int, bool) {
	if r.process == nil || r.expected || r.Running() {
		return 0, false
	}
	code, _ := r.process.exit()
	return code, true
}
