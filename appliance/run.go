package appliance

import (
	"context"
	"errors"
	"sync"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// Bounds of the end of a relay (design §8).
const (
	// drainWait is how long the end may take in all, since whoever told the relay to
	// stop kills it then.
	drainWait = 10 * time.Second
	// drainNodes is how much of it what is in flight may take. The rest is for the
	// closing of sockets whose peers take nothing: four seconds each, nodes first,
	// then Cloudly.
	drainNodes = 6 * time.Second
	// endWait is how long goroutines may take to end after a failure, when all they
	// wait for has ended.
	endWait = 5 * time.Second
)

// errNotEnded is met when parts of the relay go on after everything was closed.
var errNotEnded = errors.New("appliance: parts of the relay have not ended in time")

// Run serves until ctx ends, then drains, and returns nil within 10 s whatever
// was cut short. It returns an error when a part of the relay failed that the
// rest cannot go on without, after everything was closed. What Cloudly, the
// network or the clock do is never such a failure.
func (a *Appliance) Run(ctx context.Context) error {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var tasks sync.WaitGroup
	for _, p := range a.parts {
		if p.run != nil {
			tasks.Go(func() { a.running(inner, p.duty.Name(), p.run) })
		}
	}
	// A listener that stopped accepting says so in its own check. What it carries
	// goes on, and ending the process would lose it.
	tasks.Go(func() { a.listening("listener", a.listener.Serve) })
	tasks.Go(func() { a.listening("operator", a.operator.Serve) })
	a.relay.enter(serving)
	a.events.Publish(EventStarted, field.Version(a.cfg.Build.Version), field.Node(a.cfg.Settings.NodeID),
		field.Address(a.ListenAddr()))

	select {
	case <-ctx.Done():
		whole, end := context.WithTimeout(context.WithoutCancel(ctx), drainWait)
		defer end()
		cut := a.drain(whole)
		cancel()
		a.drained(errors.Join(cut, a.finish(whole, &tasks)))
		return nil
	case err := <-a.failed:
		a.events.Publish(EventFailed, field.Error(err))
		cancel()
		last, end := context.WithTimeout(context.WithoutCancel(ctx), endWait)
		defer end()
		return errors.Join(err, a.finish(last, &tasks))
	}
}

// finish closes everything and waits until all goroutines of Run have ended, or the
// context has. What goes on then ends with the process.
func (a *Appliance) finish(ctx context.Context, tasks *sync.WaitGroup) error {
	var err error
	over := make(chan struct{})
	go func() {
		defer close(over)
		err = a.Close()
		tasks.Wait()
	}()
	select {
	case <-over:
		return err
	case <-ctx.Done():
		return errNotEnded
	}
}

// drained says how the drain went.
func (a *Appliance) drained(cut error) {
	outcome := "finished"
	if cut != nil {
		outcome = "cut-short"
		a.cfg.Log.Warn("drain-cut-short", field.Error(cut))
	}
	a.events.Publish(EventDrained, field.Outcome(outcome))
}

// listening serves a listener. Its error is logged.
func (a *Appliance) listening(name string, serve func() error) {
	a.guarded(name, func() {
		if err := serve(); err != nil {
			a.cfg.Log.Error("listener-ended", field.Duty(name), field.Error(err))
		}
	})
}

// drain takes nothing new and ends what is in flight, in the order of design §8:
// the nodes and all duties that stand on them, then Cloudly, since answers of nodes
// leave through it, and the operator's readers at last. The error says what was cut short.
func (a *Appliance) drain(ctx context.Context) error {
	a.relay.enter(draining)
	a.operator.SetDraining()
	a.cloudly.Quiesce()
	a.events.Publish(EventDraining)
	nodes, end := context.WithTimeout(ctx, drainNodes)
	defer end()

	// All refuse what is new at once, and wait for what they have in flight on a
	// node's socket; forward or listener, whichever comes first, closes one that
	// rests.
	beside, behind := []duty.Duty{a.forward, a.listener}, []duty.Duty(nil)
	for _, p := range a.later {
		if p.quiesce != nil {
			a.guarded(p.duty.Name(), p.quiesce)
		}
		if p.behindNodes {
			behind = append(behind, p.duty)
		} else {
			beside = append(beside, p.duty)
		}
	}
	return errors.Join(
		a.drainAll(nodes, beside), a.drainAll(ctx, behind), a.cloudly.Drain(ctx),
		// The last that goes, so that the drain can be watched to its end.
		a.operator.Drain(ctx))
}

// drainAll drains duties beside each other.
func (a *Appliance) drainAll(ctx context.Context, duties []duty.Duty) error {
	failures := make([]error, len(duties))
	var all sync.WaitGroup
	for i, d := range duties {
		all.Go(func() { a.guarded(d.Name(), func() { failures[i] = d.Drain(ctx) }) })
	}
	all.Wait()
	return errors.Join(failures...)
}

// Close ends everything at once. Run calls it; it is for a relay that was started
// and never run.
func (a *Appliance) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), endWait)
	defer cancel()
	a.relay.enter(stopped)
	// Beside each other: each may wait for a peer that takes nothing.
	var all sync.WaitGroup
	var ends [4]error
	if a.hub != nil {
		all.Go(func() { ends[3] = a.hub.Close() })
	}
	all.Go(func() { ends[0] = a.listener.Close() })
	all.Go(func() { ends[1] = a.cloudly.Drain(ctx) })
	all.Go(func() { ends[2] = a.operator.Close() })
	all.Wait()
	return errors.Join(ends[:]...)
}

// watchCertificate looks at the certificate's files from time to time, and at
// once when it is told to.
func (a *Appliance) watchCertificate(ctx context.Context) error {
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() { a.cert.Run(ctx) })
	for {
		select {
		case <-a.recertify:
			a.cert.Reload() // why it was refused is an event of the source's
		case <-ctx.Done():
			return nil
		}
	}
}

// reloadCertificate has watchCertificate look now.
func (a *Appliance) reloadCertificate() {
	select {
	case a.recertify <- struct{}{}:
	default: // it is about to
	}
}
