package rig

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// What is explained is between addresses of the network that came last, a few of them.
func TestExplanations(t *testing.T) {
	if got := explanations(nil); got != nil {
		t.Errorf("without a network: %v", got)
	}
	network := func(octet int, nodes int) simulate.Frame {
		n := contract.VPNNetwork{Revision: 1}
		for i := range nodes {
			n.Nodes = append(n.Nodes, contract.VPNNode{ControlAddress: fmt.Sprintf("10.200.%d.%d", octet, i),
				WorkloadPrefixes: []contract.VPNWorkload{{CIDR: fmt.Sprintf("10.%d.%d.0/24", octet, i)}}})
		}
		return simulate.Frame{Text: contract.ApplyVPNNetworkRequest{Network: n}.AppendJSON(nil)}
	}
	pages := func(addresses ...string) (all []string) {
		for _, from := range addresses {
			for _, to := range addresses {
				if from != to {
					all = append(all, "/explain?from="+from+"&to="+to)
				}
			}
		}
		return all
	}
	for name, c := range map[string]struct {
		frames []simulate.Frame
		want   []string
	}{
		"one node":       {[]simulate.Frame{network(1, 1)}, pages("10.1.0.0", "10.200.1.0")},
		"the newest":     {[]simulate.Frame{network(1, 9), network(2, 9), {Text: []byte(`{}`)}}, pages("10.2.0.0", "10.2.1.0", "10.2.2.0")},
		"of two":         {[]simulate.Frame{network(1, 9), network(2, 1)}, pages("10.2.0.0", "10.200.2.0", "10.1.0.0")},
		"no addresses":   {[]simulate.Frame{{Text: []byte(`{"controlAddress":"here","cidr":"10.0.0.0"}`)}}, nil},
		"a stream frame": {[]simulate.Frame{{Binary: true, Text: network(1, 2).Text}}, nil},
	} {
		var got []string
		for _, page := range explanations(c.frames) {
			got = append(got, page.path)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}
