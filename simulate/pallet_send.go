package simulate

import (
	"context"

	"serve.zone/relay/contract"
)

// Send sends a request under the node's session and returns the bytes of the
// answer. Members is an object with everything but the session. A refusal is a
// *typedsocket.RemoteError; see Named.
func (p *Pallet) Send(ctx context.Context, method string, members []byte) (contract.Raw, error) {
	p.mu.Lock()
	if p.bound == nil {
		p.mu.Unlock()
		return nil, ErrNotRegistered
	}
	body := compose().value("session", p.bound.Received).spread(members).end()
	p.mu.Unlock()
	return p.SendBody(ctx, method, p.cfg.Spell(body))
}

// SendBody sends any request on the node's socket, registered or not, as it is
// spelled.
func (p *Pallet) SendBody(ctx context.Context, method string, body []byte) (contract.Raw, error) {
	_, socket := p.line.standing()
	if socket == nil {
		return nil, ErrNotRegistered
	}
	return call(ctx, socket, method, body)
}

// ReportLogs reports one batch and returns the status of the answer, which must
// bind to the batch: "accepted" or "replay", or one of a later minor.
func (p *Pallet) ReportLogs(ctx context.Context, batch LogBatch) (string, error) {
	const method = "reportRuntimeAssignmentLogs"
	socket, _ := p.Registered()
	body, err := p.Send(ctx, method, compose().value("batch", batch).end())
	if err != nil {
		return "", err
	}
	o := readObject(method+" answer", body, []string{"status", "assignmentId", "captureId", "sequence"})
	is := func(want string) func(string) bool { return func(s string) bool { return s == want } }
	status := o.text("status", func(s string) bool { return s != "" }, "is not a text")
	o.text("assignmentId", is(batch.AssignmentID), "is not that of the batch")
	o.text("captureId", is(batch.CaptureID), "is not that of the batch")
	if o.counter("sequence") != batch.Sequence {
		o.refuse("sequence", "is not that of the batch")
	}
	if err := o.err(); err != nil {
		p.violated(AnswerNotBound, socket, method)
		return "", err
	}
	return status, nil
}

// GetManagedVPNCredential asks for the node's VPN credential under its current
// projection. The answer must repeat session and projection. It is secret.
func (p *Pallet) GetManagedVPNCredential(ctx context.Context) (contract.Raw, error) {
	const method = "getRuntimeManagedVpnCredential"
	p.mu.Lock()
	projection, bound := p.projection, p.bound
	p.mu.Unlock()
	if projection == nil || bound == nil {
		return nil, ErrNotRegistered
	}
	socket, _ := p.Registered()
	body, err := p.Send(ctx, method, compose().value("projection", projection.Reference).end())
	if err != nil {
		return nil, err
	}
	o := readObject(method+" answer", body, []string{"session", "projection", "transport", "hub", "authorityId",
		"serverPublicKey", "clientKeyPair", "expiresAt"})
	if !contract.EqualJSON(o.members["session"], bound.Received) {
		o.refuse("session", "is not the one that was sent")
	}
	if !contract.EqualCanonical(o.members["projection"], projection.Reference.AppendJSON(nil)) {
		o.refuse("projection", "is not the one that was sent")
	}
	o.text("transport", func(s string) bool { return s == "quic" }, "is not quic")
	o.text("serverPublicKey", contract.IsNoiseKey, "is not a canonical noise key")
	if err := o.err(); err != nil {
		p.violated(AnswerNotBound, socket, method)
		return nil, err
	}
	return body, nil
}
