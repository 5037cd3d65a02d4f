package simulate

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"serve.zone/relay/contract"
)

func TestNodeRequestsAreJudgedBySession(t *testing.T) {
	const method = "reportRuntimeAssignmentObservation"
	bubble(t, func(t *testing.T) {
		s := newStage(t, func(cfg *CloudlyConfig) { cfg.NodeMethods = []string{"reportExtra"} })
		c := s.relay(nil)
		credential := s.credential("node-a")
		old := c.node("node-a", credential, nonceA)
		session := c.node("node-a", credential, nonceB)
		const stale, unknown, unclear = "the session is not the node's current one", "the session is not known",
			"the request names no session and not one node"
		c.refuses(method,
			wrong{"fenced", under(old, `{"observation":{}}`), stale, ""},
			wrong{"changed", under(swap(t, session, `"cluster-a"`, `"cluster-b"`), "{}"), stale, ""},
			wrong{"narrowed", []byte(`{"session":{"nodeId":"node-a"}}`), stale, ""},
			wrong{"of a node that never registered", under(swap(t, session, "node-a", "node-b"), "{}"), unknown, ""},
			wrong{"of nobody", []byte(`{"session":{}}`), unknown, ""},
			wrong{"no session and no node", []byte(`{"observation":{}}`), unclear, ""},
			wrong{"no session and two nodes", []byte(`{"nodeId":"node-a","observation":{"nodeId":"node-b"}}`), unclear, ""},
		)
		const accepted = `{"status":"accepted"}`
		spaced := swap(t, under(session, `{"observation":{"load":0.5,"session":{"sessionEpoch":1}}}`), `{"kind":"cloudly"}`, ` { "kind" : "cloudly" } `)
		for _, body := range [][]byte{under(session, `{"observation":{}}`), spaced, []byte(`{"observation":{"nodeId":"node-a"}}`)} {
			if got := c.must(method, body); got != accepted {
				t.Errorf("got %s", got)
			}
		}
		if got := c.must("reportExtra", under(session, "{}")); got != accepted {
			t.Errorf("a configured method: %s", got)
		}
		wantViolations(t, s.Violations())
	})
}

// R36, contract §8.1: every method of the catalogue that nodes send is served by the
// simulated Cloudly.
func TestR36_EveryNodeMethod(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		session := c.node("node-a", s.credential("node-a"), nonceA)
		projection, err := s.Project("node-a")
		if err != nil {
			t.Fatal(err)
		}
		members := map[string][]byte{
			"reportRuntimeAssignmentLogs":    compose().value("batch", batch(1)).end(),
			"getRuntimeManagedVpnCredential": compose().value("projection", projection.Reference).end(),
		}
		served := 0
		for _, m := range contract.Methods() {
			if !m.Takes(contract.NodeToRelay) || m.Name == registerNode {
				continue
			}
			body := under(session, "{}")
			if members[m.Name] != nil {
				body = under(session, string(members[m.Name]))
			}
			c.must(m.Name, body)
			served++
		}
		if served != 11 {
			t.Errorf("%d methods beside the registration, want 11", served)
		}
	})
}

func batch(sequence int64) LogBatch {
	return LogBatch{AssignmentID: "assignment-1", AttemptID: "attempt-1", CaptureID: "capture-1", Sequence: sequence,
		Entries: []contract.Raw{contract.Raw(`{"kind":"line","text":"hello"}`)}}
}

func TestLogsAreJudged(t *testing.T) {
	const method = "reportRuntimeAssignmentLogs"
	const invalid = "invalid reportRuntimeAssignmentLogs batch: "
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		session := c.node("node-a", s.credential("node-a"), nonceA)
		report := func(b LogBatch) []byte { return compose().value("session", session).value("batch", b).end() }
		whole := report(batch(1))
		with := func(change func(*LogBatch)) []byte { b := batch(1); change(&b); return report(b) }
		entries := func(n int, entry string) []byte {
			return with(func(b *LogBatch) { b.Entries = bytesList(n, entry) })
		}
		long := func(n int) string { return `{"text":"` + strings.Repeat("x", n) + `"}` }
		c.refuses(method,
			wrong{"unknown member", under(session, `{"batch":{},"novel":1}`), "invalid reportRuntimeAssignmentLogs request: body: has a member that is not known", ""},
			wrong{"member of the batch missing", swap(t, whole, `"attemptId":"attempt-1",`, ``), invalid + "attemptId: is missing", ""},
			wrong{"identifier", with(func(b *LogBatch) { b.CaptureID = ":x" }), invalid + "captureId: is not a canonical identifier", ""},
			wrong{"sequence", with(func(b *LogBatch) { b.Sequence = 0 }), invalid + "sequence: is not a counter", ""},
			wrong{"final", swap(t, whole, `"final":false`, `"final":1`), invalid + "final: is not a boolean", ""},
			wrong{"empty and not final", entries(0, ""), invalid + "entries: is empty in a batch that is not final", ""},
			wrong{"1025 entries", entries(1025, "{}"), invalid + "entries: has more than 1024 elements", ""},
			wrong{"entry is no object", entries(1, "7"), invalid + "entries[0]: is no object with a text of at most 65536 bytes", ""},
			wrong{"65537 bytes of text", entries(1, long(65_537)), invalid + "entries[0]: is no object with a text of at most 65536 bytes", ""},
			unread(t, "fraction", contract.CanonicalLength, swap(t, whole, `"text":"hello"`, `"text":"hello","n":1.5`)),
			wrong{"one byte over a mebibyte", maximalReport(session, 1), "the report has more than 1048576 canonical bytes", ""},
		)
		if got := c.must(method, maximalReport(session, 0)); got != `{"status":"accepted","assignmentId":"a","captureId":"c","sequence":1}` {
			t.Errorf("a maximal report: %s", got)
		}
		for i, want := range []string{"accepted", "replay", "accepted", "replay"} {
			sequence := []int64{1, 1, 2, 1}[i]
			if got := c.must(method, report(batch(sequence))); got != fmt.Sprintf(
				`{"status":%q,"assignmentId":"assignment-1","captureId":"capture-1","sequence":%d}`, want, sequence) {
				t.Errorf("batch %d: %s", i, got)
			}
		}
		c.must(method, entries(1024, "{}"))
		c.must(method, with(func(b *LogBatch) { b.CaptureID, b.Entries, b.Final = "capture-2", nil, true }))
		wantViolations(t, s.Violations())
		c.must(method, report(batch(4)))
		wantViolations(t, s.Violations(), LogGap)
		c.must(method, report(batch(5)))
		wantViolations(t, s.Violations(), LogGap)
	})
}

func bytesList(n int, entry string) []contract.Raw {
	list := make([]contract.Raw, n)
	for i := range list {
		list[i] = contract.Raw(entry)
	}
	return list
}

// maximalReport has exactly a mebibyte of canonical JSON, and some more.
func maximalReport(session contract.Raw, more int) []byte {
	b := LogBatch{AssignmentID: "a", AttemptID: "a", CaptureID: "c", Sequence: 1, Final: true}
	empty := compose().value("session", session).value("batch", b).end()
	room := contract.CapturedValueLimit - len(empty) + more
	const entry = `{"text":""},`
	for room >= 2*len(entry) {
		n := min(room-len(entry), 60_000)
		if rest := room - len(entry) - n; rest > 0 && rest < len(entry) {
			n -= len(entry)
		}
		b.Entries = append(b.Entries, contract.Raw(`{"text":"`+strings.Repeat("x", n)+`"}`))
		room -= n + len(entry)
	}
	last := string(b.Entries[len(b.Entries)-1])
	b.Entries[len(b.Entries)-1] = contract.Raw(last[:len(last)-2] + strings.Repeat("x", room+1) + `"}`)
	return compose().value("session", session).value("batch", b).end()
}

func TestCapturesAreBounded(t *testing.T) {
	var c captures
	for i := range maximumCaptures + 10 {
		c.set(fmt.Sprint(i), 1)
		c.set(fmt.Sprint(i), 2)
	}
	if len(c.places) != maximumCaptures || len(c.ids) != maximumCaptures || c.places["9"] != 0 || c.places["10"] != 2 {
		t.Errorf("%d places, %d ids", len(c.places), len(c.ids))
	}
}

// R43: the simulated Cloudly gives a node its VPN credential for the registered hub,
// and refuses by name where hub or projection is not there.
func TestR43_ManagedVPNCredential(t *testing.T) {
	const method = "getRuntimeManagedVpnCredential"
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.dial(nil)
		c.authenticate()
		c.must(register, facts(0).AppendJSON(nil))
		session := c.node("node-a", s.credential("node-a"), nonceA)
		projection, err := s.Project("node-a")
		if err != nil {
			t.Fatal(err)
		}
		body := compose().value("session", session).value("projection", projection.Reference).end()
		c.refuses(method, wrong{"no hub", body, "relay-vpn-hub-absent: the relay registered no hub", ""})
		c.must(register, withHub(facts(1), "192.0.2.1").AppendJSON(nil))
		c.refuses(method,
			wrong{"unknown member", under(session, `{"projection":{},"novel":1}`), "invalid " + method + " request: body: has a member that is not known", ""},
			wrong{"another projection", swap(t, body, `"generation":1`, `"generation":2`), "projection: is not the node's current one", ""})

		key, err := s.NodeVPNKey("node-a")
		if err != nil {
			t.Fatal(err)
		}
		check := func(authority string, expires int64) {
			t.Helper()
			o := readObject("answer", []byte(c.must(method, body)), []string{"session", "projection", "transport", "hub", "authorityId",
				"serverPublicKey", "clientKeyPair", "expiresAt"})
			want := fmt.Sprintf(`"quic" {"address":"192.0.2.1","port":4433} %q %q %d`, authority, contract.NoiseKey{1}.String(), expires)
			got := []byte{}
			for _, name := range []string{"transport", "hub", "authorityId", "serverPublicKey", "expiresAt"} {
				got = append(append(got, ' '), o.members[name]...)
			}
			if o.err() != nil || string(got[1:]) != want {
				t.Errorf("%v: got %s, want %s", o.err(), got[1:], want)
			}
			public := base64.StdEncoding.EncodeToString(key[:])
			if !bytes.Contains(o.members["clientKeyPair"], []byte(`"publicKey":"`+public+`"`)) || !contract.EqualJSON(o.members["session"], session) {
				t.Error("the key is not the node's, or the session not the one that asked")
			}
		}
		check("managed-cluster-a", projection.DNS.ExpiresAt)
		s.SetNetwork(&contract.VPNNetwork{AuthorityID: "managed", Nodes: []contract.VPNNode{{NodeID: "node-a", ExpiresAt: 77}}})
		check("managed", 77)
	})
}
