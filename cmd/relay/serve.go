package main

import (
	"io"
	"reflect"
	"strconv"

	"serve.zone/relay/appliance"
	"serve.zone/relay/config"
	"serve.zone/relay/duty"
)

const aboutServe = `usage: relay serve [FLAGS]

Runs the relay. Whether Cloudly is there or not, it waits; /readyz of the operator
endpoint says what for. SIGTERM and SIGINT end it within ten seconds, a second one
at once. SIGHUP reads the credential, the certificate and Cloudly's authorities
again.

A flag wins over the environment, the environment over the file, the file over the
default. Secrets stand in files of their own and nowhere else. The file named by
--config has the same keys as the flags, and under "protocol" some that only it
can have: see docs/configuration.md.

Exit codes: 0 ended by a signal; 1 the configuration is not valid; 2 it could not
start or could not go on; 3 ended by a second signal; 64 the command line was not
understood.

`

// serveVerb is `relay serve`. Its flags are made of the table of settings.
type serveVerb struct {
	settings []config.Setting
	flags    reflect.Value // a struct with a field for each setting with a flag
}

func newServeVerb() *serveVerb {
	v := &serveVerb{settings: config.Settings()}
	v.flags = serveFlags(v.settings)
	return v
}

func (*serveVerb) name() string    { return "serve" }
func (*serveVerb) summary() string { return "run the relay until a signal ends it" }
func (*serveVerb) help() string    { return aboutServe + config.Help() }
func (v *serveVerb) fields() any   { return v.flags.Addr().Interface() }
func (v *serveVerb) run(p process) int {
	return p.daemon(func(out io.Writer) (config.Log, func(*duty.Logger) (relay, error), error) {
		settings, report, err := config.Load(config.Sources{Flags: v.given(), Environ: p.environ, Open: p.open, Judge: appliance.Judge})
		sayHints(out, report)
		return settings.Log, func(log *duty.Logger) (relay, error) {
			return p.build(appliance.Config{Settings: settings, Build: thisBuild(), Log: log})
		}, err
	})
}

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

// given returns the flags that were given, by name, for config.Sources.
func (v *serveVerb) given() map[string]string {
	flags := map[string]string{}
	for i, s := range v.settings {
		if s.Flag == "" {
			continue
		}
		var g given
		switch field := v.flags.FieldByName("Setting" + strconv.Itoa(i)).Interface().(type) {
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
