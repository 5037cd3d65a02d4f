package main

import (
	"context"
	"time"

	"serve.zone/relay/appliance"
	"serve.zone/relay/config"
	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// What is waited for until the last lines were taken: long enough for a log
// driver that is busy, and next to nothing when a second signal said "at once".
const (
	flushWait       = time.Second
	forcedFlushWait = 100 * time.Millisecond
)

// serve runs a relay until a signal ends it, and returns the exit code.
func (p process) serve(flags map[string]string) (code int) {
	unprepared := p.prepare()
	out := duty.NewLineWriter(p.stderr, 0)
	defer func() {
		wait := flushWait
		if code == exitForced {
			wait = forcedFlushWait
		}
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		out.Close(ctx) // who would read of its error?
	}()

	settings, report, err := config.Load(config.Sources{Flags: flags, Environ: p.environ, Open: p.open})
	sayHints(out, report)
	if err != nil {
		sayInvalid(out, err)
		return exitConfiguration
	}
	log := duty.NewLogger(duty.LogConfig{Out: out, Format: settings.Log.Format, Level: settings.Log.Level})
	defer log.TakeOver()()
	r, err := p.build(appliance.Config{Settings: settings, Build: thisBuild(), Log: log})
	if err != nil {
		sayInvalid(out, err)
		return exitConfiguration
	}
	if unprepared != nil {
		log.Warn("dumps-not-prevented", field.Error(unprepared))
	}

	// From here on a signal waits for the relay. Until here it ended the process,
	// also while a configuration was read from a pipe that nobody writes.
	signals, unsubscribe := p.signals()
	defer unsubscribe()
	code, err = supervise(r, signals, p.notify, log)
	if err != nil {
		say(out, "could not start: "+plain(err))
	}
	return code
}
