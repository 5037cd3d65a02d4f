package startup_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/appliance"
	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/forward"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/listener"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// closeWait is what is waited for the end of node sockets after custody has ended. The
// contract gives the relay one second; this machine may be busy with other tests.
const closeWait = 5 * time.Second

// holding is a relay that holds two nodes: one that dials again by itself, and one
// whose every word is the test's.
type holding struct {
	*rig.Rig
	t      *testing.T
	node   *simulate.Pallet
	socket int // of node, before custody ended
	puppet *puppet
	asked  time.Time // when the relay was made to ask
}

func hold(t *testing.T, options ...rig.Option) *holding {
	t.Helper()
	h := &holding{Rig: rig.New(t, options...), t: t}
	waitConfigured(h.Rig)
	h.node = h.Node("node-a")
	h.socket, _ = h.node.Registered()
	h.puppet = newPuppet(t, h.Rig, "node-b")
	return h
}

// again makes the relay register once more, on its socket, because the configuration
// states another origin.
func (h *holding) again() {
	h.t.Helper()
	h.asked = time.Now()
	h.Configure(documentOf(blockOf(elsewhere)))
}

// wantEnded waits for the end of custody by this name, and holds it to everything that
// the row asks for.
func (h *holding) wantEnded(name contract.RefusalName) {
	h.t.Helper()
	h.wantCut()
	h.Within(closeWait, "the end of node-a's socket", func() error {
		if socket, ok := h.node.Registered(); ok && socket == h.socket {
			return errors.New("it stands")
		}
		return nil
	})
	h.WaitCheck(cloudly.Name, cloudly.CheckRefusal, "failing", string(name))
	if page := h.Get("/readyz"); page.Code != 503 || !strings.Contains(string(page.Body), string(name)) {
		h.t.Errorf("/readyz answers %d %s", page.Code, page.Body)
	}
	if told := h.WaitEvent(string(cloudly.EventCustodyEnded), 0); told.Text("refusal") != string(name) {
		h.t.Errorf("the event says %v", told.Fields)
	}
	h.wantNothingHeld()
	// Node-a dials again, and hears that it has to wait.
	h.Eventually("the refusal of node-a's next registration", func() error {
		for _, m := range h.node.Frames().Messages() {
			if !m.Request && m.Refused && strings.HasPrefix(m.ErrorText, string(contract.RelayNotReady)+": ") {
				return nil
			}
		}
		return errors.New("it has heard none")
	})
	if session := h.session(); session.LastRefusal == nil || session.LastRefusal.Name != string(name) || !session.LastRefusal.Standing {
		h.t.Errorf("/status says of the refusal %+v", session.LastRefusal)
	}
}

// wantCut waits for the end of node-b's socket, which says why.
func (h *holding) wantCut() {
	h.t.Helper()
	if code, _ := h.puppet.WaitClose(); code != int(typedsocket.CloseCustodyEnded) {
		h.t.Errorf("node-b's socket was closed with %d", code)
	}
	if took := time.Since(h.asked); took > closeWait {
		h.t.Errorf("node-b's socket was closed after %s", took)
	}
}

// wantNothingHeld reads the status for what is held for the nodes.
func (h *holding) wantNothingHeld() {
	h.t.Helper()
	h.Eventually("a status that shows nothing held", func() error {
		nodes := rig.SectionOf[forward.Status](h.Rig, forward.Name)
		sockets := rig.SectionOf[listener.Status](h.Rig, listener.Name)
		origin := rig.SectionOf[appliance.OriginStatus](h.Rig, "origin")
		session := h.session()
		switch {
		case len(nodes.Nodes) > 0 || nodes.Attached || nodes.InFlight != (forward.InFlight{}):
			return fmt.Errorf("nodes: %+v", nodes)
		case len(sockets.Bound) > 0:
			return fmt.Errorf("sockets: %+v", sockets.Bound)
		case origin.Origin != "" || session.Origin != "":
			return fmt.Errorf("origins %q and %q", origin.Origin, session.Origin)
		case session.Credential != nil || session.AcceptedRegistration != nil || session.Registered:
			return fmt.Errorf("session: %+v", session)
		}
		return nil
	})
}

func (h *holding) session() cloudly.Status {
	h.t.Helper()
	return rig.SectionOf[cloudly.Status](h.Rig, cloudly.Name)
}

// wantHeldBack holds the next attempt to the 300 s after the refusal, as the relay
// itself tells them.
func (h *holding) wantHeldBack() {
	h.t.Helper()
	session := h.session()
	if session.LastRefusal == nil {
		h.t.Fatal("no refusal is shown")
	}
	const slack = 30 * time.Second // for a machine that stood still between the two clock readings
	if wait := session.NextAttemptAt.Sub(session.LastRefusal.At); (wait - contract.UndispatchedRetryInterval).Abs() > slack {
		h.t.Errorf("the next attempt is said to come %s after the refusal", wait)
	}
}

// wantPushesRefused sends a push for node-a on the socket that stays.
func (h *holding) wantPushesRefused() {
	h.t.Helper()
	binding, ok := h.Cloudly.Node("node-a")
	if !ok {
		h.t.Fatal("node-a is not enrolled")
	}
	_, err := h.Cloudly.CallSocket(h.Soon(), 1, assign, []byte(`{"session":`+string(binding.Session)+`}`))
	if name, ok := simulate.Named(err, contract.TransportRefusals()); !ok || name != contract.RelayNotReady {
		h.t.Errorf("a push for a node: %v", err)
	}
}

// wantBack waits until the relay carries nodes again, and none but those that have
// registered anew.
func (h *holding) wantBack(sequences ...int64) {
	h.t.Helper()
	waitSequences(h.t, h.Rig, sequences...)
	h.WaitReady()
	if _, err := h.node.WaitRegistered(h.Soon(), h.socket); err != nil {
		h.t.Fatal(err)
	}
	if _, err := h.node.Send(h.Soon(), report, member); err != nil {
		h.t.Errorf("a report: %v", err)
	}
	nodes := rig.SectionOf[forward.Status](h.Rig, forward.Name).Nodes
	if len(nodes) != 1 || nodes[0].ID != "node-a" {
		h.t.Errorf("held are %+v, want node-a alone", nodes)
	}
	if session := h.session(); session.LastRefusal == nil || session.LastRefusal.Standing {
		h.t.Errorf("the refusal still stands: %+v", session.LastRefusal)
	}
}

// accepted is an acceptance as Cloudly would write it.
func (h *holding) accepted() []byte {
	last := h.Cloudly.Registrations()[0]
	return contract.RelayRegistrationAnswer{
		Origin: h.Origin(), Protocol: simulate.DefaultOffer(),
		Credential: last.Credential, AcceptedRegistration: last.Reference,
	}.AppendJSON(nil)
}

// wantKept holds custody to be untouched: both nodes have their sockets, and messages
// pass in both directions.
func (h *holding) wantKept() {
	h.t.Helper()
	if _, err := h.node.Send(h.Soon(), report, member); err != nil {
		h.t.Errorf("a report of node-a: %v", err)
	}
	pushed, ctx := make(chan error, 1), h.Soon()
	go func() { _, err := h.Cloudly.CallNode(ctx, "node-b", assign, member); pushed <- err }()
	h.puppet.answer(h.puppet.next(), `{}`)
	if err := <-pushed; err != nil {
		h.t.Errorf("a push for node-b: %v", err)
	}
	if socket, ok := h.node.Registered(); !ok || socket != h.socket {
		h.t.Errorf("node-a came over socket %d and is now on %d", h.socket, socket)
	}
	nodes := rig.SectionOf[forward.Status](h.Rig, forward.Name).Nodes
	if len(nodes) != 2 || !nodes[0].Confirmed || !nodes[1].Confirmed {
		h.t.Errorf("held are %+v", nodes)
	}
	for _, e := range h.Events(0) {
		if e.Type == string(cloudly.EventCustodyEnded) {
			h.t.Errorf("custody has ended: %v", e.Fields)
		}
	}
}
