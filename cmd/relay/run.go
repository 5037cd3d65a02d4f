package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"serve.zone/relay/appliance"
	"serve.zone/relay/config"
)

// Exit codes (design §8).
const (
	exitClean         = 0
	exitConfiguration = 1
	exitFailed        = 2
	exitForced        = 3
	exitUsage         = 64 // EX_USAGE of sysexits.h
)

// process is what a run of the program has of the world.
type process struct {
	program        string   // as it was started
	args           []string // without the program's name
	environ        []string
	stdout, stderr io.Writer

	// open opens the configuration file.
	open func(name string) (io.ReadCloser, error)
	// prepare changes what the whole process shares, before a secret is read.
	prepare func() error
	// signals subscribes to SIGTERM, SIGINT and SIGHUP; the function it returns
	// ends that.
	signals func() (<-chan os.Signal, func())
	// notify tells the service manager a state in the words of sd_notify(3), if
	// there is one that wants to be told.
	notify func(state string) error
	// build builds a relay. All but its seams is given.
	build func(appliance.Config) (relay, error)
}

// run is the program. It returns the exit code.
func run(p process) int {
	if err := config.JudgeArguments(p.args); err != nil {
		sayInvalid(p.stderr, err)
		return exitConfiguration
	}
	v, err := parse(p.args, verbs())
	if err != nil {
		return p.misused(err)
	}
	return v.run(p)
}

// print answers on standard output.
func (p process) print(text string) int {
	if _, err := io.WriteString(p.stdout, text); err != nil {
		say(p.stderr, "could not write the answer: "+plain(err))
		return exitFailed
	}
	return exitClean
}

// misused says what is wrong with the command line, and where help is.
func (p process) misused(err error) int {
	var usage *usageError
	if errors.As(err, &usage) && usage.empty {
		io.WriteString(p.stderr, helpText(""))
		return exitUsage
	}
	say(p.stderr, err.Error())
	ask := "relay help"
	if usage != nil && usage.verb != "" {
		ask += " " + usage.verb
	}
	say(p.stderr, "see "+ask)
	return exitUsage
}

// say writes one line for a person. There is nobody to tell when that fails.
func say(out io.Writer, line string) { io.WriteString(out, "relay: "+line+"\n") }

// sayInvalid says why there is no configuration, one violation a line.
func sayInvalid(out io.Writer, err error) {
	var invalid *config.InvalidError
	var lines []string
	more := 0
	switch list, isList := err.(interface{ Unwrap() []error }); {
	case errors.As(err, &invalid):
		for _, r := range invalid.Reasons {
			lines = append(lines, r.String())
		}
		more = invalid.More
	case isList:
		for _, one := range list.Unwrap() {
			lines = append(lines, plain(one))
		}
	default:
		say(out, "the configuration is not valid: "+plain(err))
		return
	}
	var b strings.Builder
	b.WriteString("relay: the configuration is not valid:\n")
	for _, line := range lines {
		b.WriteString("relay:   " + line + "\n")
	}
	if more > 0 {
		fmt.Fprintf(&b, "relay:   and %d more\n", more)
	}
	io.WriteString(out, b.String())
}

// sayHints says what else there is to know of how a configuration came about.
func sayHints(out io.Writer, r config.Report) {
	for _, name := range r.Ignored {
		say(out, name+" is ignored: Cloudly delivers the control token of Corestore sealed")
	}
	for _, u := range r.Unknown {
		hint := u.Name + " is no setting"
		if u.Suggest != "" {
			hint += " (did you mean " + u.Suggest + "?)"
		}
		say(out, hint)
	}
	for _, name := range r.Unused {
		say(out, r.From(name).String()+" is not read with this tls-source and acme-challenge")
	}
}
