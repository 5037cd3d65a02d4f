package simulate

import (
	"context"
	"errors"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// Each step does what it says, at Cloudly and in the same way at a node.
func TestSteps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		const method = contract.MethodGetVPNNetwork
		const model = `{"network":null}`
		pull := func() (string, error) { return c.ask(method, []byte("{}")) }

		text, data := named(contract.RelayNotReady, "why")
		s.Script(method, Refuse("a: b", []byte(`{"x":1}`)), RefuseNamed(contract.RelayNotReady, "why"), RefuseProtocol(contract.SelfBelowPeerMinimum))
		if n := s.Scripted(method); n != 3 {
			t.Errorf("%d steps wait", n)
		}
		c.refuses(method, wrong{"text", []byte("{}"), "a: b", `{"x":1}`}, wrong{"named", []byte("{}"), text, data})
		_, err := pull()
		wantProtocolRefusal(t, err, contract.SelfBelowPeerMinimum)

		s.Script(method, Respond([]byte(`{"network":1}`)), Step{Unjudged: true, Response: []byte(`{"unjudged":1}`)})
		for _, want := range []string{`{"network":1}`, `{"unjudged":1}`, model} {
			if got, err := pull(); err != nil || got != want {
				t.Errorf("got %s, %v, want %s", got, err, want)
			}
		}
		s.Script(method, Respond([]byte(`{"network":1}`)))
		c.refuses(method, unread(t, "a response replaces no refusal",
			func(b []byte) (contract.Empty, error) { return contract.ReadEmpty(method+" request", b) }, []byte(`{"a":1}`)))

		for _, step := range []Step{Swallow(), Ignore()} {
			s.Script(method, step)
			if _, err := pull(); !errors.As(err, new(*typedsocket.TimeoutError)) {
				t.Errorf("%+v: %v", step, err)
			}
		}
		s.Script(method, Late(7*time.Second))
		began := time.Now()
		if got, err := pull(); err != nil || got != model || time.Since(began) != 7*time.Second {
			t.Errorf("late: %s, %v after %s", got, err, time.Since(began))
		}

		wantViolations(t, s.Violations())
	})
}

func TestStepsForAlwaysAndForAny(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		const method = contract.MethodGetVPNNetwork
		const model = `{"network":null}`
		pull := func() (string, error) { return c.ask(method, []byte("{}")) }
		s.ScriptAlways(method, Refuse("always", nil))
		s.Script(method, Step{})
		if got, err := pull(); err != nil || got != model {
			t.Errorf("one step goes before the one for always: %s, %v", got, err)
		}
		for range 3 {
			c.refuses(method, wrong{"always", []byte("{}"), "always", ""})
		}
		s.Script(AnyMethod, Refuse("any", nil))
		c.refuses(method, wrong{"always goes before any", []byte("{}"), "always", ""})
		c.refuses(contract.MethodGetRouteTable, wrong{"any", []byte("{}"), "any", ""})
		c.must(contract.MethodGetRouteTable, []byte("{}"))
		s.ScriptAlways(AnyMethod, Refuse("any always", nil))
		c.refuses(contract.MethodGetRouteTable, wrong{"any always", []byte("{}"), "any always", ""})
		s.ClearScript(AnyMethod)

		s.Script(method, CutOff())
		s.ClearScript(method)
		if got, err := pull(); err != nil || got != model {
			t.Errorf("a cleared script: %s, %v", got, err)
		}
		wantViolations(t, s.Violations())
	})
}

func TestStepsThatEndTheSocket(t *testing.T) {
	const method = contract.MethodGetVPNNetwork
	for _, test := range []struct {
		name     string
		step     Step
		code     typedsocket.CloseCode // 0 for none
		answered bool
	}{
		{"answer and close", Step{Close: typedsocket.CloseRestart}, typedsocket.CloseRestart, true},
		{"close without an answer", Step{Silent: true, Close: typedsocket.CloseGoingAway}, typedsocket.CloseGoingAway, false},
		{"cut", CutOff(), 1006, false},
		{"cut late", Step{Cut: true, Delay: time.Second}, 1006, false},
		{"malformed answer", Respond([]byte(`{"a":`)), typedsocket.CloseInvalidData, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newStage(t, nil)
				c := s.relay(nil)
				s.Script(method, test.step)
				_, err := c.ask(method, []byte("{}"))
				if answered := err == nil; answered != test.answered {
					t.Errorf("answered: %v", err)
				}
				<-c.socket.Done()
				var end *typedsocket.EndError
				if !errors.As(c.socket.Err(), &end) || end.Code != test.code {
					t.Errorf("ended with %v, want code %d", c.socket.Err(), test.code)
				}
			})
		})
	}
}

func TestStepStopsReading(t *testing.T) {
	const method = contract.MethodGetVPNNetwork
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		s.Script(method, Step{StopReading: true})
		c.must(method, []byte("{}"))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := c.socket.Call(ctx, method, []byte("{}"), typedsocket.CallOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		s.ResumeReading()
		c.must(method, []byte("{}"))
	})
}

// R17: to the simulated Cloudly a registration whose answer it swallows counts, and one
// that was lost on the way does not.
func TestR17_LostAnswerAndLostRequest(t *testing.T) {
	for step, want := range map[string]int{"swallow": 1, "ignore": 0} {
		t.Run(step, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newStage(t, nil)
				c := s.dial(nil)
				c.authenticate()
				s.Script(register, map[string]Step{"swallow": Swallow(), "ignore": Ignore()}[step])
				if _, err := c.ask(register, facts(0).AppendJSON(nil)); err == nil {
					t.Error("it is answered")
				}
				if got := len(s.Registrations()); got != want {
					t.Errorf("%d registrations, want %d", got, want)
				}
			})
		})
	}
}

func TestStepsAtANode(t *testing.T) {
	const method = "applyRuntimeAssignment"
	body := []byte(`{"session":` + goodSession + `}`)
	bubble(t, func(t *testing.T) {
		p, c := alone(t, nil)
		p.Script(method, Refuse("no", nil), Respond([]byte(`{"wrong":true}`)), Late(time.Second), Ignore())
		c.refuses(method, wrong{"refused", body, "no", ""})
		if got := c.must(method, body); got != `{"wrong":true}` {
			t.Errorf("got %s", got)
		}
		began := time.Now()
		if c.must(method, body); time.Since(began) != time.Second {
			t.Errorf("late by %s", time.Since(began))
		}
		if _, err := c.ask(method, body); !errors.As(err, new(*typedsocket.TimeoutError)) {
			t.Errorf("ignored: %v", err)
		}
		wantViolations(t, p.Violations())
		p.Script(method, Ignore())
		c.ask(method, []byte("{}"))
		wantViolations(t, p.Violations(), WithoutSession)

		p.StopReading()
		began = time.Now()
		done := make(chan struct{})
		go func() { c.must(method, body); close(done) }()
		time.Sleep(20 * time.Second)
		p.ResumeReading()
		<-done
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("answered after %s", took)
		}
		p.Script(method, Late(time.Hour))
		go func() { c.ask(method, body) }()
		if err := p.WaitReceived(soon(t), method, 7); err != nil {
			t.Error(err)
		}
		p.Close() // does not wait for the hour
	})
}
