package main

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// stopWait bounds the end after a signal. The appliance drains within 10 s and
// needs a few more when parts of it hang; what is not over by then never will be.
const stopWait = 20 * time.Second

// panicked stands for a panic, which was logged where it was recovered.
type panicked struct{}

func (panicked) Error() string { return "a panic" }

// LogName returns the name for a log line.
func (panicked) LogName() string { return "panicked" }

// supervise starts and runs a relay until it ends, and returns the exit code. The
// error is that of a start that failed, to be told to a person. After exitForced,
// and after a relay that did not end in time, what it had running goes on; only
// the end of the process ends it.
func supervise(r relay, signals <-chan os.Signal, notify func(string) error, log *duty.Logger) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	started, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- live(ctx, r, started, log) }()

	beside := newAsides(notify, r.Reload, log)
	defer func() { beside.end(code != exitForced) }()

	var overdue <-chan time.Time
	for {
		stopping := ctx.Err() != nil
		select {
		case <-started:
			started = nil
			if !stopping {
				beside.tell(daemon.SdNotifyReady)
			}
		case err := <-ended:
			return judgeEnd(err, stopping, log)
		case sig := <-signals:
			log.Info("signal-received", field.Reason(signalName(sig)))
			switch {
			case sig == syscall.SIGHUP && stopping:
				log.Info("reload-left-out", field.Reason("stopping"))
			case sig == syscall.SIGHUP:
				beside.readAgain()
			case !stopping:
				beside.tell(daemon.SdNotifyStopping)
				cancel()
				overdue = time.After(stopWait)
			default:
				return exitForced, nil
			}
		case <-overdue:
			log.Error("stop-overdue", field.Limit(int(stopWait/time.Second)))
			return exitFailed, nil
		}
	}
}

// startError is a start that failed.
type startError struct{ cause error }

func (e *startError) Error() string { return e.cause.Error() }
func (e *startError) Unwrap() error { return e.cause }

// live is the whole life of a relay. started is closed when it has begun.
func live(ctx context.Context, r relay, started chan<- struct{}, log *duty.Logger) error {
	return guarded(log, func() error {
		if err := r.Start(ctx); err != nil {
			return &startError{err}
		}
		close(started)
		return r.Run(ctx)
	})
}

// guarded makes an error of a panic, after it was logged without its values.
func guarded(log *duty.Logger, f func() error) (err error) {
	defer func() {
		if log.Recovered(recover()) {
			err = panicked{}
		}
	}()
	return f()
}

// judgeEnd returns the exit code of a relay that has ended, and what is to be
// told of a start that failed.
func judgeEnd(err error, stopping bool, log *duty.Logger) (int, error) {
	var start *startError
	switch {
	case errors.As(err, &start) && stopping && errors.Is(err, context.Canceled):
		return exitClean, nil // it was told to stop before it had begun
	case start != nil:
		return exitFailed, start
	case err != nil:
		log.Error("relay-ended", field.Error(err))
		return exitFailed, nil
	case !stopping:
		// A service manager must not take this for a stop that was asked for.
		log.Error("relay-ended", field.Reason("unasked"))
		return exitFailed, nil
	}
	return exitClean, nil
}

func signalName(sig os.Signal) string {
	switch sig {
	case syscall.SIGTERM:
		return "sigterm"
	case syscall.SIGINT:
		return "sigint"
	case syscall.SIGHUP:
		return "sighup"
	}
	return "other"
}
