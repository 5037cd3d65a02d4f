package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// Rotate gives the node a new credential and registers with it on the live
// socket, under the unchanged nonce (contract §7.1).
func (p *Pallet) Rotate(ctx context.Context, credential NodeCredential) error {
	p.mu.Lock()
	p.credential = credential
	p.mu.Unlock()
	return p.Register(ctx)
}

// Register registers again on the live socket. With an unchanged credential it
// is a replay.
func (p *Pallet) Register(ctx context.Context) error {
	k, socket := p.line.standing()
	if socket == nil {
		return ErrNotRegistered
	}
	return p.register(ctx, k, socket)
}

// register sends one registration and takes over the binding that answers it. A
// contract.ProtocolRefusal means that one side refused the other's offer; a
// *typedsocket.RemoteError is any other refusal.
func (p *Pallet) register(ctx context.Context, k *link, socket *typedsocket.Socket) error {
	p.registration.Lock()
	defer p.registration.Unlock()
	p.mu.Lock()
	request := NodeRegistration{NodeID: p.cfg.NodeID, Credential: p.credential, Nonce: p.nonce,
		Authorities: p.cfg.ResolvedAuthorities, Offer: p.offer}
	p.inFlight = true
	p.mu.Unlock()
	body, err := call(ctx, socket, contract.MethodRegisterPalletRuntimeSession, p.cfg.Spell(request.AppendJSON(nil)))
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.watch.notify()
	p.inFlight = false
	var refused *typedsocket.RemoteError
	switch {
	case err == nil:
		err = p.bind(k, request, body)
	case errors.As(err, &refused):
		err = readRefusal(refused)
	default:
		p.dropEarly() // no answer: whether their session is the node's is unknown
	}
	p.serveEarly()
	return err
}

// readRefusal makes a protocol refusal of a refusal that carries one.
func readRefusal(err *typedsocket.RemoteError) error {
	if refusal, ok := contract.ReadProtocolRefusal(err.Data); ok {
		return refusal
	}
	return err
}

// bind judges the answer as the seeds' bindRegisterPalletRuntimeSessionResponse
// does: Cloudly's offer from the node's side first, then the session against
// the request and the node's own scope (contract §7.1).
func (p *Pallet) bind(k *link, request NodeRegistration, body []byte) error {
	if err := contract.JudgeAnsweredOffer(p.offer, body); err != nil {
		p.violated(RegistrationAnswer, k.number, contract.MethodRegisterPalletRuntimeSession)
		return err
	}
	session, err := readBinding(request, body, p.cfg.scope())
	if err != nil {
		p.violated(RegistrationAnswer, k.number, contract.MethodRegisterPalletRuntimeSession)
		return fmt.Errorf("answer to the registration: %w", err)
	}
	next := &binding{SessionBinding: session, nonce: request.Nonce, generation: request.Credential.Generation}
	if last := p.last; last != nil && last.nonce == next.nonce && last.generation == next.generation &&
		!bytes.Equal(last.Received, next.Received) {
		p.violated(ReplayAnswer, k.number, contract.MethodRegisterPalletRuntimeSession)
	}
	if p.line.link != k || request.Nonce != p.nonce {
		return ErrNotRegistered // the socket or the process start is gone by now
	}
	p.bound, p.last = next, next
	return nil
}

// readBinding reads the session and judges that it is one for this request.
func readBinding(request NodeRegistration, body []byte, scope contract.NodeScope) (contract.SessionBinding, error) {
	const what = contract.MethodRegisterPalletRuntimeSession + " answer"
	session, err := contract.ReadSessionBinding(body, request.NodeID)
	if err != nil {
		return contract.SessionBinding{}, err
	}
	if err := readObject(what, body, []string{"session", "protocol"}).err(); err != nil {
		return contract.SessionBinding{}, err
	}
	o := readObject(what, session.Received, []string{"controller", "clusterId", "nodeId", "runtimeNamespace",
		"credentialGeneration", "sessionEpoch"})
	if o.counter("credentialGeneration") != request.Credential.Generation {
		o.refuse("session.credentialGeneration", "is not the one that was sent")
	}
	o.counter("sessionEpoch")
	if !session.Scope.Equal(scope) {
		o.refuse("session", "is not in the node's scope")
	}
	return session, o.err()
}
