package ingress

import (
	"context"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// hint has an ingress told of the revision that is held. Of several that it was not
// told of yet it is told the newest alone. The caller holds mu.
func (i *Ingress) hint(p *peer, revision int64) {
	if i.draining {
		return
	}
	p.wanted = revision
	if !p.hinting {
		p.hinting = true
		i.run(nil, func() { i.giveHints(p) })
	}
}

// giveHints tells an ingress what it is to be told, one hint after the other, and
// ends when it was told the newest, whatever came of it.
func (i *Ingress) giveHints(p *peer) {
	for {
		i.mu.Lock()
		if p.told >= p.wanted || p.ctx.Err() != nil || i.suspended() || i.draining {
			p.hinting = false
			i.mu.Unlock()
			return
		}
		p.told = p.wanted
		revision := p.told
		ctx, cancel := context.WithTimeout(p.ctx, hintWait)
		p.giveUp = cancel
		i.mu.Unlock()
		i.giveHint(ctx, p, revision)
		cancel()
	}
}

// giveHint sends one hint: the revision and nothing else (contract §11.1).
func (i *Ingress) giveHint(ctx context.Context, p *peer, revision int64) {
	answer, err := p.sock.Call(ctx, contract.MethodPushIngressRouteTableChanged,
		contract.RouteTableChanged{Revision: revision}.AppendJSON(nil), typedsocket.CallOptions{Timeout: hintWait})
	i.metrics.hints.Of(hintEndOf(err)).Inc()
	typedsocket.EraseRefusal(err)
	if err != nil {
		return
	}
	answer.Release()
	now := i.cfg.Wall()
	i.mu.Lock()
	defer i.mu.Unlock()
	p.knows, p.knowsAt = revision, now
}
