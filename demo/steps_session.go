package demo

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

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
	return d.carried(e, a.name, b.name)
}

// carried shows what the relay has carried in step exchange: of one node its registration
// and its report, and a push to the other one.
func (d document) carried(e *evidence, reporter, pushed string) error {
	r, _ := d.node(reporter)
	p, _ := d.node(pushed)
	up, down := r.ToCloudly.Requests, p.FromCloudly.Requests
	if up < 2 || down < 1 {
		return mismatch(fmt.Sprintf("at least 2 requests of %s carried to Cloudly, and 1 of Cloudly to %s", reporter, pushed), "%d and %d", up, down)
	}
	e.add(fromStatus, fmt.Sprintf("%s of %s carried to Cloudly, its registration among them, and %s of Cloudly to %s",
		count(up, "request"), reporter, count(down, "request"), pushed), "toCloudly", up, "fromCloudly", down)
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
