package ingress

import (
	"context"
	"errors"
	"fmt"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// errOver is a pull whose answer is nobody's any more.
var errOver = errors.New("custody ended meanwhile")

// Pull asks Cloudly for the route table, as it is done after every accepted
// registration of the relay (contract §5.6, step 9; §11.1). Null keeps what is
// held. It takes nothing over once ctx has ended or custody has.
func (i *Ingress) Pull(ctx context.Context, sock *typedsocket.Socket) error {
	i.mu.Lock()
	crew := i.crew
	i.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, pullBound)
	defer cancel()
	answer, err := i.cfg.Call(ctx, sock, contract.MethodGetRouteTable, contract.Empty{}.AppendJSON(nil),
		typedsocket.CallOptions{Timeout: pullWait})
	if err != nil {
		i.metrics.tables.Of(pulled, tableUnanswered).Inc()
		return fmt.Errorf("ingress: pull the route table: %w", err)
	}
	answer.Erase()
	read, err := contract.ReadRouteTableAnswer(contract.MethodGetRouteTable, answer.Response())
	answer.Release()
	switch {
	case err != nil:
		i.metrics.tables.Of(pulled, tableInvalid).Inc()
		i.refuseTable(pulled, err)
		return fmt.Errorf("ingress: pull the route table: %w", err)
	case read.Table == nil:
		i.metrics.tables.Of(pulled, tableNull).Inc()
		return nil
	}
	next := hold(*read.Table, pulled)
	next.since = i.cfg.Wall()
	if ctx.Err() != nil {
		crew = nil
	}
	i.decide(crew, next, func(_ int64, current bool) {
		if !current {
			err = fmt.Errorf("ingress: pull the route table: %w", errOver)
		}
	})
	return err
}
