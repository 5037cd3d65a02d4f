package main

import "fmt"

const aboutRelay = `relay stands between the nodes of a cluster and their control plane, Cloudly. It
keeps one outbound WebSocket to Cloudly, over which every node's session travels;
nothing dials into the cluster. It holds no authority: it may refuse what it
carries, and never widen it.

usage: relay VERB [FLAGS]

verbs:
`

const aboutExits = `
exit codes: 0 clean, 1 the configuration is not valid, 2 could not start or could
not go on, 3 ended by a second signal, 64 the command line was not understood
`

const aboutHelp = `usage: relay help [VERB]

Explains the relay, or one of its verbs. relay VERB --help does the same.

Exit codes: 0 it was explained; 2 the output did not take it; 64 the command line was not
understood.
`

// helpVerb is `relay help`.
type helpVerb struct {
	Topic string `arg:"" optional:"" name:"verb"` // the verb to explain, empty for the program
}

func (*helpVerb) name() string    { return "help" }
func (*helpVerb) summary() string { return "explain the relay, or a verb: relay help serve" }
func (*helpVerb) help() string    { return aboutHelp }
func (v *helpVerb) fields() any   { return v }

// judge refuses a verb that there is not.
func (v *helpVerb) judge() error {
	if v.Topic != "" && verbNamed(verbs(), v.Topic) == nil {
		return fmt.Errorf("unknown verb %s", v.Topic)
	}
	return nil
}

func (v *helpVerb) run(p process) int { return p.print(helpText(v.Topic)) }

// helpText explains a verb, or the program when it is empty.
func helpText(name string) string {
	all := verbs()
	if v := verbNamed(all, name); v != nil {
		return v.help()
	}
	return aboutRelay + verbList(all) + aboutExits
}
