package main

import (
	"errors"
	"fmt"
	"io"

	"serve.zone/relay/config"
	"serve.zone/relay/duty"
	"serve.zone/relay/hub/node/credential"
)

const aboutNode = `usage: relay node --credential-file=FILE [--interface=NAME] [--address=PREFIX]...
                  [--route=PREFIX]... [--log-level=LEVEL] [--log-format=FORMAT]
       relay node --credential-file=FILE --userspace --address=ADDRESS...
                  [--forward=[ADDRESS:]PORT=ADDRESS:PORT]...
                  [--publish=PORT=HOST:PORT]... [--log-level=LEVEL] [--log-format=FORMAT]

Runs a node's side of the tunnel: dials the hub of the credential, proves itself, and
carries IPv4 packets between the hub and this machine until a signal ends it. It dials
again for as long as it takes, whatever the hub answers. Which packets pass, the hub
decides: relay explain, asked there, says why.

There are two ways. On a network interface every program of the machine is reached; it
needs Linux, /dev/net/tun and CAP_NET_ADMIN. With --userspace there is a network inside
the program, which needs no privilege; --forward and --publish lead into it and out.

  --credential-file=FILE
      The managed VPN credential, mode 0600: YAML with the keys
        hub: 192.0.2.10:4433         the hub's UDP address and port
        hub-public-key: KEY          what the hub is known by (relay keygen --public)
        authority-id: ID             of the network
        private-key: KEY             this node's; or private-key-file: FILE, made by
                                     relay keygen and looked for beside the credential
        expires-at: TIME             Unix milliseconds or RFC 3339; may be left out
      It is looked at every 5 s, and on SIGHUP at once. A successor, in which nothing
      but expires-at differs, is taken while the tunnel goes on; any other is refused
      by name in the log, and what was read before stays.
  --address=ADDRESS or PREFIX, again and again
      A workload address of this node, as the network grants it. The hub relays nothing
      from the control address, so without one nothing of this machine's own passes.
  --interface=NAME
      The interface to make. (default relay0)
  --route=PREFIX, again and again
      What is sent into the tunnel, from the first --address where a packet has no
      source yet. Nothing else of the machine is changed.
  --userspace
      A network inside the program in place of an interface.
  --forward=[ADDRESS:]PORT=ADDRESS:PORT, again and again
      Takes TCP connections on this machine, on 127.0.0.1 unless an address is given,
      and leads them to an address in the cluster.
  --publish=PORT=HOST:PORT, again and again
      Takes TCP connections from the cluster on a port of every --address, and leads
      them to a service that this machine reaches.
      Both together listen on at most 256 (each --forward is one, each --publish one on
      every --address), with 256 connections at once; one on which nothing came for an
      hour is ended.
  --log-level=LEVEL
      debug, info, warn or error. (default info)
  --log-format=FORMAT
      json or text. (default json)

The log on standard error has a line for each change of state, with the reason of a
closed set (docs/tunnel.md, section 10), and counters at the end. SIGTERM and SIGINT end
it within a second.

Exit codes: 0 ended by a signal; 1 a flag or the credential is not valid; 2 it could not
start or could not go on; 3 ended by a second signal; 64 the command line was not
understood.
`

// nodeVerb is `relay node`.
type nodeVerb struct {
	CredentialFile given       `name:"credential-file"`
	Interface      given       `name:"interface"`
	Userspace      givenSwitch `name:"userspace"`
	Address        givenList   `name:"address"`
	Route          givenList   `name:"route"`
	Forward        givenList   `name:"forward"`
	Publish        givenList   `name:"publish"`
	LogLevel       given       `name:"log-level"`
	LogFormat      given       `name:"log-format"`
}

func (*nodeVerb) name() string    { return "node" }
func (*nodeVerb) summary() string { return "run a node's side of the hub's tunnel" }
func (*nodeVerb) help() string    { return aboutNode }
func (v *nodeVerb) fields() any   { return v }

// judge wants the credential.
func (v *nodeVerb) judge() error {
	if v.CredentialFile.text == "" {
		return errors.New("--credential-file is needed, with the name of a file")
	}
	return nil
}

func (v *nodeVerb) run(p process) int {
	return p.daemon(func(io.Writer) (config.Log, func(*duty.Logger) (relay, error), error) {
		settings, err := v.settings()
		return settings.log, func(log *duty.Logger) (relay, error) {
			held, err := credential.Read(settings.credentialFile)
			if err != nil {
				return nil, fmt.Errorf("--credential-file: %w", err)
			}
			return newMember(settings, held, log), nil
		}, err
	})
}
