package demo

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/operator/client"
	"serve.zone/relay/simulate"
)

// start starts the relay and waits until it is ready.
func (c *cluster) start(ctx context.Context, e *evidence) error {
	began := time.Now()
	if err := c.startRelay(ctx); err != nil {
		return err
	}
	if _, err := c.cloudly.WaitRegistered(ctx, 0); err != nil {
		return err
	}
	took := time.Since(began)
	d, err := c.relay.console.until(ctx, func(d document) error {
		if s := d.Duties.Cloudly; !s.Registered || s.Origin != c.origin() {
			return mismatch("a registered session to Cloudly", "state %s, origin %q, trouble %q", s.State, s.Origin, s.LastTrouble)
		}
		return nil
	})
	if err != nil {
		return err
	}
	all := c.cloudly.Registrations()
	if len(all) != 1 || all[0].Relay.VPNHub == nil {
		return mismatch("one registration, with a hub", "%d registrations", len(all))
	}
	r, hub := all[0].Relay, all[0].Relay.VPNHub
	e.add(cloudlyName, fmt.Sprintf("accepted relay %s: nodes dial %s:%d, tunnels end at %s:%d (UDP)",
		r.Version, r.ListenAddress, r.ListenPort, hub.Address, hub.QUICPort),
		"version", r.Version, "node", r.NodeID, "sequence", all[0].Sequence)
	e.add(fromStatus, "the session is "+d.Duties.Cloudly.State+"; nodes are told to dial "+d.Duties.Cloudly.Origin,
		"state", d.Duties.Cloudly.State, "origin", d.Duties.Cloudly.Origin)
	var ready client.Readiness
	err = eventually(ctx, settleWait, func() error {
		if ready, err = c.relay.console.Ready(ctx); err != nil {
			return mismatch("a relay that is ready", "%v", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	e.add(fromReady, fmt.Sprintf("ready: %d checks, none against; %.0f ms from the start to the registration",
		len(ready.Findings), took.Seconds()*1000), "ready", ready.Ready, "checks", len(ready.Findings), "startSeconds", seconds(took))
	return nil
}

// stranger is a node that Cloudly has never enrolled.
const stranger = "node-x"

// register lets the nodes register through the relay, and one that may not.
func (c *cluster) register(ctx context.Context, e *evidence) error {
	for _, m := range c.nodes {
		var err error
		if m.pallet, err = c.pallet(m.name, m.credential); err != nil {
			return err
		}
	}
	for _, m := range c.nodes {
		if _, err := m.pallet.WaitRegistered(ctx, 0); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	refused, err := c.refuse(ctx)
	if err != nil {
		return err
	}
	d, err := c.relay.console.until(ctx, func(d document) error {
		if got := d.names(); got != strings.Join(nodeNames, ", ") {
			return mismatch("sessions of "+strings.Join(nodeNames, ", "), "sessions of %s", got)
		}
		return nil
	})
	if err != nil {
		return err
	}
	e.add(fromStatus, "the relay carries the sessions of "+d.names(), "nodes", nodeNames)
	if sockets, nodes := len(c.cloudly.Sockets()), c.cloudly.ConnectedNodes(); sockets != 1 || nodes != len(nodeNames) {
		return mismatch("three nodes over one socket at Cloudly", "%d nodes over %d sockets", nodes, sockets)
	}
	e.add(cloudlyName, "sees three nodes, all of them over the relay's one socket", "nodes", len(nodeNames), "sockets", 1)
	if _, known := c.cloudly.Node(stranger); known {
		return mismatch("a Cloudly that does not know "+stranger, "it does")
	}
	e.add(stranger, fmt.Sprintf("is refused, since nobody enrolled it: %q. Cloudly says so; the relay only carries it", refused), "refused", refused)
	return nil
}

// names lists the nodes whose sessions the relay carries.
func (d document) names() string {
	var names []string
	for _, n := range d.Duties.Forward.Nodes {
		names = append(names, n.ID)
	}
	return strings.Join(names, ", ")
}

// refuse lets a node register that Cloudly does not know, and returns what it is told.
func (c *cluster) refuse(ctx context.Context) (string, error) {
	p, err := c.pallet(stranger, simulate.NodeCredential{Generation: 1, Token: "invented"})
	if err != nil {
		return "", err
	}
	defer p.Close()
	var text string
	err = p.Wait(ctx, "the refusal of "+stranger, func() bool {
		text = lastRefusal(p.Frames(), contract.MethodRegisterPalletRuntimeSession)
		return text != ""
	})
	return text, err
}

// lastRefusal returns the text that a peer's newest request of a method was refused
// with, by its record; "" when it was not.
func lastRefusal(log *simulate.FrameLog, method string) string {
	sent := log.Sent(method)
	if len(sent) == 0 {
		return ""
	}
	answer, _ := log.Answer(sent[len(sent)-1])
	return answer.ErrorText
}

// The messages that step exchange looks at. Both are only carried: the relay reads of
// them whose they are.
const (
	reportMethod = "reportRuntimeAssignmentLogs"
	pushMethod   = "applyRuntimeAssignment"
)

// exchange sends a report up and a push down, and compares what left with what came.
func (c *cluster) exchange(ctx context.Context, e *evidence) error {
	a, b, other := c.nodes[nodeA], c.nodes[nodeB], c.nodes[nodeC]
	if err := c.report(ctx, a); err != nil {
		return err
	}
	up, err := sameBytes(reportMethod, a.pallet.Frames(), c.cloudly.Frames())
	if err != nil {
		return err
	}
	e.add(cloudlyName, fmt.Sprintf("has node-a's report (%s): the %d bytes that node-a sent", reportMethod, up), "bytes", up)
	if err := c.push(ctx, b); err != nil {
		return err
	}
	down, err := sameBytes(pushMethod, c.cloudly.Frames(), b.pallet.Frames())
	if err != nil {
		return err
	}
	e.add(b.name, fmt.Sprintf("has Cloudly's push (%s): the %d bytes that Cloudly sent", pushMethod, down), "bytes", down)

	// A node that speaks in another one's name is stopped at the relay.
	session, _ := b.pallet.Binding()
	before := len(c.cloudly.Frames().Received(reportMethod))
	_, err = other.pallet.SendBody(ctx, reportMethod, append(append([]byte(`{"session":`), session.Received...), '}'))
	name, refused := simulate.Named(err, contract.TransportRefusals())
	if after := len(c.cloudly.Frames().Received(reportMethod)); !refused || after != before {
		return mismatch("a refusal by name of a report under a foreign session", "%s; Cloudly got %d", answered(err), after-before)
	}
	e.add(other.name, fmt.Sprintf("tries to report in node-b's name and is refused: %q. Cloudly hears nothing of it",
		lastRefusal(other.pallet.Frames(), reportMethod)), "refused", name)

	d, err := c.relay.console.status(ctx)
	if err != nil {
		return err
	}
	na, _ := d.node(a.name)
	nb, _ := d.node(b.name)
	e.add(fromStatus, fmt.Sprintf("%s of node-a carried to Cloudly, its registration among them, and %s of Cloudly to node-b",
		count(na.ToCloudly.Requests, "request"), count(nb.FromCloudly.Requests, "request")),
		"toCloudly", na.ToCloudly.Requests, "fromCloudly", nb.FromCloudly.Requests)
	return nil
}

// report has a node report a line of log.
func (c *cluster) report(ctx context.Context, m *member) error {
	m.reports++
	_, err := m.pallet.ReportLogs(ctx, simulate.LogBatch{
		AssignmentID: "assignment-1", AttemptID: "attempt-1", CaptureID: "capture-1", Sequence: m.reports,
		Entries: []contract.Raw{contract.Raw(`{"text":"hello from ` + m.name + `"}`)},
	})
	return err
}

// push has Cloudly push something to a node.
func (c *cluster) push(ctx context.Context, m *member) error {
	_, err := c.cloudly.CallNode(ctx, m.name, pushMethod, []byte(`{"assignment":{"id":"assignment-1"}}`))
	return err
}

// sameBytes compares the newest request of a method in the record of its sender with
// the newest in that of its receiver, and returns the length of both.
func sameBytes(method string, sender, receiver *simulate.FrameLog) (int, error) {
	sent, came := sender.Sent(method), receiver.Received(method)
	if len(sent) == 0 || len(came) == 0 {
		return 0, mismatch("a "+method+" at both ends", "%d sent, %d received", len(sent), len(came))
	}
	from, to := sent[len(sent)-1].Body, came[len(came)-1].Body
	if !bytes.Equal(from, to) {
		return 0, mismatch("the same bytes at both ends", "%d bytes sent, %d other bytes received", len(from), len(to))
	}
	return len(from), nil
}
