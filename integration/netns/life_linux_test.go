package netns_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// R66: a successor credential is taken out of the node's file while the tunnel goes on; one
// that is none is refused by name, and changes nothing.
func TestR66_SuccessorCredentialUnderAFlow(t *testing.T) {
	if !apart(t) {
		return
	}
	c, a, b := pair(t, direct(ethernet), direct(ethernet))
	a.serve()
	const count = 7 * datagramRate // it takes the node up to 5 s to look
	flow := b.iperf(a, datagrams(count)...)
	a.expires = a.expires.Add(time.Hour)
	a.writeCredential(authority)
	taken := a.waitSays("node-credential-taken", 1)
	if at, err := time.Parse(time.RFC3339, taken[0].Expires); err != nil || !at.Equal(a.expires) {
		t.Errorf("it expires %q, want %v", taken[0].Expires, a.expires)
	}
	c.network.Nodes[0].ExpiresAt = a.expires.UnixMilli()
	c.push()
	a.writeCredential("authority-2")
	if err := a.process.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if refused := a.waitSays("node-credential-refused", 1); refused[0].Reason != "no-successor" || refused[0].State != "another-authority" {
		t.Errorf("it says %+v", refused)
	}
	if err := flow.running(); err != nil {
		t.Errorf("the flow is over too early: %v", err)
	}
	flow.allArrived(count)
	a.ping(b, 5, fullEcho)
	c.sameSession()
	c.nothingDropped()
	a.droppedNothing()
	if all := a.says("node-tunnels"); len(all) != 1 || all[0].Count != 1 || all[0].Attempt != 1 {
		t.Errorf("it has had tunnels and attempts: %+v", all)
	}
}

// At the end of a node its interface is gone, and with it what led there; the hub knows at
// once. A new one with the same key takes its place.
func TestNodeLeavesNothing(t *testing.T) {
	if !apart(t) {
		return
	}
	c, a, b := pair(t, direct(ethernet), direct(ethernet))
	b.ping(a, 5, fullEcho)
	before := a.space.state()
	for _, part := range []string{tunnelInterface, workloads, controlPrefix, a.workload.String()} {
		if !strings.Contains(before, part) {
			t.Errorf("%s is not in\n%s", part, before)
		}
	}
	a.leave()
	if after := a.space.state(); strings.Contains(after, tunnelInterface) || strings.Contains(after, "10.9") {
		t.Errorf("it has left\n%s", after)
	}
	c.Eventually("the hub knows", func() error {
		if shown, err := a.shown(); err != nil || shown.Session != nil {
			return fmt.Errorf("it shows %+v, %v", shown.Session, err)
		}
		return nil
	})
	if n, _ := c.Metrics().Value("relay_hub_ended_sessions_total", "reason", "closed-by-node"); n != 1 {
		t.Errorf("%v sessions were ended by the node", n)
	}
	a.run()
	a.joined()
	b.ping(a, 5, fullEcho)
}

// state is what a namespace has of interfaces, addresses and routes.
func (s *space) state() string {
	s.t.Helper()
	return s.must("", "ip", "-4", "addr") + s.must("", "ip", "link") + s.must("", "ip", "-4", "route", "show", "table", "all")
}

// B067: nodes come back by themselves to a relay that was stopped, and to one that crashed
// while they sent, when it is there again. Their interfaces stay.
func TestB067_NodesReturnToTheRelay(t *testing.T) {
	if !apart(t) {
		return
	}
	c, a, b := pair(t, direct(ethernet), direct(ethernet))
	before := a.space.state()
	asking, answering := a.asks(b), b.asks(a) // so that a node hears of the crash at once
	for i, again := range []struct {
		reason string
		stop   func()
	}{
		{"draining", func() {
			if code := c.Stop(); code != 0 {
				t.Errorf("the relay ended with %d", code)
			}
		}},
		{"reset", c.Kill},
	} {
		again.stop()
		c.Start()
		for _, m := range c.members {
			m.waitSays("node-tunnel-up", i+2)
			if lost := m.waitSays("node-tunnel-lost", i+1); lost[i].Reason != again.reason {
				t.Errorf("%s lost its tunnels: %+v, want %s", m.name, lost, again.reason)
			}
		}
		a.ping(b, 5, fullEcho)
		b.ping(a, 5, fullEcho)
	}
	asking.stop()
	answering.stop()
	if after := a.space.state(); after != before { // with the interface's number
		t.Errorf("the interface has become another one:\n%s, before\n%s", after, before)
	}
}

// waitSays waits until the member's log has at least n lines with a message.
func (m *member) waitSays(message string, n int) (found []line) {
	m.c.t.Helper()
	m.c.Eventually(m.name+" says "+message, func() error {
		if found = m.says(message); len(found) < n {
			return errors.Join(m.process.running(), fmt.Errorf("%d of %d lines are there", len(found), n))
		}
		return nil
	})
	return found
}
