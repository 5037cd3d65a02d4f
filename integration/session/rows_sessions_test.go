package session_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/forward"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/listener"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// wantAcceptances checks how many registrations Cloudly accepted, by what they changed.
func wantAcceptances(t *testing.T, r *rig.Rig, want map[string]float64) {
	t.Helper()
	m := r.Metrics()
	for _, outcome := range []string{"first", "replay", "confirmed", "rotation", "newer-socket"} {
		if got, _ := m.Value("relay_forward_accepted_registrations_total", "outcome", outcome); got != want[outcome] {
			t.Errorf("%v registrations count as %s, want %v", got, outcome, want[outcome])
		}
	}
}

// R32: a node replays and rotates on the live socket. The others notice nothing.
func TestR32_ReplayAndRotationOnTheLiveSocket(t *testing.T) {
	r := ready(t)
	a, b := r.Node("node-a"), r.Node("node-b")
	first, other := bound(t, a), bound(t, b)

	if err := a.Register(r.Soon()); err != nil {
		t.Fatalf("replay: %v", err)
	}
	if string(bound(t, a)) != string(first) {
		t.Error("a replay changed the session")
	}
	wantCarried(t, r, a, "node-a")

	if err := a.Rotate(r.Soon(), r.RotateNode("node-a")); err != nil {
		t.Fatalf("rotation: %v", err)
	}
	if string(bound(t, a)) == string(first) {
		t.Fatal("the rotation brought no other session")
	}
	_, err := a.SendBody(r.Soon(), protection, under(first, `"x":"`+withheld+`"`))
	wantRefused(t, "the session before", err, contract.RelayNodeSessionNotCurrent)
	wantCarried(t, r, a, "node-a")

	r.Cloudly.Script(registration, simulate.Refuse("not-today: x", nil))
	if err := a.Register(r.Soon()); err == nil {
		t.Error("a refused registration was taken for accepted")
	}
	wantCarried(t, r, a, "node-a") // a refusal changes nothing held
	wantCarried(t, r, b, "node-b")
	wantWithheld(t, r.Cloudly.Frames())

	var answers []string
	for _, request := range a.Frames().Sent(registration) {
		answer, _ := a.Frames().Answer(request)
		answers = append(answers, string(answer.Body))
	}
	if len(answers) != 4 || answers[1] != answers[0] || answers[2] == answers[0] {
		t.Errorf("registered, replayed, rotated and refused: %q", answers)
	}
	if string(bound(t, b)) != string(other) || a.Dials() != 1 || b.Dials() != 1 || r.Upstream.Accepted() != 1 {
		t.Error("the other node, or a socket, did not stay as it was")
	}
	wantAcceptances(t, r, map[string]float64{"first": 2, "replay": 1, "rotation": 1})
}

// R34: the newer socket of a node takes over; the older one is closed and gets nothing more.
func TestR34_TheNewerSocketTakesOver(t *testing.T) {
	r := ready(t)
	older := registered(t, r, "node-a", 1)
	newer := r.Node("node-a")
	if code, reason := older.WaitClose(); code != int(typedsocket.CloseSuperseded) {
		t.Errorf("the older socket was closed with %d %q", code, reason)
	}
	for range 3 {
		wantCarried(t, r, newer, "node-a")
	}
	if got := len(newer.Frames().Received(assignment)); got != 3 || newer.Dials() != 1 {
		t.Errorf("the newer socket was pushed %d times and dialled %d", got, newer.Dials())
	}
	wantAcceptances(t, r, map[string]float64{"first": 1, "newer-socket": 1})
	nodes := rig.SectionOf[forward.Status](r, forward.Name).Nodes
	if len(nodes) != 1 || nodes[0].ID != "node-a" || nodes[0].Moves != 1 || !nodes[0].Confirmed {
		t.Errorf("the status shows %+v", nodes)
	}
	r.Eventually("the older socket to be gone", func() error {
		if s := rig.SectionOf[listener.Status](r, listener.Name); len(s.Bound) != 1 || s.Unbound != 0 {
			return fmt.Errorf("the status shows %d sockets with a role and %d without", len(s.Bound), s.Unbound)
		}
		return nil
	})
}

// §7.1 rule 4: an acceptance that is not this node's under Cloudly closes the socket, and nothing of it is held.
func TestAnAnswerThatIsNotTheNodesClosesItsSocket(t *testing.T) {
	r := ready(t)
	b := r.Node("node-b")
	session := string(bound(t, b))
	for what, answer := range map[string]string{
		"another node's session":   `{"session":` + session + `,"protocol":{}}`,
		"the session of a onebox":  `{"session":` + strings.NewReplacer("node-b", "node-a", "cloudly", "onebox").Replace(session) + `}`,
		"no session":               `{"protocol":{}}`,
		"a session without a node": `{"session":{"controller":{"kind":"cloudly"},"clusterId":"cluster-a","runtimeNamespace":"default"}}`,
		"no object":                `"accepted"`,
	} {
		h := byHand(t, r)
		r.Cloudly.Script(registration, anyway(answer))
		if got, err := h.ask(registration, registrationOf(r, "node-a", 1)); err == nil {
			t.Errorf("%s: the node was answered %s", what, got)
		}
		if code, reason := h.WaitClose(); code != int(typedsocket.CloseInternal) {
			t.Fatalf("%s: closed with %d %q", what, code, reason)
		}
	}
	wantCarried(t, r, b, "node-b")
	if nodes := rig.SectionOf[forward.Status](r, forward.Name).Nodes; len(nodes) != 1 {
		t.Errorf("the status shows %+v", nodes)
	}
}

// waitDetached waits until the relay has noticed that Cloudly is away.
func waitDetached(r *rig.Rig) {
	r.Eventually("the relay to be without cloudly", func() error {
		if rig.SectionOf[forward.Status](r, forward.Name).Attached {
			return errors.New("it believes in a session")
		}
		return nil
	})
}

// R41: nothing is queued across an outage, and nothing is sent again after one.
func TestR41_NothingIsQueuedAcrossAnOutage(t *testing.T) {
	r := ready(t)
	a := r.Node("node-a")
	r.Cloudly.Script(protection, simulate.Ignore())
	inFlight, ctx := make(chan error, 1), r.Soon()
	go func() {
		_, err := a.Send(ctx, protection, []byte(`{"x":"in flight"}`))
		inFlight <- err
	}()
	if err := r.Cloudly.WaitReceived(r.Soon(), protection, 1); err != nil {
		t.Fatal(err)
	}
	r.Upstream.Outage()
	wantRefused(t, "what was in flight", <-inFlight, contract.RelayNotReady)
	for _, method := range fromNodes {
		_, err := a.SendBody(r.Soon(), method, under(bound(t, a), `"nodeId":"node-a","x":"`+withheld+`"`))
		if wantRefused(t, method+" without cloudly", err, contract.RelayNotReady); t.Failed() {
			t.FailNow() // each of the others would be waited for too
		}
	}
	stranger := byHand(t, r)
	_, err := stranger.ask(registration, strings.Replace(registrationOf(r, "node-b", 1), "palletToken_", withheld, 1))
	wantRefused(t, "a registration without cloudly", err, contract.RelayNotReady)
	if a.Dials() != 1 {
		t.Errorf("the node dialled %d times; its socket is kept during an outage", a.Dials())
	}

	if err := r.Upstream.Resume(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Cloudly.WaitRegistered(r.Soon(), 1); err != nil {
		t.Fatal(err)
	}
	r.Eventually("the node to register again", func() error { return a.Register(r.Soon()) })
	wantCarried(t, r, a, "node-a")
	wantWithheld(t, r.Cloudly.Frames())
	if got := len(r.Cloudly.Frames().Received(protection)); got != 2 {
		t.Errorf("cloudly received %d reports, want the one before the outage and the one after", got)
	}
}

// returnWait is the time within which every node is to be registered again after a return of Cloudly (R42).
const returnWait = 15 * time.Second

// R42: the upstream is cut and comes back; every node registers again, under its unchanged nonce.
func TestR42_NodesRegisterAgainAfterAReturn(t *testing.T) {
	r := ready(t)
	const count = 6
	nodes := r.Nodes(count)
	before := map[string]simulate.NodeState{}
	for i := range nodes {
		id := fmt.Sprintf("node-%d", i+1)
		before[id], _ = r.Cloudly.Node(id)
	}
	r.Upstream.Cut()
	if _, err := r.Cloudly.WaitRegistered(r.Soon(), 1); err != nil {
		t.Fatal(err)
	}
	r.Within(returnWait, "all nodes to be registered again", func() error {
		if got := r.Cloudly.ConnectedNodes(); got != count {
			return fmt.Errorf("%d of %d are", got, count)
		}
		return nil
	})
	for i, node := range nodes {
		id := fmt.Sprintf("node-%d", i+1)
		now, _ := r.Cloudly.Node(id)
		if now.Nonce != before[id].Nonce || now.Nonce != node.Nonce() || string(now.Session) != string(before[id].Session) {
			t.Errorf("%s registered as %+v, before as %+v", id, now, before[id])
		}
		if _, err := node.WaitRegistered(r.Soon(), 0); err != nil {
			t.Fatal(err)
		}
		wantCarried(t, r, node, id)
		if node.Dials() > 2 {
			t.Errorf("%s dialled %d times", id, node.Dials())
		}
	}
	if accepted, standing := r.Upstream.Accepted(), r.Upstream.Standing(); accepted != 2 || standing != 1 {
		t.Errorf("the relay opened %d connections to cloudly and %d stand", accepted, standing)
	}
	if got := rig.SectionOf[forward.Status](r, forward.Name); !got.Attached || len(got.Nodes) != count {
		t.Errorf("the status shows %+v", got)
	}
}
