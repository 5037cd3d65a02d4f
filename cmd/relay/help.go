package main

import "serve.zone/relay/config"

const aboutRelay = `relay stands between the nodes of a cluster and their control plane, Cloudly. It
keeps one outbound WebSocket to Cloudly, over which every node's session travels;
nothing dials into the cluster. It holds no authority: it may refuse what it
carries, and never widen it.

usage: relay VERB [FLAGS]

verbs:
  serve      run the relay until a signal ends it
  version    say which release this is (--json for programs)
  help       explain the relay, or a verb: relay help serve

exit codes: 0 clean, 1 the configuration is not valid, 2 could not start or could
not go on, 3 ended by a second signal, 64 the command line was not understood
`

const aboutServe = `usage: relay serve [FLAGS]

Runs the relay. Whether Cloudly is there or not, it waits; /readyz of the operator
endpoint says what for. SIGTERM and SIGINT end it within ten seconds, a second one
at once. SIGHUP reads the credential, the certificate and Cloudly's authorities
again.

A flag wins over the environment, the environment over the file, the file over the
default. Secrets stand in files of their own and nowhere else. The file named by
--config has the same keys as the flags, and under "protocol" some that only it
can have: see docs/configuration.md.

`

const aboutVersion = `usage: relay version [--json]

Says which release this is, and the commit and the Go toolchain it was built from.
--json answers with one object: version, revision (empty when not known), go.
`

const aboutHelp = `usage: relay help [VERB]

Explains the relay, or one of its verbs. relay VERB --help does the same.
`

// helpText explains a verb, or the program when it is empty.
func helpText(verb string) string {
	switch verb {
	case verbServe:
		return aboutServe + config.Help()
	case verbVersion:
		return aboutVersion
	case verbHelp:
		return aboutHelp
	}
	return aboutRelay
}
