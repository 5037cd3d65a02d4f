// Package config is the one table of a relay's settings (design §7) and the
// reader of its four sources: command line, environment, file, defaults.
//
// # What it promises
//
// A setting is one row of one table. Out of the same row come the flag, the
// names of its environment variables, its key in the file, its default, the
// text of --help and docs/configuration.md; a test compares the document with
// the table.
//
// For every setting a flag wins over the environment, the environment over the
// file, the file over the default. Of several variables of one setting the
// first that is set wins. A variable that is set to nothing counts as not set;
// a flag or a key of the file that is given as "" is given, and means empty.
//
// Load returns either a whole Config, in which every rule holds that can be
// judged without a socket, or an *InvalidError with every violation at once.
// Each names its setting, where the value stands and a Rule out of a closed
// set, so that no value can reach an error or a log (contract §18).
//
// Secrets come from files alone. A value on the command line, in a variable or
// in the configuration file that has the shape of a bearer, a JWT or a private
// key ends the start by name, whatever it was meant for. CORESTORE_API_TOKEN is
// ignored and reported: the token comes sealed from Cloudly (contract §12.1).
//
// # What it never does
//
// It opens no file itself (Sources has the opener), reads no environment, binds
// nothing, logs nothing, keeps no state and starts no goroutine. It does not
// read the files that settings name: their owners do, and watch them. It parses
// no command line: cmd/relay does, from Settings.
//
// # Limits
//
// maximumFile bounds the configuration file, contract.MaximumReasons the
// reasons that are kept. The other limits stand beside the readers of values.
// There are no locks.
package config
