package simulate

import (
	"errors"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// until is how long the node waits after a failure.
func (p *Pallet) until(err error, wait *backoff) time.Duration {
	if protocolRefused(err) {
		return contract.RefusedOfferRetryInterval
	}
	return wait.next()
}

// answered reports whether a registration failed because the relay refused it: it
// may not be ready yet, and keeps the socket open. After no answer, or one that
// does not bind, nothing is known of the socket, and a protocol refusal is final.
func answered(err error) bool {
	var remote *typedsocket.RemoteError
	return errors.As(err, &remote)
}
