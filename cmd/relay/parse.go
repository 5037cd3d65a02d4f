package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"serve.zone/relay/config"
	"serve.zone/relay/duty/secret"
)

// The verbs.
const (
	verbServe   = "serve"
	verbVersion = "version"
	verbHelp    = "help"
)

// command is what a command line asks for.
type command struct {
	verb  string
	topic string            // of help: the verb to explain, empty for the program
	json  bool              // of version
	flags map[string]string // of serve: the settings that were given, by flag
}

// usageError is a command line that was not understood.
type usageError struct {
	text  string
	verb  string // whose help to point to, empty for the program's
	empty bool   // nothing was asked for at all
}

func (e *usageError) Error() string { return e.text }

// grammar is the command line but for the flags of serve, which are made of the
// table of settings.
type grammar struct {
	Asked   asked `name:"help" short:"h"`
	Version struct {
		JSON bool `name:"json"`
	} `cmd:"" name:"version"`
	Help struct {
		Topic string `arg:"" optional:"" name:"verb"`
	} `cmd:"" name:"help"`
}

// parse reads a command line that holds no secret (config.JudgeArguments). An
// error is a *usageError.
func parse(args []string) (command, error) {
	if len(args) == 0 {
		return command{}, &usageError{text: "no verb is given", empty: true}
	}
	var g grammar
	settings := config.Settings()
	serve := serveFlags(settings)
	parser, err := kong.New(&g, kong.Name("relay"), kong.NoDefaultHelp(),
		kong.DynamicCommand(verbServe, "", "", serve.Addr().Interface()))
	if err != nil {
		panic("relay: the grammar is not one: " + err.Error()) // every run of any verb would find it
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return refused(err)
	}
	c := command{verb: parsed.Selected().Name, topic: g.Help.Topic, json: g.Version.JSON}
	switch {
	case c.verb == verbServe:
		c.flags = givenFlags(settings, serve)
	case c.topic != "" && !slices.Contains([]string{verbServe, verbVersion, verbHelp}, c.topic):
		return command{}, unclear(fmt.Errorf("unknown verb %s", c.topic), "")
	}
	return c, nil
}

// refused tells a request for help from a command line that was not understood.
func refused(err error) (command, error) {
	var verb string
	if failed := (*kong.ParseError)(nil); errors.As(err, &failed) && failed.Context.Selected() != nil {
		verb = failed.Context.Selected().Name
	}
	if errors.Is(err, errAsked) {
		return command{verb: verbHelp, topic: verb}, nil
	}
	return command{}, unclear(err, verb)
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

// serveFlags returns a struct that has a field for each setting with a flag, in
// the table's order, as kong wants a command to be.
func serveFlags(settings []config.Setting) reflect.Value {
	var fields []reflect.StructField
	for i, s := range settings {
		if s.Flag == "" {
			continue
		}
		kind := reflect.TypeFor[given]()
		if s.Kind == config.KindSwitch {
			kind = reflect.TypeFor[givenSwitch]()
		}
		fields = append(fields, reflect.StructField{
			Name: "Setting" + strconv.Itoa(i), Type: kind, Tag: reflect.StructTag(`name:"` + s.Flag + `"`),
		})
	}
	return reflect.New(reflect.StructOf(fields)).Elem()
}

// givenFlags returns what was given, for config.Sources.
func givenFlags(settings []config.Setting, serve reflect.Value) map[string]string {
	flags := map[string]string{}
	for i, s := range settings {
		if s.Flag == "" {
			continue
		}
		var g given
		switch field := serve.FieldByName("Setting" + strconv.Itoa(i)).Interface().(type) {
		case given:
			g = field
		case givenSwitch:
			g = given(field)
		}
		if g.isGiven {
			flags[s.Flag] = g.text
		}
	}
	return flags
}

// given is the value of a flag as it stands on the command line. Package config
// judges it.
type given struct {
	text    string
	isGiven bool
}

// Decode implements kong.MapperValue.
func (g *given) Decode(ctx *kong.DecodeContext) error {
	if g.isGiven {
		return errors.New("is given twice")
	}
	if !ctx.Scan.Peek().IsValue() {
		return errors.New("has no value; one that begins with a dash is written behind '='")
	}
	*g = given{text: ctx.Scan.Pop().String(), isGiven: true}
	return nil
}

// givenSwitch is a flag that means true when nothing stands behind it.
type givenSwitch given

// Decode implements kong.MapperValue.
func (g *givenSwitch) Decode(ctx *kong.DecodeContext) error {
	if !g.isGiven && ctx.Scan.Peek().Type != kong.FlagValueToken {
		*g = givenSwitch{text: "true", isGiven: true}
		return nil
	}
	return (*given)(g).Decode(ctx)
}

// IsBool tells kong that a value is not needed.
func (g *givenSwitch) IsBool() bool { return true }
