package rig

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"serve.zone/relay/simulate"
)

// Option changes what New makes.
type Option func(*options)

// options are what a rig was asked for.
type options struct {
	settings    map[string]string // overrides, by name; those of the rig itself come first
	without     []string
	source      Source
	arguments   []string
	environment []string
	document    string

	plain, anyPort, notStarted bool
	tolerant                   bool
	cloudly                    []func(*simulate.CloudlyConfig)
	prepare                    []func(*Rig)

	// The rig's own tests run another program, which is to be given up sooner.
	program  func() (string, error)
	stopWait time.Duration
}

// Source is where a relay reads its settings from.
type Source int

// The sources of settings.
const (
	Flags       Source = iota // --listen=…, the default
	Environment               // RELAY_LISTEN=…
	File                      // listen: … in the file that --config names
)

// With gives a setting a value, by its name without dashes, in place of the rig's
// own if it has one: With("log-level", "info"). Where the relay listens is the
// rig's to say, except in a start that is to be refused.
func With(name, value string) Option { return func(o *options) { o.settings[name] = value } }

// Without leaves out one of the rig's own settings.
func Without(name string) Option { return func(o *options) { o.without = append(o.without, name) } }

// From gives the settings through another source than flags.
func From(s Source) Option { return func(o *options) { o.source = s } }

// Arguments are added behind "serve" and its flags, as they are.
func Arguments(arguments ...string) Option {
	return func(o *options) { o.arguments = append(o.arguments, arguments...) }
}

// Variable adds a variable to the environment, of which a relay is given nothing
// but what the rig and options state.
func Variable(name, value string) Option {
	return func(o *options) { o.environment = append(o.environment, name+"="+value) }
}

// Document is added to the configuration file, which there is then in any case:
// the protocol section can be said nowhere else.
func Document(yaml string) Option { return func(o *options) { o.document += yaml } }

// PlainCloudly makes Cloudly's sockets ws in place of wss.
func PlainCloudly() Option { return func(o *options) { o.plain = true } }

// AnyPort lets the relay's kernel choose the ports of the node listener and the
// operator endpoint, at every start. Without it the rig chooses, and a restarted
// relay has the same.
func AnyPort() Option { return func(o *options) { o.anyPort = true } }

// Cloudly changes the configuration that the simulated Cloudly is made of.
func Cloudly(change func(*simulate.CloudlyConfig)) Option {
	return func(o *options) { o.cloudly = append(o.cloudly, change) }
}

// Before runs when everything but the relay is there: for scripts that the first
// connection should meet.
func Before(prepare func(*Rig)) Option {
	return func(o *options) { o.prepare = append(o.prepare, prepare) }
}

// NotStarted leaves it to the test to start the relay, by Start or Run.
func NotStarted() Option { return func(o *options) { o.notStarted = true } }

// TolerateViolations leaves it to the test to judge what the simulated peers
// noticed. Without it a violation fails the test at its end.
func TolerateViolations() Option { return func(o *options) { o.tolerant = true } }

// invocation is how a relay is started.
type invocation struct {
	arguments, environment []string
	document               string // of the configuration file, "" for none
}

// invoke spells settings for a source. Path is where the configuration file will
// be; one is needed when the invocation has a document.
func invoke(settings map[string]string, o *options, path string) invocation {
	call := invocation{arguments: []string{"serve"}}
	var document strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		value := settings[name]
		switch o.source {
		case Flags:
			call.arguments = append(call.arguments, "--"+name+"="+value)
		case Environment:
			call.environment = append(call.environment, variableOf(name)+"="+value)
		case File:
			document.WriteString(name + ": " + strconv.Quote(value) + "\n")
		}
	}
	document.WriteString(o.document)
	if call.document = document.String(); call.document != "" {
		if o.source == Environment {
			call.environment = append(call.environment, variableOf("config")+"="+path)
		} else {
			call.arguments = append(call.arguments, "--config="+path)
		}
	}
	call.arguments = append(call.arguments, o.arguments...)
	call.environment = append(call.environment, o.environment...)
	return call
}

// variableOf returns the variable of a setting.
func variableOf(name string) string {
	return "RELAY_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
