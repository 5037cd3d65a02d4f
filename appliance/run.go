package appliance

import (
	"context"
	"errors"
	"sync"
	"time"

	"serve.zone/relay/duty/field"
)

// Bounds of the end of a relay (design §8).
const (
	// drainWait is how long a drain may take in all.
	drainWait = 10 * time.Second
	// drainNodes is how much of it what is in flight may take. The rest is for the
	// closing handshakes with Cloudly and with the operator's readers.
	drainNodes = 8 * time.Second
	// endWait is how long goroutines may take to end when all they wait for has
	// ended.
	endWait = 5 * time.Second
)

// errNotEnded is met when parts of the relay go on after everything was closed.
var errNotEnded = errors.New("appliance: parts of the relay have not ended within " + endWait.String())

// Run serves until ctx ends, then drains within 10 s, and returns nil even when
// something was cut short. It returns an error when a part of the relay failed
// that the rest cannot go on without, after everything was closed. What Cloudly,
// the network or the clock do is never such a failure.
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

	var err error
	select {
	case <-ctx.Done():
		err = a.drain(context.WithoutCancel(ctx))
	case err = <-a.failed:
		a.events.Publish(EventFailed, field.Error(err))
	}
	a.relay.enter(stopped)
	cancel()
	return errors.Join(err, a.Close(), await(&tasks))
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
// the nodes, then the other duties, then Cloudly, since answers of nodes leave
// through it, and the operator's readers at last.
func (a *Appliance) drain(ctx context.Context) error {
	a.relay.enter(draining)
	a.operator.SetDraining()
	a.events.Publish(EventDraining)
	ctx, cancel := context.WithTimeout(ctx, drainWait)
	defer cancel()
	nodes, end := context.WithTimeout(ctx, drainNodes)
	defer end()

	// Both refuse what is new at once; whichever comes first closes a node's
	// socket that rests.
	var both sync.WaitGroup
	var cut [2]error
	both.Go(func() { cut[0] = a.forward.Drain(nodes) })
	both.Go(func() { cut[1] = a.listener.Drain(nodes) })
	both.Wait()
	failures := cut[:]
	for _, p := range a.parts {
		switch p.duty {
		case a.forward, a.listener, a.cloudly:
		default:
			failures = append(failures, p.duty.Drain(nodes))
		}
	}
	failures = append(failures, a.cloudly.Drain(ctx))
	// The last that goes, so that the drain can be watched to its end.
	failures = append(failures, a.operator.Drain(ctx))
	outcome := "finished"
	if err := errors.Join(failures...); err != nil {
		outcome = "cut-short"
		a.cfg.Log.Warn("drain-cut-short", field.Error(err))
	}
	a.events.Publish(EventDrained, field.Outcome(outcome))
	return nil
}

// Close ends everything at once. Run calls it; it is for a relay that was started
// and never run.
func (a *Appliance) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), endWait)
	defer cancel()
	a.relay.enter(stopped)
	return errors.Join(a.listener.Close(), a.cloudly.Drain(ctx), a.operator.Close())
}

// await waits for goroutines whose work has ended.
func await(tasks *sync.WaitGroup) error {
	gone := make(chan struct{})
	go func() { defer close(gone); tasks.Wait() }()
	timer := time.NewTimer(endWait)
	defer timer.Stop()
	select {
	case <-gone:
		return nil
	case <-timer.C:
		return errNotEnded
	}
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
