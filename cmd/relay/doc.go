// Command relay is the program: the line between an operator and package
// appliance, and between a node's operator and package hub/node. It reads the command
// line, gives what it runs the real network and clock, turns signals into what that
// understands, and exits with a code that tells how it ended.
//
// # What it promises
//
// Each verb is a file of its own that meets the interface verb, and a place in the
// list of verbs; `relay help` is made of that list. `relay help serve` lists every
// setting that has a flag, out of the one table of package config; kong is given that
// table's flags and judges none of their values, nor those of any other verb.
//
// Exit codes: 0 clean, 1 the configuration is not valid, 2 could not start or
// could not go on, 3 ended by a second signal, 64 the command line was not
// understood (EX_USAGE of sysexits.h).
//
// Three verbs run until a signal: serve a relay, node a member of its hub, demo a
// cluster of its own. The first SIGTERM or SIGINT begins the end, a second one ends the
// process at once. To serve and node SIGHUP says to read files again (a relay's
// credential, certificate and authorities of Cloudly; a node's credential), and never ends
// them; behind a reload that runs one waits, whatever number of signals came. To demo,
// which has no such files, it says that the terminal was closed: the first begins the
// end, and no other forces it. status --watch ends with any of them. A closed standard error ends nothing: SIGPIPE is ignored,
// and the log counts what it lost.
//
// Where NOTIFY_SOCKET is set, systemd is told READY=1 once the listeners are
// bound, whether or not Cloudly is there, and STOPPING=1 when a signal ends it. It
// is not told RELOADING=1: a reload waits for the file of the authorities alone,
// and who uses the credential or the certificate reads it in a time of its own, so
// there is no end of it to tell.
//
// # What is said where
//
// What a verb is asked for goes to standard output. Up to the start, and about a
// start that failed, standard error has plain sentences for a person, each line
// beginning with "relay: ". From the start on it has lines of the one logger alone
// (contract §18), to which slog's default and the standard log package are turned.
// Both go through one queue, so that an output nobody reads holds up nothing.
//
// # Secrets
//
// A secret on the command line is refused before kong sees it, since a parser
// quotes what it does not understand. What kong says is looked at once more.
//
// The process leaves no core dump and no other process of its user may read its
// memory, see withoutDumps. A panic that no room recovered is reported by the Go
// runtime, at the level "single" that GOTRACEBACK stands at by default: functions
// and lines of the goroutine that failed, with arguments as words, so that a text
// is an address and a length. "none" would say less and leave a crash that nobody
// can put right. What the runtime does print in full is the text that was given to
// panic; so every goroutine that handles a peer's bytes recovers its own
// (duty.Logger.Recovered), and here those that run the appliance do too. A higher
// level in the environment, up to "crash", still shows no text and dumps no core.
//
// # What it never does
//
// It decides nothing that is carried. It opens no file but those that the configuration
// names, a node's credential and its key, the key that keygen makes or reads, and what
// lies in the temporary folder of a demonstration. It sets neither GOMAXPROCS nor
// GOMEMLIMIT: the runtime reads the limits of cgroups itself. No state of its own is
// global; what a process shares anyway (signals, the default loggers, its dumpability) is
// taken by verbs that hold a secret or that a closed output is to end in order, and given
// back where that can be.
//
// # Goroutines and limits
//
// supervise owns one that runs the appliance or the member, and two for what may hang on
// the outside (asides): one tells the service manager, one reloads. stopWait bounds the
// end after a signal, asideWait and flushWait what is waited for behind it. A member
// owns one that watches its credential and one that runs its ports, which have both
// ended when its Run returns. There are no locks.
package main
