package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
)

const aboutExplain = `usage: relay explain --from=ADDRESS --to=ADDRESS [--operator=ADDRESS:PORT] [--json]

Asks a running relay which rule of its hub's network admits or drops a packet from one
address to another, and says it in a sentence. The answer is that of the policy in force
at this moment, by the very table that packets are judged by; what else stands in a
packet's way at present, such as a node without a session, is said behind it.

It is asked on the relay's own machine: to others its operator endpoint does not answer
this.

  --from=ADDRESS, --to=ADDRESS
      Addresses inside the tunnel. Policy is by pairs of addresses, whatever the
      protocol and the port.
`

const aboutExplainEnd = `  --json
      One object in place of the sentence: admitted, action (relay, echo or drop),
      reason (of a drop), revision of the network, from and to (address, node, prefix,
      domain, connected), suspended, sentence.

Exit codes: 0 there is an answer, whether the packet is admitted or dropped; 1 an address
is none; 2 the relay could not be asked, or it has no hub; 64 the command line was not
understood.
`

// explainVerb is `relay explain`.
type explainVerb struct {
	Endpoint operatorFlag `embed:""`
	From     given        `name:"from"`
	To       given        `name:"to"`
	JSON     bool         `name:"json"`
}

func (*explainVerb) name() string { return "explain" }
func (*explainVerb) summary() string {
	return "say which rule admits or drops a packet between two nodes"
}
func (*explainVerb) help() string  { return aboutExplain + aboutOperator() + aboutExplainEnd }
func (v *explainVerb) fields() any { return v }

// judge wants both addresses.
func (v *explainVerb) judge() error {
	if v.From.text == "" || v.To.text == "" {
		return errors.New("--from and --to are needed, each with an address")
	}
	return nil
}

func (v *explainVerb) run(p process) int {
	var f faults
	from, to := readAddress(&f, "from", v.From), readAddress(&f, "to", v.To)
	relay := v.Endpoint.client(&f)
	if err := f.err(); err != nil {
		sayInvalid(p.stderr, err)
		return exitConfiguration
	}
	x, err := relay.Explain(context.Background(), from, to) // which has a limit of its own
	if err != nil {
		return p.unasked(err)
	}
	if !v.JSON {
		return p.print(printable(x.Sentence) + "\n")
	}
	text, err := json.Marshal(x)
	if err != nil {
		panic("relay: an explanation cannot fail to encode")
	}
	return p.print(string(text) + "\n")
}

// readAddress reads an IP address.
func readAddress(f *faults, flag string, value given) netip.Addr {
	addr, err := netip.ParseAddr(value.text)
	if err != nil || addr.Zone() != "" {
		f.add(flag, "is not an IP address")
	}
	return addr
}
