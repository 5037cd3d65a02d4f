package netns_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"serve.zone/relay/hub"
	"serve.zone/relay/integration/rig"
)

// tunnelInterface is what the interface of a member's tunnel is called.
const tunnelInterface = "relay0"

// member is a node of the cluster: a namespace in which `relay node` runs.
type member struct {
	c        *cluster
	n        int
	name     string
	key      string // as files hold it
	file     string // of the credential
	space    *space
	router   *space // between it and the hub, nil for none
	workload netip.Addr
	dials    netip.AddrPort // the hub, or what is in front of it
	expires  time.Time

	process *program
}

// writeCredential puts what the member knows of the hub into its file, at once.
func (m *member) writeCredential(authority string) {
	m.c.t.Helper()
	text := fmt.Sprintf("hub: %s\nhub-public-key: %s\nauthority-id: %s\nprivate-key: %s\nexpires-at: %d\n",
		m.dials, m.c.hubKey, authority, m.key, m.expires.UnixMilli())
	if err := os.WriteFile(m.file+".new", []byte(text), 0o600); err != nil {
		m.c.t.Fatal(err)
	}
	if err := os.Rename(m.file+".new", m.file); err != nil {
		m.c.t.Fatal(err)
	}
}

// run starts the member's `relay node`. Unless the test ends it, it is ended behind the
// test as SIGTERM does it.
func (m *member) run() {
	m.c.t.Helper()
	m.file = filepath.Join(m.c.t.TempDir(), "credential.yaml")
	m.writeCredential(authority)
	m.process = m.space.start("", rig.Program(m.c.t), "node",
		"--credential-file="+m.file, "--interface="+tunnelInterface,
		"--address="+m.workload.String(), "--route="+workloads)
	process := m.process // one may follow
	m.c.t.Cleanup(func() {
		if m.c.t.Failed() {
			m.c.t.Logf("%s says\n%s", m.name, process.output())
		} else if process == m.process && process.running() == nil {
			m.leave()
		}
	})
}

// joined waits until the member's tunnel is up at both ends.
func (m *member) joined() {
	m.c.t.Helper()
	m.c.Eventually(m.name+" joins", func() error {
		if err := m.process.running(); err != nil {
			return err
		}
		shown, err := m.shown()
		switch {
		case err != nil:
			return err
		case shown.Session == nil:
			return errors.New("the hub has no session of it")
		case len(m.says("node-tunnel-up")) == 0:
			return errors.New("it does not say so")
		}
		return nil
	})
}

// leave ends the member's process by SIGTERM, which must end it well.
func (m *member) leave() {
	m.c.t.Helper()
	if err := m.process.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		m.c.t.Errorf("signal %s: %v", m.name, err)
	}
	if err := m.process.wait(testLimit); err != nil {
		m.c.t.Errorf("%s ended: %v\n%s", m.name, err, m.process.output())
	}
	if out := m.process.output(); strings.Contains(out, m.key) || strings.Contains(out, "DATA RACE") {
		m.c.t.Errorf("%s says\n%s", m.name, out)
	}
}

// line is a line of the log of `relay node`.
type line struct {
	Message string `json:"msg"`
	Reason  string `json:"reason"`
	State   string `json:"state"`
	Expires string `json:"expiresAt"`
	Count   int64  `json:"count"`
	Attempt int64  `json:"attempt"`
}

// says returns the lines of the member's log with a message.
func (m *member) says(message string) []line {
	m.c.t.Helper()
	var found []line
	for text := range strings.Lines(m.process.stderr.String()) {
		var l line
		if !strings.HasSuffix(text, "\n") {
			break // the rest is still to come
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			m.c.t.Errorf("%s says %q: %v", m.name, text, err)
		}
		if l.Message == message {
			found = append(found, l)
		}
	}
	return found
}

// droppedNothing ends the member, which must say that it has dropped no packet and refused
// no datagram, but for some reasons.
func (m *member) droppedNothing(but ...string) {
	m.c.t.Helper()
	m.leave()
	if len(m.says("node-sent")) != 1 {
		m.c.t.Errorf("%s counts nothing:\n%s", m.name, m.process.output())
	}
	for _, l := range append(m.says("node-dropped"), m.says("node-refused")...) {
		if !slices.Contains(but, l.Reason) {
			m.c.t.Errorf("%s has %+v", m.name, l)
		}
	}
}

// shown is what the hub's status says of a member.
func (m *member) shown() (hub.Membership, error) {
	m.c.t.Helper()
	for _, shown := range rig.SectionOf[hub.Status](m.c.Rig, hub.Name).Members {
		if shown.Node == m.name {
			return shown, nil
		}
	}
	return hub.Membership{}, fmt.Errorf("the hub shows no %s", m.name)
}

// session is what the hub shows of a member that must be connected.
func (m *member) session() hub.Session {
	m.c.t.Helper()
	shown, err := m.shown()
	if err == nil && shown.Session == nil {
		err = fmt.Errorf("%s has no session", m.name)
	}
	if err != nil {
		m.c.t.Fatal(err)
	}
	return *shown.Session
}
