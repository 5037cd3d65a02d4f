package startup_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// drainLimit is what a drain may take in all (design §8). An idle one takes at most
// three seconds there; how long it took is logged.
const drainLimit = 10 * time.Second

// wantStops sends SIGTERM and waits for a clean end within the limit.
func wantStops(t *testing.T, r *rig.Rig) {
	t.Helper()
	begun := time.Now()
	r.Signal(syscall.SIGTERM)
	wantEnds(t, r, begun)
}

// wantEnds waits for a clean end within the limit.
func wantEnds(t *testing.T, r *rig.Rig, begun time.Time) {
	t.Helper()
	if code := r.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	took := time.Since(begun)
	t.Logf("ended %s after SIGTERM", took.Round(time.Millisecond))
	if took > drainLimit {
		t.Errorf("the end took %s", took)
	}
}

// R97: at rest SIGTERM closes every node's socket with 1012, then Cloudly's, and the
// process ends with 0. Nothing listens any more.
func TestR97_StopAtRest(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.WaitReady()
	sockets := map[string]*rig.Socket{"a stranger": r.DialNode()}
	for n := range 8 {
		id := fmt.Sprintf("node-%d", n+1)
		sockets[id] = newPuppet(t, r, id).Socket
	}
	begun := time.Now()
	r.Signal(syscall.SIGTERM)
	for who, s := range sockets {
		if code, _ := s.WaitClose(); code != int(typedsocket.CloseRestart) {
			t.Errorf("the socket of %s was closed with %d", who, code)
		}
	}
	wantEnds(t, r, begun)
	if left := r.Cloudly.Sockets(); len(left) != 0 {
		t.Errorf("at cloudly stand %+v", left)
	}
	for _, address := range []string{r.ListenAddress(), r.OperatorAddress()} {
		occupy(t, r, address).Close()
	}
	var told []string
	for _, line := range r.Log("") {
		if slices.Contains([]string{"relay-draining", "listener-drained", "node-sockets-drained", "cloudly-session-lost", "relay-drained"}, line.Message) {
			told = append(told, line.Message)
		}
	}
	if len(told) != 5 || told[0] != "relay-draining" || told[3] != "cloudly-session-lost" || told[4] != "relay-drained" {
		t.Errorf("the log tells of the end as %q", told)
	}
	if last := r.Log("relay-drained"); len(last) != 1 || last[0].Text("outcome") != "finished" {
		t.Errorf("it ended as %+v", last)
	}
}

// R97: what is in flight when SIGTERM comes is finished, in both directions; what is
// new is refused, and no new socket is taken.
func TestR97_InFlightIsFinished(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.WaitReady()
	node, other := newPuppet(t, r, "node-a"), newPuppet(t, r, "node-b")
	pushed, ctx := make(chan error, 1), r.Soon()
	go func() { _, err := r.Cloudly.CallNode(ctx, "node-a", assign, member); pushed <- err }()
	request := node.next()
	r.Cloudly.Script(report, simulate.Late(time.Second))
	id := other.Request(report, other.under(`"entry":1`))
	if err := r.Cloudly.WaitReceived(r.Soon(), report, 1); err != nil {
		t.Fatal(err)
	}

	r.Signal(syscall.SIGTERM)
	r.WaitEvent("relay-draining", 0)
	// Nothing new: neither a socket, nor a request of either side.
	r.Eventually("the end of accepting", func() error {
		conn, err := net.DialTimeout("tcp4", r.ListenAddress(), time.Second)
		if err == nil {
			conn.Close()
			return errors.New("a connection was taken")
		}
		return nil
	})
	if _, err := r.Cloudly.CallNode(r.Soon(), "node-a", assign, member); !isNotReady(err) {
		t.Errorf("a push while it drains: %v", err)
	}
	node.Request(report, node.under(`"entry":2`))
	if refused := node.next(); refused.Error == nil || !strings.HasPrefix(refused.Error.Text, string(contract.RelayNotReady)+": ") {
		t.Errorf("a report while it drains was answered %+v", refused)
	}
	// What was under way ends as it would have.
	if answer := other.next(); answer.Correlation.ID != id || answer.Error != nil {
		t.Errorf("the report that was in flight was answered %+v", answer)
	}
	node.answer(request, `{"taken":true}`)
	if err := <-pushed; err != nil {
		t.Errorf("the push that was in flight: %v", err)
	}
	for name, p := range map[string]*puppet{"node-a": node, "node-b": other} {
		if code, _ := p.WaitClose(); code != int(typedsocket.CloseRestart) {
			t.Errorf("%s's socket was closed with %d", name, code)
		}
	}
	if code := r.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if n := len(r.Cloudly.Frames().Received(report)); n != 1 {
		t.Errorf("cloudly received %d reports", n)
	}
	if last := r.Log("relay-drained"); len(last) != 1 || last[0].Text("outcome") != "finished" {
		t.Errorf("it ended as %+v", last)
	}
}

func isNotReady(err error) bool {
	name, ok := simulate.Named(err, contract.TransportRefusals())
	return ok && name == contract.RelayNotReady
}

// R97: a second signal ends the process at once, with 3, whatever is in flight.
func TestR97_SecondSignal(t *testing.T) {
	t.Parallel()
	for _, second := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(second.String(), func(t *testing.T) {
			t.Parallel()
			r := rig.New(t)
			r.WaitReady()
			node := newPuppet(t, r, "node-a")
			pushed, ctx := make(chan error, 1), r.Soon()
			go func() { _, err := r.Cloudly.CallNode(ctx, "node-a", assign, member); pushed <- err }()
			node.next() // and never answers
			r.Signal(syscall.SIGTERM)
			r.WaitEvent("relay-draining", 0)
			r.Signal(syscall.SIGHUP) // neither ends it nor counts as the second
			r.WaitLogged("signal-received", 2)
			r.Signal(second)
			if code := r.Wait(); code != 3 {
				t.Errorf("exit code %d", code)
			}
			if err := <-pushed; err == nil {
				t.Error("a push was answered by nobody")
			}
		})
	}
}

// R97: SIGHUP ends nothing: neither before Cloudly was reached, nor when it comes in
// crowds, nor under load.
func TestR97_HangupEndsNothing(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Before(func(r *rig.Rig) { r.Upstream.Refuse() }))
	r.WaitCheck("cloudly", "cloudly-session", "failing", "dial-failed")
	r.Signal(syscall.SIGHUP)
	r.WaitEvent("relay-reloaded", 0)
	resume(r)
	afresh(r)
	r.WaitReady()
	node := r.Node("node-a")
	socket, _ := node.Registered()
	for range 50 {
		r.Signal(syscall.SIGHUP)
		if _, err := node.Send(r.Soon(), report, member); err != nil {
			t.Fatalf("a report: %v", err)
		}
	}
	from := r.NextSeq()
	r.Signal(syscall.SIGHUP)
	r.WaitEvent("relay-reloaded", from)
	wantStands(t, r, node, socket)
	if n := r.Cloudly.Opened(); n != 1 {
		t.Errorf("%d sockets", n)
	}
	wantStops(t, r)
}
