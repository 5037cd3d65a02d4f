// Package duty is what every duty of the relay shows and says: the Duty
// interface, readiness checks, events, metrics, the sections of the status
// document, and the one logger. It imports no other room, and every room with
// a duty imports it.
//
// # What it promises
//
//   - Nothing of contract §18 leaves through it. A log line is a constant of
//     the program and fields of package field; an event is a declared type and
//     such fields; a check's hint is a constant. Texts of run time have no way
//     in but the grammars of package field. Lines of foreign loggers (slog's
//     default, the standard log package, http.Server.ErrorLog) are recognised
//     and named, and their text is dropped. There is no switch to change that.
//   - Judge, Assemble, NewCatalogue and Gather are pure: the same input gives
//     the same output in the same order.
//   - Events have sequence numbers from 1 without gaps, and a reader is told
//     how many it has missed.
//   - Every series of a metric exists from the start; adding to one allocates
//     nothing and takes no lock.
//   - No line can flood the log: each message has a budget, and what was left
//     out is counted and said.
//
// # What it never does
//
// It opens nothing, reads no configuration, starts no goroutine (LineWriter
// apart, whose owner closes it) and keeps no state outside the values it
// returns. It writes no metric and no document in any wire format: the
// operator room does.
//
// # Lock order
//
// No lock of this package is held while another is taken or while foreign
// code runs: Events lets go of its lock before it writes the line, Metrics
// before it reads a Func.
//
// # Limits
//
// Events: DefaultEventCount, DefaultEventBytes, maxEventFields. Metrics:
// maxSeries a name. Log: ownBudget and foreignBudget a message, maxBudgets
// messages, DefaultQueueBytes waiting for a slow output. Texts: the table of
// package field.
package duty
