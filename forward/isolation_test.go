package forward

import (
	"strings"
	"testing"

	"serve.zone/relay/contract"
)

const report = "reportRuntimeAssignmentObservation"

// R31: a node speaks for itself alone: a body with another node's session, or without a
// session and naming another node, is refused and not forwarded.
func TestR31_ANodeSpeaksForItselfAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.NodeToCloudly = []string{"reportFleetBundle"} })
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		_, other := r.bound(cloud, "node-b")
		reordered := `{"sessionEpoch":1,"clusterId":"\u0063luster-a","credentialGeneration":1.0,"runtimeNamespace":"ns:1","controller":{"id":"c1","kind":"cloudly"},"nodeId":"node-a"}`
		for name, c := range map[string]struct {
			method, body string
			passes       bool
		}{
			"its own session":                    {report, body(session, `"x":1`), true},
			"the same value, written otherwise":  {report, body(reordered, `"x":1`), true},
			"another node's session":             {report, body(other, `"x":1`), false},
			"its own session with other content": {report, body(sessionOf("node-a", 2), `"x":1`), false},
			"the same number, written otherwise": {report, body(strings.Replace(session, "1.0", "1", 1), `"x":1`), false},
			"a member more":                      {report, body(strings.Replace(session, "{", `{"m":1,`, 1), `"x":1`), false},
			"session null":                       {report, `{"session":null,"nodeId":"node-a"}`, false},
			"session text":                       {report, `{"session":"node-a","nodeId":"node-a"}`, false},
			"session in a list":                  {report, `{"session":[` + session + `],"nodeId":"node-a"}`, false},
			"only a nodeId in the session":       {report, `{"session":{"nodeId":"node-a"}}`, false},
			"padded beyond what is compared":     {report, body(strings.Replace(session, "{", "{"+strings.Repeat(" ", maximumSession), 1), `"x":1`), false},

			"no session, its nodeId":               {report, `{"observation":{"nodeId":"node-a"}}`, true},
			"no session, its nodeId on top":        {report, `{"nodeId":"n\u006fde-a","list":[{"x":{"nodeId":"node-a"}}]}`, true},
			"no session, its nodeId very deep":     {report, strings.Repeat(`{"a":`, 40) + `{"nodeId":"node-a"}` + strings.Repeat("}", 40), true},
			"no session, no nodeId":                {report, `{"observation":{"x":1}}`, false},
			"no session, another's nodeId":         {report, `{"observation":{"nodeId":"node-b"}}`, false},
			"no session, another's beside its own": {report, `{"nodeId":"node-a","list":[{"x":{"nodeId":"node-b"}}]}`, false},
			"no session, a nodeId that is none":    {report, `{"nodeId":"node-a","x":{"nodeId":7}}`, false},
			"no session, another name's nodeId":    {report, `{"nodeID":"node-a"}`, false},

			"configured, its own session":        {"reportFleetBundle", body(session, `"x":1`), true},
			"configured, without a session":      {"reportFleetBundle", `{"nodeId":"node-a"}`, false},
			"configured, another node's session": {"reportFleetBundle", body(other, `"x":1`), false},
		} {
			node.send(c.method, c.body)
			if !c.passes {
				refused(t, node.recv(), contract.RelayNodeSessionNotCurrent)
				cloud.none()
				continue
			}
			node.none()
			select {
			case f := <-cloud.frames:
				if string(f.Request) != c.body {
					t.Errorf("%s: forwarded %s", name, f.Request)
				}
			default:
				t.Errorf("%s: did not pass", name)
			}
		}
	})
}

// TestUnboundSocketSendsNothingButARegistration, whatever it says of itself.
func TestUnboundSocketSendsNothingButARegistration(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		_, session := r.bound(cloud, "node-a")
		stranger := r.dialNode()
		for _, method := range named(contract.NodeToRelay) {
			for _, request := range []string{body(session, `"x":1`), `{"nodeId":"node-a"}`} {
				stranger.send(method, request)
				refused(t, stranger.recv(), contract.RelayNodeSessionNotCurrent)
			}
		}
		stranger.send(register, registrationOf("node-a")) // in flight, so not bound yet
		cloud.recv()
		stranger.send(report, `{"nodeId":"node-a"}`)
		refused(t, stranger.recv(), contract.RelayNodeSessionNotCurrent)
		cloud.none()
		if s := r.Status().(Status); s.Sockets != 2 {
			t.Errorf("%d sockets are known", s.Sockets)
		}
	})
}

// R35: a push goes to the socket of the binding whose session it names, and to no
// other; under another session it is refused and not delivered.
func TestR35_PushesGoToTheBindingsSocketAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		a, sessionA := r.bound(cloud, "node-a")
		b, sessionB := r.bound(cloud, "node-b")
		const push = "applyRuntimeAssignment"
		cloud.send(push, body(sessionA, `"nodeId":"node-b","x":{"session":`+sessionB+`}`))
		a.recv()
		b.none()
		for _, c := range []struct {
			body string
			name contract.RefusalName
		}{
			{body(sessionOf("node-a", 2), `"x":1`), contract.RelayNodeSessionNotCurrent},
			{body(strings.Replace(sessionA, "1.0", "1", 1), `"x":1`), contract.RelayNodeSessionNotCurrent},
			{`{"nodeId":"node-a"}`, contract.RelayNodeSessionNotCurrent},
			{`{"session":null}`, contract.RelayNodeSessionNotCurrent},
			{`{"session":{"nodeId":7}}`, contract.RelayNodeSessionNotCurrent},
			{`[]`, contract.RelayNodeSessionNotCurrent},
			{`{"session":{"nodeId":"node-a"}}`, contract.RelayNodeSessionNotCurrent},
			{body(sessionOf("node-c", 1), `"x":1`), contract.RelayNodeNotCarried},
			{`{"session":{"nodeId":""}}`, contract.RelayNodeNotCarried},
		} {
			cloud.send(push, c.body)
			refused(t, cloud.recv(), c.name)
		}
		a.none()
		b.none()
		cloud.send(push, body(sessionB, `"x":1`))
		b.recv()
		a.none()
	})
}

// TestAnswersFromAnotherSocketMatchNothing: node-b answers node-a's push, and
// node-a what it never got.
func TestAnswersFromAnotherSocketMatchNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		a, session := r.bound(cloud, "node-a")
		b, _ := r.bound(cloud, "node-b")
		cloud.send("applyRuntimeAssignment", body(session, `"x":1`))
		f := a.recv()
		b.answer(f, `"response":{"from":"node-b"}`)
		cloud.none()
		a.answer(f, `"response":{"from":"node-a"}`)
		if f := cloud.recv(); string(f.Response) != `{"from":"node-a"}` {
			t.Fatalf("answered %s", f.text)
		}
		a.answer(f, `"response":{"from":"node-a again"}`)
		cloud.none()

		a.send(report, body(session, `"x":1`))
		up := cloud.recv()
		b.answer(up, `"response":{"forged":1}`)
		a.none()
		cloud.answer(up, `"response":{}`)
		a.recv()
	})
}

// TestPushOnASocketWithoutRegistration: another socket of Cloudly than the one
// the relay is registered on is nobody's.
func TestPushOnASocketWithoutRegistration(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		another := r.dial(r.cloud, r.ups)
		another.send("applyRuntimeAssignment", body(session, `"x":1`))
		refused(t, another.recv(), contract.RelayNotReady)
		node.none()
	})
}
