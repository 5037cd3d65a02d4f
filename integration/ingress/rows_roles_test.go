package ingress_test

import (
	"errors"
	"fmt"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/listener"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// R72: the table is for the connection whose registration Cloudly accepted, and for no
// other: each other one is refused by name, and neither the table nor a hint reaches it.
func TestR72_OnlyTheAcceptedConnectionPullsTheTable(t *testing.T) {
	c := start(t)
	held := c.odd(5, "app.example")
	c.publishes(held)
	a := c.ingress("node-a")
	a.wantTable("the accepted one", held)

	stranger, refused, node := c.byHand(), c.byHand(), c.Node("node-b")
	if _, err := refused.ask(registering, registrationWith("node-b", "no-bearer-of-anybody")); err == nil {
		t.Fatal("another bearer was accepted")
	}
	wantNone := func(what string, h *hand) {
		t.Helper()
		for _, body := range []string{`{"knownRevision":null}`, `{"knownRevision":1}`, `{}`, `{"nodeId":"node-a"}`} {
			h.wantRefusedHere(what, asking, body, notRegistered)
		}
	}
	wantNone("a socket that has not registered", stranger)
	wantNone("an ingress that was refused", refused)
	for _, body := range []string{`{"knownRevision":null}`, `{"session":{"nodeId":"node-b"},"knownRevision":null}`} {
		_, err := node.SendBody(c.Soon(), asking, []byte(body))
		c.wantRefused("a node", err, notRegistered, "")
	}
	// A claim is no registration: the role is not the client's to state.
	wrong, err := stranger.ask(registering, c.registration("node-c")+` `)
	if err != nil {
		t.Fatalf("%s %v", wrong, err)
	}
	stranger.wantTable("as soon as it was accepted", held)

	// Closed, and opened again: nothing of the role is left.
	a.Close(1000, "")
	c.Eventually("the end of the role", func() error {
		if got := speakers(c.status()); fmt.Sprint(got) != "[node-c]" {
			return fmt.Errorf("the status shows ingresses of %q", got)
		}
		return nil
	})
	reopened := c.byHand()
	wantNone("the ingress on a new socket", reopened)
	c.Cloudly.Script(registering, simulate.RefuseIngress(contract.IngressConflict, contract.MinimumIngressRetry))
	if _, err := reopened.ask(registering, c.registration("node-a")); err == nil {
		t.Error("a refusal was taken for an acceptance")
	}
	wantNone("the ingress on a new socket, refused", reopened)

	c.publishes(plainTable(6))
	stranger.wantHint(6)
	for what, h := range map[string]*hand{"the ingress on a new socket": reopened, "an ingress that was refused": refused} {
		wantNone(what, h) // each answer is the next message: no hint came before it
		h.wantNoHint(what)
	}
	if got := len(node.Frames().Received(hinting)); got != 0 {
		t.Errorf("a node received %d hints", got)
	}
	for _, f := range node.Frames().All() {
		c.wantUnquotedFrame("a node", f)
	}
	if got, _ := c.Metrics().Value("relay_ingress_served_tables_total", "outcome", "table"); got != 2 {
		t.Errorf("%v tables were served, want 2", got)
	}
}

// wantUnquotedFrame checks that what a peer received bears no key of a table.
func (c *cluster) wantUnquotedFrame(what string, f simulate.Frame) {
	c.t.Helper()
	m, _ := f.Message()
	if !f.Sent && (m.Method == asking || m.Method == hinting) && !m.Refused {
		c.t.Errorf("%s received %.300s", what, f.Text)
	}
}

// R72: one socket has one role. What belongs to another one is refused by name, and
// nothing of it reaches Cloudly or a node.
func TestR72_OneRoleASocket(t *testing.T) {
	c := start(t)
	held := plainTable(5)
	c.publishes(held)
	a, node := c.ingress("node-a"), c.Node("node-b")
	cloudlyReceived := len(c.Cloudly.Frames().Messages())

	for _, row := range []struct {
		what, method, body string
		name               contract.RefusalName
	}{
		{"a node's report", report, `{"session":{"nodeId":"node-a"}}`, "relay-node-session-not-current"},
		{"a node's registration", contract.MethodRegisterPalletRuntimeSession, `{"nodeId":"node-a"}`, "relay-node-session-not-current"},
		{"a push for a node", assignment, `{"session":{"nodeId":"node-b"}}`, "relay-method-not-forwarded"},
		{"a push of the table", pushing, `{"table":` + plainTable(9) + `}`, cloudlyOnly},
		{"cloudly's question for counters", counting, `{"fromDayUtc":"2026-01-01","toDayUtc":"2026-01-01","limit":1}`, cloudlyOnly},
		{"a hint", hinting, `{"revision":9}`, "relay-method-not-forwarded"},
		{"the relay's own pull", pulling, `{}`, "relay-method-not-forwarded"},
		{"a hold", contract.MethodHoldDNSLeaseRenewals, `{}`, "escrow-cloudly-only"},
		{"what never passes", "openRuntimeAssignmentExec", `{}`, "relay-method-not-forwarded"},
		{"what nobody knows", "somethingNobodyKnows", `{}`, "relay-method-not-forwarded"},
	} {
		_, err := a.ask(row.method, row.body)
		c.wantRefused("an ingress sends "+row.what, err, row.name, "")
	}
	for _, row := range []struct {
		what, method, body string
		name               contract.RefusalName
	}{
		{"an ingress's registration", registering, c.registration("node-b"), notRegistered},
		{"an ingress's registration with a wrong offer", registering, offering("node-b", `{}`), notRegistered},
		{"the ingress's question", asking, `{"knownRevision":null}`, notRegistered},
		{"cloudly's question for counters", counting, `{"fromDayUtc":"2026-01-01","toDayUtc":"2026-01-01","limit":1}`, cloudlyOnly},
		{"a push of the table", pushing, `{"table":` + plainTable(9) + `}`, cloudlyOnly},
	} {
		_, err := node.SendBody(c.Soon(), row.method, []byte(row.body))
		c.wantRefused("a node sends "+row.what, err, row.name, "")
	}
	// Another node's ingress has a socket of its own.
	_, err := a.ask(registering, c.registration("node-b"))
	c.wantOwn("the ingress of another node", err, contract.IngressRegistrationInvalid, "nodeId: ")

	if got := len(c.Cloudly.Frames().Messages()); got != cloudlyReceived {
		t.Errorf("%d messages crossed cloudly's socket", got-cloudlyReceived)
	}
	c.wantSpeakers("node-a")
	a.wantTable("the ingress all the same", held)
	if _, err := node.Send(c.Soon(), report, []byte(`{"of":"node-b"}`)); err != nil {
		t.Errorf("the node all the same: %v", err)
	}
	// Both roles of one node, each on its socket.
	b := c.ingress("node-b")
	b.wantTable("the ingress of the node", held)
	if _, err := c.Cloudly.CallNode(c.Soon(), "node-b", assignment, []byte(`{"for":"node-b"}`)); err != nil {
		t.Errorf("a push for the node: %v", err)
	}
	if s := rig.SectionOf[listener.Status](c.Rig, listener.Name); len(s.Bound) != 3 {
		t.Errorf("the listener shows %+v", s.Bound)
	}
}

// R72: the newer accepted registration of a node takes the role, and the older socket is
// closed. One that is refused, and one of another node, takes nothing.
func TestR72_TheNewerSocketTakesTheRole(t *testing.T) {
	c := start(t)
	held := plainTable(5)
	c.publishes(held)
	older, b := c.ingress("node-a"), c.ingress("node-b")

	failed := c.byHand()
	if _, err := failed.ask(registering, registrationWith("node-a", "no-bearer-of-anybody")); err == nil {
		t.Fatal("another bearer was accepted")
	}
	failed.wantRefusedHere("a newer socket that was refused", asking, `{"knownRevision":null}`, notRegistered)
	older.wantTable("after a newer one was refused", held)

	newer := c.ingress("node-a")
	if code, reason := older.WaitClose(); code != int(typedsocket.CloseSuperseded) {
		t.Errorf("the older socket was closed with %d %q", code, reason)
	}
	newer.wantTable("the newer one", held)
	b.wantTable("another node's", held)
	c.publishes(plainTable(6))
	newer.wantHint(6)
	b.wantHint(6)
	c.wantSpeakers("node-a", "node-b")

	// Registered again on its own socket, it stays what it is.
	if _, err := newer.ask(registering, c.registration("node-a")); err != nil {
		t.Error(err)
	}
	newer.wantTable("registered again", plainTable(6))
	// And when Cloudly refuses that, the role goes on: the one before was accepted.
	c.Cloudly.Script(registering, simulate.RefuseIngress(contract.IngressConflict, contract.MinimumIngressRetry))
	if _, err := newer.ask(registering, c.registration("node-a")); err == nil {
		t.Error("a refusal was taken for an acceptance")
	}
	newer.wantTable("refused again", plainTable(6))
	for how, want := range map[string]float64{"first": 2, "newer-socket": 1, "again": 1} {
		if got := c.counted("relay_ingress_accepted_registrations_total", "outcome", how); got != want {
			t.Errorf("%v acceptances are counted as %s, want %v", got, how, want)
		}
	}
	if n := len(c.Cloudly.Frames().Received(registering)); n != 6 {
		t.Errorf("cloudly received %d registrations", n)
	}
}

// R72: an acceptance that Cloudly spells wrongly, or that comes when its socket has ended,
// makes nobody the ingress.
func TestR72_AnAcceptanceThatHoldsNothing(t *testing.T) {
	c := start(t)
	c.publishes(plainTable(5))
	h := c.byHand()
	for _, answer := range []string{
		`{}`, `{"accepted":false,"revision":5,"protocol":` + cloudlyOffer + `}`, `{"accepted":"true","revision":5,"protocol":` + cloudlyOffer + `}`,
		`{"accepted":true,"revision":0,"protocol":` + cloudlyOffer + `}`, `{"accepted":true,"protocol":` + cloudlyOffer + `}`, `{"accepted":true,"revision":null}`,
		`{"accepted":true,"revision":null,"protocol":{"interfacesVersion":"32","minimumPeerVersion":"32.0.0"}}`, `[]`, `null`,
	} {
		c.Cloudly.Script(registering, anyway(answer))
		if got, err := h.ask(registering, c.registration("node-a")); err == nil {
			t.Errorf("cloudly answers %s: the ingress was answered %s", answer, got)
		} else if remote, ok := errors.AsType[*typedsocket.RemoteError](err); !ok || string(remote.Data) != `{}` {
			t.Errorf("cloudly answers %s: the ingress was refused by name, with %q %s", answer, remote.Text, remote.Data)
		}
		h.wantRefusedHere("cloudly answers "+answer, asking, `{"knownRevision":null}`, notRegistered)
	}
	c.Cloudly.Script(registering, simulate.Swallow())
	h.Request(registering, c.registration("node-a"))
	if err := c.Cloudly.WaitReceived(c.Soon(), registering, 10); err != nil {
		t.Fatal(err)
	}
	h.Cut()
	c.Eventually("the end of the registration", func() error {
		if got := c.status().InFlight.Registrations; got != 0 {
			return fmt.Errorf("%d are in flight", got)
		}
		return nil
	})
	c.wantSpeakers()
}
