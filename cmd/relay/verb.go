package main

import (
	"fmt"
	"slices"
	"strings"
)

// A verb is one thing that the program can do. Each has a file of its own; a new one is
// such a file and a place in verbs.
type verb interface {
	name() string
	// summary is its line in the list of verbs: lower case, without a stop.
	summary() string
	// help explains it, and begins with "usage: relay" and its name.
	help() string
	// fields is a pointer to a struct with a field for each flag and argument, as kong
	// wants a command to be. Values that kong need not judge are of type given.
	fields() any
	// run does it, once the fields are filled, and returns the exit code.
	run(p process) int
}

// judge is met by verbs whose fields can be wrong in ways that kong does not know. The
// error is one of the command line, for which the exit code is exitUsage.
type judge interface{ judge() error }

// verbs returns every verb, in the order of help, with empty fields.
func verbs() []verb {
	return []verb{newServeVerb(), newDemoVerb(), new(nodeVerb), new(keygenVerb), new(statusVerb), new(explainVerb), new(versionVerb), new(helpVerb)}
}

// verbNamed finds a verb, nil when there is none of that name.
func verbNamed(all []verb, name string) verb {
	i := slices.IndexFunc(all, func(v verb) bool { return v.name() == name })
	if i < 0 {
		return nil
	}
	return all[i]
}

// verbList is the list of verbs for a person.
func verbList(all []verb) string {
	width := 0
	for _, v := range all {
		width = max(width, len(v.name()))
	}
	var b strings.Builder
	for _, v := range all {
		fmt.Fprintf(&b, "  %-*s  %s\n", width, v.name(), v.summary())
	}
	return b.String()
}
