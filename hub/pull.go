package hub

import (
	"context"
	"errors"
	"fmt"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// errOver is a pull whose answer is nobody's any more.
var errOver = errors.New("custody ended meanwhile")

// Pull asks Cloudly for the network, as it is done after every accepted registration
// of the relay (contract §5.6, step 9; §10.4). Null empties the hub, but for a network
// that was pushed meanwhile: Cloudly had none when it answered, and has one since. It
// takes nothing over once ctx has ended or custody has.
func (h *Hub) Pull(ctx context.Context, sock *typedsocket.Socket) error {
	h.mu.Lock()
	custody, came := h.custody, h.came
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, pullBound)
	defer cancel()
	answer, err := h.cfg.Call(ctx, sock, contract.MethodGetVPNNetwork, contract.Empty{}.AppendJSON(nil),
		typedsocket.CallOptions{Timeout: pullWait})
	if err != nil {
		h.metrics.networks.Of(pulled, networkUnanswered).Inc()
		return fmt.Errorf("hub: pull the network: %w", err)
	}
	read, err := contract.ReadGetVPNNetworkAnswer(answer.Response())
	answer.Release()
	if err != nil {
		h.refuseNetwork(pulled, networkInvalid, 0, field.Error(err))
		return fmt.Errorf("hub: pull the network: %w", err)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("hub: pull the network: %w", ctx.Err())
	}
	o := h.takeOver(read.Network, pulled, custody, came)
	if refused, ok := o.decision.Refusal(); ok {
		return fmt.Errorf("hub: pull the network: %w", &refused)
	}
	switch o.how {
	case networkNotReady:
		return fmt.Errorf("hub: pull the network: %w", errOver)
	case networkFailed:
		return errors.New("hub: pull the network: it could not be taken over")
	}
	return nil
}
