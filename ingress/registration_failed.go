package ingress

import (
	"context"
	"errors"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
	"serve.zone/relay/typedsocket/queue"
)

// fail ends a registration that was not accepted.
func (x *registration) fail(err error) {
	var refused *typedsocket.RemoteError
	var again *typedsocket.RetryLimitError
	how := endOf(err)
	if how == registrationNotReady && x.p.ctx.Err() != nil {
		how = registrationAbandoned
	}
	switch {
	case errors.As(err, &refused):
		x.noteDeclined(refused.Data)
		x.end(how, func() error { return x.r.Refuse(refused.Text, refused.Data) })
	case errors.As(err, &again):
		x.end(how, func() error { return x.r.Retry(again.Wait, "") })
	case how == registrationNotReady, how == registrationAbandoned:
		x.refuse(how, ownRefusal(contract.IngressNotReady))
	default:
		x.end(how, x.r.Fail)
	}
}

// endOf tells how a registration ended whose call failed.
func endOf(err error) registrationEnd {
	var refused *typedsocket.RemoteError
	var again *typedsocket.RetryLimitError
	var timeout *typedsocket.TimeoutError
	var full *queue.FullError
	switch {
	case errors.As(err, &refused):
		return registrationDeclined
	case errors.As(err, &again):
		return registrationPostponed
	case errors.As(err, &timeout), errors.Is(err, context.DeadlineExceeded):
		return registrationUnanswered // without a name (contract O38)
	case errors.Is(err, typedsocket.ErrClosed), errors.Is(err, context.Canceled),
		errors.Is(err, typedsocket.ErrPendingFull), errors.As(err, &full):
		return registrationNotReady
	}
	return registrationMisanswered
}

// noteDeclined counts and keeps the name of a refusal of Cloudly's. Of its data
// nothing else is looked at.
func (x *registration) noteDeclined(data []byte) {
	name, retry := contract.RefusalName("unnamed"), time.Duration(0)
	if refused, ok := contract.ReadIngressRegistrationRefusal(data); ok {
		name, retry = refused.Reason, time.Duration(refused.RetryAfterMs)*time.Millisecond
	} else if incompatible, ok := contract.ReadProtocolRefusal(data); ok {
		name = contract.RefusalName(incompatible.LogName())
	}
	x.i.metrics.declined.Of(reasonNamed(name)).Inc()
	x.i.noteRefusal(x.ticket.node, name, retry)
	x.i.cfg.Log.Info("ingress-registration-declined", field.Node(x.ticket.node), field.Refusal(name), field.Duration(retry))
}
