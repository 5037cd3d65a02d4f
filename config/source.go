package config

import (
	"io"
	"strconv"
)

// Sources are what a configuration is read from. The zero value has none of
// them.
type Sources struct {
	// Flags are the values given on the command line, by the flag's name without
	// its dashes. A switch without a value is "true". A flag that was not given
	// is absent.
	Flags map[string]string
	// Environ is the environment as os.Environ returns it.
	Environ []string
	// Open opens the configuration file, whose name is a flag or a variable. It
	// is needed only where one is given.
	Open func(name string) (io.ReadCloser, error)
	// Judge adds what the program cannot honour, though this package admits it; nil
	// adds nothing. The fields of settings that were refused already are empty.
	Judge func(Config) []Refusal
}

// Refusal is a setting, by its name, and the rule that its value breaks.
type Refusal struct {
	Setting string
	Rule    Rule // a constant, or a text that quotes no value but a choice of the table
}

// Source is one of the four places that a value can come from.
type Source uint8

// The sources, the weakest first.
const (
	FromDefault Source = iota
	FromFile
	FromEnvironment
	FromFlag
	fromSources
)

var sourceNames = [fromSources]string{
	FromDefault: "default", FromFile: "file", FromEnvironment: "environment", FromFlag: "flag",
}

// String returns the source's name.
func (s Source) String() string { return sourceNames[s] }

// Place is where the value of a setting stands.
type Place struct {
	// Setting is the setting's name; for something that is no setting what it is
	// called in its source, empty when that must not be shown.
	Setting string
	Source  Source
	// Name is the flag with its dashes, or the variable.
	Name string
	// Line is the line in the file.
	Line int
}

// String returns the place as an operator reads it.
func (p Place) String() string {
	setting := p.Setting
	if setting == "" {
		setting = "configuration"
	}
	switch {
	case p.Name != "":
		return setting + " (from " + p.Name + ")"
	case p.Line > 0:
		return setting + " (line " + strconv.Itoa(p.Line) + " of the file)"
	case p.Source != FromDefault && p.Setting == "":
		return setting + " (" + p.Source.String() + ")"
	}
	return setting
}

// Report is what there is to say about how a configuration came about, also
// when it was refused. It holds names and no values.
type Report struct {
	// Settings says for each setting, in the table's order, where its value
	// stands.
	Settings []Place
	// Ignored are the variables that another release would have read and this
	// one does not: CORESTORE_API_TOKEN, once, where it is set.
	Ignored []string
	// Unknown are the variables that begin with RELAY_ and are no setting's,
	// sorted. They end nothing: an orchestrator sets variables of that form for
	// a service that is called relay.
	Unknown []Unknown
	// Unused are the settings that were given and that the chosen tls-source or
	// acme-challenge does not read, in the table's order.
	Unused []string
}

// Unknown is a variable that is no setting's.
type Unknown struct {
	Name string
	// Suggest is the variable that was probably meant, empty when there is none.
	Suggest string
}

// From returns the place of a setting's value.
func (r Report) From(setting string) Place {
	for _, p := range r.Settings {
		if p.Setting == setting {
			return p
		}
	}
	return Place{Setting: setting}
}
