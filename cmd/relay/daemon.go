package main

import (
	"context"
	"io"
	"time"

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

// daemon runs what a verb keeps running until a signal ends it, and returns the exit
// code. read reads its configuration, and says what there is to say about it; it
// returns how the log is to be and what builds the thing that runs. An error of either
// is one of the configuration.
func (p process) daemon(read func(out io.Writer) (config.Log, func(*duty.Logger) (relay, error), error)) (code int) {
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

	style, build, err := read(out)
	if err != nil {
		sayInvalid(out, err)
		return exitConfiguration
	}
	log := duty.NewLogger(duty.LogConfig{Out: out, Format: style.Format, Level: style.Level})
	defer log.TakeOver()()
	r, err := build(log)
	if err != nil {
		sayInvalid(out, err)
		return exitConfiguration
	}
	if unprepared != nil {
		log.Warn("dumps-not-prevented", field.Error(unprepared))
	}

	// From here on a signal waits for what runs. Until here it ended the process,
	// also while a configuration was read from a pipe that nobody writes.
	signals, unsubscribe := p.signals()
	defer unsubscribe()
	code, err = supervise(r, signals, p.notify, log)
	if err != nil {
		say(out, "could not start: "+plain(err))
	}
	return code
}
