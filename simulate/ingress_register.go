package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// Register registers again on the live socket.
func (i *Ingress) Register(ctx context.Context) error {
	k, socket := i.line.standing()
	if socket == nil {
		return ErrNotRegistered
	}
	return i.register(ctx, k, socket)
}

// register sends one registration and takes over what answers it. A
// contract.ProtocolRefusal means that one side refused the other's offer, a
// contract.IngressRegistrationRefusal is any other refusal by name, and a
// *typedsocket.RemoteError one without.
func (i *Ingress) register(ctx context.Context, k *link, socket *typedsocket.Socket) error {
	i.asking.Lock()
	defer i.asking.Unlock()
	i.mu.Lock()
	request := contract.IngressRegistration{Bearer: contract.Secret(i.bearer), Version: i.cfg.Version,
		NodeID: i.cfg.NodeID, Capabilities: i.cfg.Capabilities, Protocol: i.offer}
	i.inFlight = true
	i.mu.Unlock()
	body, err := call(ctx, socket, contract.MethodRegisterIngress, i.cfg.Spell(request.AppendJSON(nil)))
	i.mu.Lock()
	defer i.mu.Unlock()
	defer i.watch.notify()
	i.inFlight = false
	var refused *typedsocket.RemoteError
	switch {
	case err == nil:
		err = i.bind(k, body)
	case errors.As(err, &refused):
		err = i.refusedBy(k, refused)
	}
	i.serveEarly()
	return err
}

// bind judges an acceptance: the relay's offer from the ingress's side first, then
// exactly { accepted, revision, protocol } (contract §4, §11.2), with the relay's
// own offer where that is known (O16).
func (i *Ingress) bind(k *link, body []byte) error {
	revision, err := readIngressAcceptance(i.offer, i.cfg.RelayOffer, body)
	if err != nil {
		i.violated(RegistrationAnswer, k.number, contract.MethodRegisterIngress)
		return fmt.Errorf("answer to the registration: %w", err)
	}
	if i.line.link != k {
		return ErrNotRegistered // the socket is gone by now
	}
	i.bound, i.accepted, i.notBefore = k, revision, time.Time{}
	i.pullSoon()
	return nil
}

// readIngressAcceptance returns the revision of an acceptance, 0 for null.
func readIngressAcceptance(own, relay contract.Offer, body []byte) (int64, error) {
	if err := contract.JudgeAnsweredOffer(own, body); err != nil {
		return 0, err
	}
	o := readObject(contract.MethodRegisterIngress+" answer", body, []string{"accepted", "revision", "protocol"})
	if raw := o.members["accepted"]; raw != nil && string(raw) != "true" {
		o.refuse("accepted", "is not true")
	}
	var revision int64
	if raw := o.members["revision"]; !raw.IsNull() {
		revision = o.counter("revision")
	}
	if offer, err := contract.ReadOffer(body); err == nil && relay != (contract.Offer{}) && offer != relay {
		o.refuse("protocol", "is not the relay's own offer")
	}
	return revision, o.err()
}

// refusedBy reads a refusal. One that carries a name of the contract without being
// whole is a plain failure (contract R10), and a breach of whoever wrote it.
func (i *Ingress) refusedBy(k *link, err *typedsocket.RemoteError) error {
	if refusal, ok := contract.ReadProtocolRefusal(err.Data); ok {
		return refusal
	}
	if refusal, ok := contract.ReadIngressRegistrationRefusal(err.Data); ok {
		i.notBefore = time.Now().Add(time.Duration(refusal.RetryAfterMs) * time.Millisecond)
		return refusal
	}
	o := readObject("refusal", err.Data, nil, "code")
	switch o.text("code", func(string) bool { return true }, "") {
	case "cluster-ingress-registration-refused", "protocol-incompatible":
		i.violated(RefusalNotWhole, k.number, contract.MethodRegisterIngress)
	}
	return err
}

// sameSocketWait is how long an ingress keeps an unregistered socket open for its
// next registration. A relay closes one sooner or later (contract §16).
const sameSocketWait = 10 * time.Second

// again reports whether a refused registration is tried again on the same socket.
func (i *Ingress) again(err error) bool {
	var refusal contract.IngressRegistrationRefusal
	if errors.As(err, &refusal) {
		return time.Duration(refusal.RetryAfterMs)*time.Millisecond <= sameSocketWait
	}
	return answered(err)
}

// until is how long the ingress waits after a failure: as long as a refusal by name
// says, whatever becomes of the socket meanwhile.
func (i *Ingress) until(err error, wait *backoff) time.Duration {
	if protocolRefused(err) {
		return contract.RefusedOfferRetryInterval
	}
	i.mu.Lock()
	left := time.Until(i.notBefore)
	i.mu.Unlock()
	if left > 0 {
		return left
	}
	return wait.next()
}
