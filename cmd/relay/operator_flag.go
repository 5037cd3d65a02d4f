package main

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"serve.zone/relay/config"
	"serve.zone/relay/operator/client"
)

// operatorFlag is what verbs have that ask a running relay. It is embedded in their
// fields.
type operatorFlag struct {
	Operator given `name:"operator"`
}

// aboutOperator explains the flag.
func aboutOperator() string {
	return `  --operator=ADDRESS:PORT
      The relay's operator endpoint. (default ` + defaultOperator() + `)
`
}

// defaultOperator is where a relay has its operator endpoint that was not told otherwise.
func defaultOperator() string {
	for _, s := range config.Settings() {
		if s.Flag == "operator-listen" {
			return s.Default
		}
	}
	panic("relay: no setting says where the operator endpoint is")
}

// whereItIs is what to look at when nobody answers.
const whereItIs = "Is it running, and is --operator where it has its operator endpoint?"

// unasked says why the relay could not be asked, and returns the exit code.
func (p process) unasked(err error) int {
	say(p.stderr, plain(err))
	if none := (*client.NoAnswerError)(nil); errors.As(err, &none) {
		say(p.stderr, whereItIs)
	}
	return exitFailed
}

// client returns what asks the relay.
func (o operatorFlag) client(f *faults) client.Client {
	address := o.Operator.or(defaultOperator())
	host, port, err := net.SplitHostPort(address)
	number, wrong := strconv.ParseUint(port, 10, 16)
	ip, noIP := netip.ParseAddr(host)
	if err != nil || wrong != nil || number == 0 || (noIP != nil || ip.Zone() != "") && !strings.EqualFold(host, "localhost") {
		f.add("operator", "is not an address, or localhost, and a port")
	}
	return client.Client{Base: "http://" + address}
}
