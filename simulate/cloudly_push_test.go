package simulate

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// answers is a relay that answers each method with a text.
type answers map[string]string

func (a answers) ServeRequest(r *typedsocket.Request) {
	if answer, ok := a[r.Method()]; ok {
		r.Answer([]byte(answer))
		return
	}
	refusal := contract.Refusal{Name: contract.RelayMethodNotForwarded, Reason: "not here"}
	r.Refuse(refusal.Text(), refusal.AppendData(nil))
}

func TestPushesGoToTheRegisteredRelay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		if _, err := s.Call(soon(t), "anything", []byte("{}")); !errors.Is(err, errNotRegistered) {
			t.Errorf("without a relay: %v", err)
		}
		if err := s.PushConfiguration(soon(t)); !errors.Is(err, errNotRegistered) {
			t.Errorf("configuration without a relay: %v", err)
		}
		c := s.dial(answers{contract.DefaultMethodPushConfiguration: "{}"})
		c.authenticate()
		if err := s.PushConfiguration(soon(t)); err != nil {
			t.Errorf("configuration to an authenticated socket: %v", err)
		}
		c.must(register, facts(0).AppendJSON(nil))
		sent := s.Frames().Sent(contract.DefaultMethodPushConfiguration)
		if configuration := configurationOf(t, string(sent[0].Body)); configuration.Block.Origin != testOrigin {
			t.Errorf("pushed %+v", configuration)
		}
		_, err := s.Call(soon(t), "anything", []byte("{}"))
		if name, ok := Named(err, contract.TransportRefusals()); !ok || name != contract.RelayMethodNotForwarded {
			t.Errorf("refused with %q, %v", name, err)
		}
		if name, ok := Named(errNotRegistered, contract.TransportRefusals()); ok {
			t.Errorf("an error that is no answer is named %q", name)
		}
		if _, err := s.CallSocket(soon(t), 9, "anything", []byte("{}")); !errors.Is(err, typedsocket.ErrClosed) {
			t.Errorf("a socket that is not there: %v", err)
		}
		other := s.dial(answers{"anything": `{"a":1}`})
		if err := s.Wait(soon(t), "a second socket", func() bool { return len(s.Sockets()) == 2 }); err != nil {
			t.Fatal(err)
		}
		if got, err := s.CallSocket(soon(t), 2, "anything", []byte("{}")); err != nil || string(got) != `{"a":1}` {
			t.Errorf("an unregistered socket: %s, %v", []byte(got), err)
		}
		other.authenticate()
		if answer, ok := s.Frames().Answer(s.Frames().Sent("anything")[1]); !ok || string(answer.Body) != `{"a":1}` || answer.Sent {
			t.Errorf("its answer is not recorded: %+v", answer)
		}
	})
}

func TestCallNodeIsUnderTheCurrentSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(answers{"applyRuntimeAssignment": `{"status":"accepted"}`})
		if _, err := s.CallNode(soon(t), "node-a", "applyRuntimeAssignment", []byte("{}")); !errors.Is(err, ErrNodeNotConnected) {
			t.Errorf("a node without a session: %v", err)
		}
		session := c.node("node-a", s.credential("node-a"), nonceA)
		if _, err := s.CallNode(soon(t), "node-a", "applyRuntimeAssignment", []byte(` {"assignment":{}} `)); err != nil {
			t.Fatal(err)
		}
		want := `{"session":` + string(session) + `,"assignment":{}}`
		if got := string(s.Frames().Sent("applyRuntimeAssignment")[0].Body); got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
	})
}

// outcome is what a push returned.
type outcome struct {
	value any
	err   error
}

func outcomeOf[T any](value T, err error) outcome { return outcome{value, err} }

// An accepted answer must bind to what was pushed.
func TestPushAnswersAreJudged(t *testing.T) {
	network := contract.VPNNetwork{AuthorityID: "managed", ControlPrefix: "10.1.0.0/24", Revision: 3,
		Nodes: []contract.VPNNode{}, Grants: []contract.VPNGrant{}}
	table, err := contract.NewRouteTable(5, 1, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	bubble(t, func(t *testing.T) {
		says := answers{}
		s := newStage(t, nil)
		c := s.relay(says)
		c.node("node-a", s.credential("node-a"), nonceA)
		if _, err := s.Project("node-a"); err != nil {
			t.Fatal(err)
		}
		run, err := s.Run("node-a", SlotOf(s.clock.now())+1, 2)
		if err != nil {
			t.Fatal(err)
		}
		reference := string(run.Renewals[0].Renewal.Reference().AppendJSON(nil))
		applied := func(revision int64) contract.ApplyVPNNetworkAnswer {
			return contract.ApplyVPNNetworkAnswer{AppliedRevision: revision, State: contract.VPNNetworkIdle}
		}
		for _, test := range []boundAnswer{
			{contract.MethodApplyVPNNetwork, func() outcome { return outcomeOf(s.ApplyNetwork(soon(t), network)) },
				string(applied(3).AppendJSON(nil)), applied(3), string(applied(2).AppendJSON(nil)), applied(2)},
			{contract.MethodPushRouteTable, func() outcome { return outcomeOf(s.PushRouteTable(soon(t), table)) },
				`{"appliedRevision":6}`, int64(6), `{"appliedRevision":4}`, int64(4)},
			{contract.MethodHoldDNSLeaseRenewals, func() outcome { return outcomeOf(s.Hold(soon(t), run)) },
				`{"held":2}`, int64(2), `{"held":1}`, int64(1)},
			{contract.MethodApplyDNSLeaseRenewal, func() outcome { return outcomeOf(s.ApplyRenewal(soon(t), run.Renewals[0])) },
				`{"status":"admitted","renewal":` + reference + `}`, "admitted",
				`{"status":"admitted","renewal":` + string(swap(t, []byte(reference), `"sequence":1`, `"sequence":2`)) + `}`, "admitted"},
		} {
			test.check(t, says)
		}
		if got := c.must(contract.MethodGetRouteTable, []byte("{}")); got != `{"table":`+string(table.AppendJSON(nil))+`}` {
			t.Error("a pushed table is not the one that is pulled")
		}
	})
}

// boundAnswer is a push, an answer that binds to it, and one that does not.
type boundAnswer struct {
	method  string
	push    func() outcome
	good    string
	value   any
	unbound string
	other   any
}

func (b boundAnswer) check(t *testing.T, says answers) {
	t.Helper()
	says[b.method] = b.good
	if got := b.push(); got.err != nil || !cmp.Equal(got.value, b.value) {
		t.Errorf("%s: got %v, %v, want %v", b.method, got.value, got.err, b.value)
	}
	says[b.method] = b.unbound
	if got := b.push(); !errors.Is(got.err, ErrAnswer) || !cmp.Equal(got.value, b.other) {
		t.Errorf("%s with an answer to another: got %v, %v", b.method, got.value, got.err)
	}
	says[b.method] = `{}`
	if got := b.push(); !errors.As(got.err, new(*contract.InvalidError)) {
		t.Errorf("%s with an empty answer: %v", b.method, got.err)
	}
	delete(says, b.method)
	if got := b.push(); !errors.As(got.err, new(*typedsocket.RemoteError)) {
		t.Errorf("%s refused: %v", b.method, got.err)
	}
}
