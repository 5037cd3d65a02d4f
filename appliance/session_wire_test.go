package appliance

import (
	"crypto/tls"
	"errors"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// wire is a node's socket in the hands of a test: it dials once, and shows with
// which code it was closed.
type wire struct {
	r          *rig
	id         string
	credential simulate.NodeCredential
	sock       *typedsocket.Socket
	closed     chan struct{} // the socket began to end
	closedAt   time.Time     // good once closed

	mu      sync.Mutex
	session contract.Raw           // as last obtained
	arrived []time.Time            // of every message
	pushed  []string               // methods
	stalls  bool                   // pushes are not answered
	stalled []*typedsocket.Request // those
}

// dialled opens a node's socket and registers nothing.
func (r *rig) dialled(id string) *wire {
	r.t.Helper()
	credential, err := r.cloudly.EnrollNode(id)
	if err != nil {
		r.t.Fatal(err)
	}
	w := &wire{r: r, id: id, credential: credential, closed: make(chan struct{})}
	w.sock, err = typedsocket.Connect(r.soon(), typedsocket.Dial{
		URL: originText, Net: r.net.dial, TLS: &tls.Config{RootCAs: certificates().pool, Time: r.clock.now},
		Config: typedsocket.Config{Peer: "relay", Handler: typedsocket.HandlerFunc(w.serve), Recorder: w},
	})
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", id, err, r.log)
	}
	go func() { <-w.sock.Ending(); w.closedAt = time.Now(); close(w.closed) }()
	r.t.Cleanup(func() {
		w.sock.Close(typedsocket.CloseNormal, "the test is over")
		w.mu.Lock()
		for _, request := range w.stalled {
			request.Drop()
		}
		w.mu.Unlock()
		<-w.sock.Done()
	})
	return w
}

// wired opens a node's socket and registers it.
func (r *rig) wired(id string) *wire {
	r.t.Helper()
	w := r.dialled(id)
	if err := w.register(); err != nil {
		r.t.Fatalf("%s: %v\n%s", id, err, r.log)
	}
	return w
}

// register registers, with the same nonce each time.
func (w *wire) register() error {
	request := simulate.NodeRegistration{
		NodeID: w.id, Credential: w.credential, Nonce: "00000000-0000-4000-8000-000000000001",
		Authorities: []string{"network"}, Offer: simulate.DefaultOffer(),
	}
	body, err := w.call(contract.MethodRegisterPalletRuntimeSession, string(request.AppendJSON(nil)))
	if err != nil {
		return err
	}
	session, err := contract.ReadSessionBinding(body, w.id)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.session = slices.Clone(session.Received)
	return err
}

// call sends any request.
func (w *wire) call(method, body string) (contract.Raw, error) {
	answer, err := w.sock.Call(w.r.soon(), method, []byte(body), typedsocket.CallOptions{})
	if err != nil {
		return nil, err
	}
	defer answer.Release()
	return slices.Clone(contract.Raw(answer.Response())), nil
}

// under is a body with the node's session.
func (w *wire) under() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return `{"session":` + string(w.session) + `,"entry":1}`
}

// report sends a report and returns how it was answered.
func (w *wire) report() error {
	_, err := w.call(protection, w.under())
	return err
}

func (w *wire) serve(request *typedsocket.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pushed = append(w.pushed, request.Method())
	if w.stalls {
		w.stalled = append(w.stalled, request)
		return
	}
	request.Answer([]byte(`{"status":"accepted"}`))
}

// Received implements typedsocket.Recorder.
func (w *wire) Received(bool, []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arrived = append(w.arrived, time.Now())
}

// Sent implements typedsocket.Recorder.
func (w *wire) Sent(bool, []byte) {}

// wantNothingSince checks that no message arrived at a time or later.
func (w *wire) wantNothingSince(since time.Time) {
	w.r.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.arrived {
		if !at.Before(since) {
			w.r.t.Errorf("%s: a message arrived %s after nothing was to arrive", w.id, at.Sub(since))
		}
	}
}

// wantPushed checks which pushes reached the node.
func (w *wire) wantPushed(want ...string) {
	w.r.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.pushed, want) {
		w.r.t.Errorf("%s was pushed %v, want %v", w.id, w.pushed, want)
	}
}

// wantClosed checks that the relay closed the socket with a code, at once.
func (w *wire) wantClosed(code typedsocket.CloseCode) {
	w.r.t.Helper()
	synctest.Wait()
	var end *typedsocket.EndError
	if !errors.As(w.sock.Err(), &end) || !end.Remote || end.Code != code {
		w.r.t.Errorf("the socket of %s: %v; want it closed by the relay with %d", w.id, w.sock.Err(), code)
	}
}

// wantOpen checks that the socket stands.
func (w *wire) wantOpen() {
	w.r.t.Helper()
	synctest.Wait()
	if err := w.sock.Err(); err != nil {
		w.r.t.Errorf("the socket of %s: %v", w.id, err)
	}
}
