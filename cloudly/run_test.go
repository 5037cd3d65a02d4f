package cloudly

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket"
)

// alone runs a session that the test ends itself.
func alone(t *testing.T, change func(*Config)) (s *Session, w *world, log *lockedWriter) {
	w = &world{fakeCloudly: newFakeCloudly(t), credential: &fakeCredential{bearer: bearerOf("0001")}}
	w.facts.Version, w.facts.NodeID, w.facts.ListenAddress, w.facts.ListenPort = "4.0.0", "node-a", "10.0.4.7", 8443
	log = new(lockedWriter)
	c := Config{
		URL: "http://127.0.0.1:3000", Dial: w.dial, Credential: w.credential, Offer: ownOffer,
		Facts: w.state, Hooks: w.hooks(), Log: duty.NewLogger(duty.LogConfig{Out: log}),
	}
	change(&c)
	w.session = New(c)
	return w.session, w, log
}

// Run ends with its context, once, and only once.
func TestRunEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, w, _ := alone(t, func(*Config) {})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		w.wantState("registered")
		if err := s.Run(t.Context()); err == nil {
			t.Error("ran twice")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		w.wantHeard("registered 0 first=true", "configuration stated "+testOrigin, "lost stopped")
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// A drain has the patience of its context.
func TestDrainEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		s, w, _ := alone(t, func(c *Config) { c.Hooks.OnLost = func(error) { <-release } })
		ended := make(chan error, 1)
		go func() { ended <- s.Run(t.Context()) }()
		w.wantState("registered")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("drain: %v", err)
		}
		close(release)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	})
}

// A hook that panics ends the session: whether custody was dropped is not known
// any more. Nothing is served or sent after that, and the panic's value is not shown.
func TestAPanickingHookEndsTheSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, w, log := alone(t, func(c *Config) {
			c.Hooks.OnLost = nil
			c.Handler = typedsocket.HandlerFunc(func(r *typedsocket.Request) { r.Answer([]byte(`{}`)) })
		})
		s.cfg.Hooks.OnConfiguration = nil
		s.cfg.Hooks.OnRegistered = func(*typedsocket.Socket, Accepted) { panic("marked-panic " + bearerOf("0001")) }
		ended := make(chan error, 1)
		go func() { ended <- s.Run(t.Context()) }()
		if err := <-ended; !errors.Is(err, errPanicked) {
			t.Fatalf("run: %v", err)
		}
		if text := log.String(); strings.Contains(text, "marked-panic") || !strings.Contains(text, "panic-recovered") {
			t.Fatalf("log %s", text)
		}
		<-w.socket().Done()
	})
}

// A socket that comes when nobody wants it any more is closed, and its bearer
// zeroed.
func TestASocketThatComesTooLateIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, w, _ := alone(t, func(*Config) {})
		sock, err := typedsocket.Connect(t.Context(), typedsocket.Dial{URL: "ws://127.0.0.1/", Net: w.dial})
		if err != nil {
			t.Fatal(err)
		}
		bearer := contract.Secret(bearerOf("0001"))
		s.advance(mail{event: event{kind: evOpened, epoch: 1}, sock: sock, bearer: bearer})
		s.tasks.Wait()
		if sock.Err() == nil || s.state.phase != waiting {
			t.Fatalf("socket ended with %v, in %s", sock.Err(), s.state.phase)
		}
		for _, c := range bearer {
			if c != 0 {
				t.Fatal("the bearer is left behind")
			}
		}
	})
}

// The identity goes with its socket (contract §20).
func TestTheIdentityGoesWithItsSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.wantState("registered")
		a := w.session.attempt
		jwt := a.identity.jwt
		if len(jwt) == 0 {
			t.Fatal("no identity while the session stands")
		}
		w.kill()
		w.settle()
		if _, _, ok := a.identity.credential(time.Now(), 0); ok {
			t.Fatal("an identity without a socket")
		}
		for _, c := range jwt {
			if c != 0 {
				t.Fatal("the identity is left behind")
			}
		}
	})
}
