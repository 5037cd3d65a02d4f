package rig

import (
	"bytes"
	"syscall"
)

// end is what every test ends with.
func (r *Rig) end() {
	r.t.Helper()
	if !r.t.Failed() && r.Running() && !r.expected {
		r.AssertNoMarkers()
	}
	for _, s := range r.sockets {
		s.conn.CloseNow()
	}
	for _, p := range r.nodes {
		p.Close()
	}
	r.endProcess()
	if r.Upstream != nil {
		r.Upstream.Close()
	}
	if r.Cloudly != nil {
		if !r.t.Failed() {
			r.audit()
		}
		r.Cloudly.Close()
	}
	for _, p := range r.ports {
		p.release()
	}
	if r.t.Failed() {
		log, _ := bytes.CutSuffix(r.Stderr(), r.stacks)
		r.t.Logf("the end of the relay's output:\n%s%s%s", tail(r.Stdout()), tail(log), r.stacks)
	}
}

// endProcess ends the relay, which must exit with 0, or at once when the test has
// failed already.
func (r *Rig) endProcess() {
	r.t.Helper()
	p := r.process
	if p == nil {
		return
	}
	if code, ended := r.endedByItself(); ended {
		r.t.Errorf("the relay has ended by itself with exit code %d", code)
		return
	}
	if r.t.Failed() {
		p.kill()
		return
	}
	told := r.expected // by the test: a second signal would cut it short
	if !told {
		p.signal(syscall.SIGTERM)
	}
	if !p.await(r.options.stopWait) {
		r.dump(p)
		r.t.Errorf("the relay has not ended within %s of SIGTERM; its stacks stand in the log", r.options.stopWait)
		return
	}
	if code, err := p.exit(); !told && (code != 0 || err != nil) {
		r.t.Errorf("the relay exited with code %d after SIGTERM: %v", code, err)
	}
}

// audit judges what is left when the relay has ended.
func (r *Rig) audit() {
	r.t.Helper()
	for _, line := range crashes(r.Output()) {
		r.t.Errorf("the relay wrote %q", line)
	}
	r.report(r.leaksOfOutput())
	if !r.options.tolerant {
		r.AssertNoViolations()
	}
}
