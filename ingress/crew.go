package ingress

import (
	"context"
	"sync"

	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// crew is the goroutines of one custody, which its end ends. One is only added
// under Ingress.mu and while the crew is the current one, so that none is added
// behind a wait for all of them.
type crew struct {
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func newCrew() *crew {
	c := &crew{}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// run runs work in a goroutine of the crew. A panic costs the request that it was
// for, nil for none, and nothing else. The caller holds mu.
func (i *Ingress) run(r *typedsocket.Request, work func()) {
	i.crew.running.Go(func() {
		defer i.recovered(r)
		work()
	})
}

// recovered is deferred: it reports a panic, without any value of it, and ends the
// request that it was about.
func (i *Ingress) recovered(r *typedsocket.Request) {
	if i.cfg.Log.Recovered(recover(), field.Duty(Name)) && r != nil {
		r.Fail()
	}
}
