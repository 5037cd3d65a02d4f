package main

import (
	"errors"
	"strings"

	"github.com/alecthomas/kong"

	"serve.zone/relay/duty/secret"
)

// usageError is a command line that was not understood.
type usageError struct {
	text  string
	verb  string // whose help to point to, empty for the program's
	empty bool   // nothing was asked for at all
}

func (e *usageError) Error() string { return e.text }

// grammar is what every command line may have. The verbs are added to it.
type grammar struct {
	Asked asked `name:"help" short:"h"`
}

// parse reads a command line that holds no secret (config.JudgeArguments) and returns
// the one verb that is asked for, with its fields filled. An error is a *usageError.
func parse(args []string, all []verb) (verb, error) {
	if len(args) == 0 {
		return nil, &usageError{text: "no verb is given", empty: true}
	}
	if args[0] == "--version" || args[0] == "-version" { // which many programs have, and no verb here
		args = append([]string{versionName}, args[1:]...)
	}
	options := []kong.Option{kong.Name("relay"), kong.NoDefaultHelp()}
	for _, v := range all {
		options = append(options, kong.DynamicCommand(v.name(), "", "", v.fields()))
	}
	parser, err := kong.New(new(grammar), options...)
	if err != nil {
		panic("relay: the grammar is not one: " + err.Error()) // every run of any verb would find it
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return refused(err)
	}
	asked := verbNamed(all, parsed.Selected().Name)
	if v, judges := asked.(judge); judges {
		if err := v.judge(); err != nil {
			name := asked.name()
			if _, isHelp := asked.(*helpVerb); isHelp {
				name = "" // who asked about a verb that there is not wants the list
			}
			return nil, unclear(err, name)
		}
	}
	return asked, nil
}

// refused tells a request for help from a command line that was not understood.
func refused(err error) (verb, error) {
	var name string
	if failed := (*kong.ParseError)(nil); errors.As(err, &failed) && failed.Context.Selected() != nil {
		name = failed.Context.Selected().Name
	}
	if errors.Is(err, errAsked) {
		return &helpVerb{Topic: name}, nil
	}
	return nil, unclear(err, name)
}

// unclear makes a usage error of what a parser says, which quotes arguments. What
// config.JudgeArguments let pass is no secret that it knows; this is the wider net.
func unclear(err error, verb string) error {
	text := oneLine(err.Error())
	if rest, isVerb := strings.CutPrefix(text, "unexpected argument "); isVerb && verb == "" {
		text = "unknown verb " + rest
	}
	if secret.Find(text) != secret.None {
		text = "an argument is not understood; it is not repeated, since it looks like a secret"
	}
	return &usageError{text: text, verb: verb}
}

// asked is the flag --help of any verb.
type asked bool

// errAsked ends a parse with the verb that help was asked for.
var errAsked = errors.New("help was asked for")

// BeforeReset is called by kong once all arguments are known to be valid.
func (asked) BeforeReset() error { return errAsked }
