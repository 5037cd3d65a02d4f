package duty

import (
	"log"
	"log/slog"
)

// TakeOver makes the logger the end of what the process's libraries write:
// slog's default logger and the standard log package. It is called once, by
// the program and not by a library; the function it returns puts back what
// was there before, for tests.
//
// What bypasses it is the Go runtime's own report of a panic that nobody
// recovered, which is why every goroutine that handles a peer's bytes has a
// Recovered.
func (l *Logger) TakeOver() (restore func()) {
	before := slog.Default()
	out, flags, prefix := log.Writer(), log.Flags(), log.Prefix()

	// slog.SetDefault turns the standard log package to slog as well, so the
	// order matters: its lines are taken as they are, without a time.
	slog.SetDefault(slog.New(l.Handler("slog")))
	log.SetFlags(0)
	log.SetPrefix("")
	log.SetOutput(l.ErrorLog("log").Writer())

	return func() {
		slog.SetDefault(before)
		log.SetFlags(flags)
		log.SetPrefix(prefix)
		log.SetOutput(out)
	}
}
