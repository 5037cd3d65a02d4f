package escrow_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// sessionText spells the session of a node's first registration as nobody does.
func sessionText(id string) string {
	return loosely(`{"sessionEpoch":1,"credentialGeneration":1,"runtimeNamespace":"default","nodeId":"` + id +
		`","clusterId":"cluster-a","controller":{"kind":"cloudly"}}`)
}

// answeringOddly has Cloudly answer the next registration with such a session.
func (c *cluster) answeringOddly(id string) {
	c.Cloudly.Script(registration, simulate.Respond([]byte(`{ "protocol":`+string(simulate.DefaultOffer().AppendJSON(nil))+
		",\n\t\"session\" : "+sessionText(id)+` }`)))
}

// R52: a push is the node's own session, byte for byte as the registration was answered,
// and the record, byte for byte as it was handed over, however both are spelled; and
// nothing else.
func TestR52_SessionAndRecordAsTheyCame(t *testing.T) {
	c := start(t)
	c.answeringOddly("node-a")
	a := c.node("node-a")
	composed := c.compose(run{node: "node-a", windows: []window{current, opening(time.Hour)}})
	records := make([]string, 2)
	for i, s := range composed.Renewals {
		// Members in another order, numbers and texts as no encoder of ours writes them.
		records[i] = loosely(fmt.Sprintf(`{"signature":"%s","renewal":%s,"authority":%s}`, s.Signature, s.Renewal.AppendJSON(nil), string(s.Authority)))
	}
	body := fmt.Sprintf(`{"renewals" : [ %s , %s ],"projection":%s,"nodeId":"node-\u0061"}`, records[0], records[1], composed.Projection.AppendJSON(nil))
	c.taken("oddly spelled", []byte(body), 2)
	c.lose()
	x := c.waitPushes(a, 1)[0]
	if string(x.session) != sessionText("node-a") {
		t.Errorf("the session is\n%q, want\n%q", x.session, sessionText("node-a"))
	}
	if string(x.signed) != records[0] {
		t.Errorf("the record is\n%q, want\n%q", x.signed, records[0])
	}
	if want := `{"session":` + sessionText("node-a") + `,"signed":` + records[0] + `}`; string(x.Body) != want {
		t.Errorf("the body is\n%q, want\n%q", x.Body, want)
	}
	c.waitAcknowledged("node-a", 1)
	if j := a.Judgements(); len(j) != 1 || j[0].Admission != simulate.Admitted {
		t.Errorf("the node judged %+v", j)
	}
}

// R52: each node is given its own renewal, under its own session; a node of which nothing
// is held, and a socket without a session, are given nothing.
func TestR52_ToItsOwnNodeAlone(t *testing.T) {
	c := start(t)
	const count = 12
	pallets := c.Nodes(count)
	for i, p := range pallets {
		id := fmt.Sprintf("node-%d", i+1)
		c.admits(p, id, 1)
		c.take(run{node: id, first: int64(100 + i), windows: grid(2)})
	}
	without, stranger := c.node("node-without"), c.byHand()
	c.lose()
	for i, p := range pallets {
		id := fmt.Sprintf("node-%d", i+1)
		x := c.waitPushes(p, int64(100+i))
		binding, ok := p.Binding()
		if !ok || len(x) != 1 || x[0].renewal.NodeID != id || string(x[0].session) != string(binding.Received) {
			t.Errorf("%s: %+v", id, x)
		}
		c.waitAcknowledged(id, int64(100+i))
	}
	c.wantPushed(count)
	c.wantPushes(without)
	// The answer is the first message on that socket.
	_, err := stranger.ask(report, `{}`)
	c.wantRefused("a report of nobody", err, contract.RelayNodeSessionNotCurrent, "")
}

// R52: the session and the socket are those of the node's last registration: of a rotation
// on the live socket, and of a newer socket.
func TestR52_UnderTheLastRegistration(t *testing.T) {
	c := start(t)
	rotated, older := c.node("node-a"), c.byHand()
	older.register("node-b")
	for _, id := range []string{"node-a", "node-b"} {
		c.take(run{node: id, windows: grid(2)})
	}
	before, _ := rotated.Binding()
	if err := rotated.Rotate(c.Soon(), c.RotateNode("node-a")); err != nil {
		t.Fatal(err)
	}
	newer := c.node("node-b")
	older.WaitClose()
	if s := c.status(); s.Runs != 2 || s.Unreachable != 0 {
		t.Errorf("the status shows %+v", s)
	}
	c.lose()
	for _, p := range []*simulate.Pallet{rotated, newer} {
		x := c.waitPushes(p, 1)
		binding, _ := p.Binding()
		if len(x) == 1 && (string(x[0].session) != string(binding.Received) || string(x[0].session) == string(before.Received)) {
			t.Errorf("pushed under %s, the node has %s", x[0].session, binding.Received)
		}
	}
	c.waitAcknowledged("node-a", 1)
	c.waitAcknowledged("node-b", 1)
	c.wantPushed(2)
}

// R52, §9.6: a node whose socket breaks without Cloudly is given nothing on the socket that
// it opens instead: it has no session there. Its run stays, and serves it after a return.
func TestR52_ASocketWithoutASessionIsGivenNothing(t *testing.T) {
	c := start(t)
	a := c.node("node-a")
	a.Script(applying, simulate.Ignore())
	c.take(run{node: "node-a", windows: []window{current, opening(margin)}})
	from := c.NextSeq()
	c.lose()
	c.waitPushes(a, 1)
	a.Reconnect()
	c.waitGone("node-a")
	if told := c.WaitEvent("renewals-node-unreachable", from); told.Text("node") != "node-a" {
		t.Errorf("the event says %v", told.Fields)
	}
	c.waitCurrent("node-a", 2)
	c.Eventually("a refusal on the other socket", func() error {
		for _, m := range a.Frames().Messages() {
			if m.Socket == 2 && m.Refused {
				return nil
			}
		}
		return errors.New("none has come")
	})
	c.wantPushes(a, 1)
	if n := c.shown("node-a"); n.Held != 2 || n.Reachable {
		t.Errorf("the status shows %+v", n)
	}

	c.back()
	if _, err := a.WaitRegistered(c.Soon(), 1); err != nil {
		t.Fatal(err)
	}
	c.Eventually("the node's confirmation", func() error {
		if n := c.shown("node-a"); !n.Confirmed || n.Held != 2 {
			return fmt.Errorf("the status shows %+v", n)
		}
		return nil
	})
	c.reaches("node-a")
	c.wantPushes(a, 1)
	c.lose()
	if x := c.waitPushes(a, 1, 2); len(x) == 2 && x[1].Socket == x[0].Socket {
		t.Errorf("both came on socket %d", x[1].Socket)
	}
}

// R53: a renewal that the node refuses for arriving early is pushed again, after five
// seconds, and is taken then.
func TestR53_AnEarlyRefusalIsRetried(t *testing.T) {
	c := start(t)
	behind := func() time.Time { return time.Now().Add(-firstRetry / 2) }
	a := c.node("node-a", func(cfg *simulate.PalletConfig) { cfg.Wall = behind })
	c.take(run{node: "node-a", windows: []window{{-time.Minute, 0, 10 * time.Minute}}})
	from := c.NextSeq()
	c.lose()
	if err := a.WaitReceived(c.Soon(), applying, 1); err != nil {
		t.Fatal(err)
	}
	if told := c.WaitEvent("renewal-not-taken", from); told.Text("outcome") != "refused" {
		t.Errorf("the event says %v", told.Fields)
	}
	if n := c.shown("node-a"); n.Acknowledged != nil || n.LastOutcome != "refused" || n.Pushes != 1 {
		t.Errorf("the status shows %+v", n)
	}
	if err := a.WaitReceived(c.Soon(), applying, 2); err != nil {
		t.Fatal(err)
	}
	c.waitAcknowledged("node-a", 1)
	j := a.Judgements()
	if len(j) != 2 || !errors.Is(j[0].Refusal, simulate.ErrRenewalEarly) || j[1].Admission != simulate.Admitted {
		t.Fatalf("the node judged %+v", j)
	}
	if wait := j[1].At.Sub(j[0].At); wait < firstRetry {
		t.Errorf("it was pushed again after %s", wait)
	}
	x := c.pushes(a)
	if string(x[0].Body) != string(x[1].Body) {
		t.Error("the second push is not the first one again")
	}
	c.wantPushed(2)
}

// R53: an answer counts only if it repeats exactly what was sent. Any other is none, and
// the renewal is pushed again; what the status says is no concern of the relay's.
func TestR53_AnAnswerIsBoundToItsRenewal(t *testing.T) {
	c := start(t)
	answers := map[string]func(contract.DNSLeaseRenewal) string{ // by node
		"digest":     func(x contract.DNSLeaseRenewal) string { x.Digest = projectionOf("x", 1).Digest; return answering(x) },
		"sequence":   func(x contract.DNSLeaseRenewal) string { x.Sequence++; return answering(x) },
		"id":         func(x contract.DNSLeaseRenewal) string { x.Projection.ID += "x"; return answering(x) },
		"generation": func(x contract.DNSLeaseRenewal) string { x.Projection.Generation++; return answering(x) },
		"content":    func(x contract.DNSLeaseRenewal) string { x.Projection.Digest = x.Digest; return answering(x) },
		"nothing":    func(contract.DNSLeaseRenewal) string { return `{"status":"admitted"}` },
		"null":       func(contract.DNSLeaseRenewal) string { return `null` },
		"empty":      func(contract.DNSLeaseRenewal) string { return `{}` },
		"right": func(x contract.DNSLeaseRenewal) string {
			return `{ "more":{"k":[1.5]},"renewal" : ` + string(x.Reference().AppendJSON(nil)) + `, "status":"of-a-later-minor" }`
		},
	}
	nodes := map[string]*simulate.Pallet{}
	for id, answer := range answers {
		p := c.node(id)
		sent := c.take(run{node: id, windows: []window{current}})
		p.Script(applying, simulate.Respond([]byte(answer(sent.Renewals[0].Renewal))))
		nodes[id] = p
	}
	c.lose()
	for id, p := range nodes {
		c.waitPushes(p, 1)
		if id == "right" {
			c.waitAcknowledged(id, 1)
			continue
		}
		c.Eventually("the outcome of the push to "+id, func() error {
			if n := c.shown(id); n.LastOutcome != "answer-foreign" || n.Acknowledged != nil {
				return fmt.Errorf("the status shows %+v", n)
			}
			return nil
		})
	}
	for id, p := range nodes {
		if id == "right" {
			continue
		}
		// The node has it already, and says so: that is an answer like any other.
		x := c.waitPushes(p, 1, 1)
		if wait := x[1].At.Sub(x[0].At); wait < firstRetry {
			t.Errorf("%s: pushed again after %s", id, wait)
		}
		c.waitAcknowledged(id, 1)
		if j := p.Judgements(); j[0].Admission != simulate.Admitted || j[1].Admission != simulate.Replay {
			t.Errorf("%s judged %+v", id, j)
		}
	}
	c.wantPushes(nodes["right"], 1)
	foreign, _ := c.Metrics().Value("relay_escrow_ended_pushes_total", "outcome", "answer-foreign")
	acknowledged, _ := c.Metrics().Value("relay_escrow_ended_pushes_total", "outcome", "acknowledged")
	if int(foreign) != len(answers)-1 || int(acknowledged) != len(answers) {
		t.Errorf("%v answers are counted as foreign and %v as right", foreign, acknowledged)
	}
}

// answering is an answer that claims to be one to this renewal.
func answering(x contract.DNSLeaseRenewal) string {
	return string(contract.ApplyDNSLeaseRenewalAnswer{Status: "admitted", Renewal: x.Reference()}.AppendJSON(nil))
}

// R53: what was acknowledged is not pushed again: neither when Cloudly came back and went,
// nor under another session of the node, nor when it is handed over once more.
func TestR53_WhatIsAcknowledgedIsNotSentAgain(t *testing.T) {
	c := start(t)
	a := c.node("node-a")
	handed := c.take(run{node: "node-a", windows: []window{current, opening(2 * margin)}})
	c.lose()
	c.waitPushes(a, 1)
	c.waitAcknowledged("node-a", 1)
	c.back(a)
	if err := a.Rotate(c.Soon(), c.RotateNode("node-a")); err != nil {
		t.Fatal(err)
	}
	c.taken("the same again", handed.AppendJSON(nil), 2)
	c.lose()
	x := c.waitPushes(a, 1, 2)
	if binding, _ := a.Binding(); len(x) == 2 && string(x[1].session) != string(binding.Received) {
		t.Errorf("pushed under %s", x[1].session)
	}
	c.waitAcknowledged("node-a", 2)
	c.wantPushed(2)
}

// R53, contract §9.5: of a projection no lower sequence is pushed behind one that was
// acknowledged; the next projection begins anew.
func TestR53_NeverALowerSequence(t *testing.T) {
	c := start(t)
	a, b := c.node("node-a"), c.node("node-b")
	for _, id := range []string{"node-a", "node-b"} {
		c.take(run{node: id, first: 5, windows: []window{current}})
	}
	c.lose()
	c.waitPushes(a, 5)
	c.waitPushes(b, 5)
	c.waitAcknowledged("node-a", 5)
	c.waitAcknowledged("node-b", 5)
	c.back(a, b)
	// Handed over by a Cloudly that counts anew, and by one that begins another projection.
	again := []window{{0, 0, 11 * time.Minute}, opening(margin)}
	c.take(run{node: "node-a", windows: again, change: func(i int, s *contract.SignedDNSLeaseRenewal) { s.Renewal.Sequence = int64(4 + 2*i) }})
	c.take(run{node: "node-b", windows: again, projection: projectionOf("node-b", 2)})
	c.admits(b, "node-b", 2)
	c.lose()
	c.waitPushes(b, 5, 1)
	c.wantPushes(a, 5)
	c.waitPushes(a, 5, 6)
	c.waitPushes(b, 5, 1, 2)
	c.wantPushed(5)
}
