package contract

import (
	"testing"

	"pgregory.net/rapid"
)

func TestGetVPNNetworkAnswer(t *testing.T) {
	checkBodies(t, ReadGetVPNNetworkAnswer, []bodyCase{
		{"network", `{"network":` + networkText + `}`, nil},
		{"none", `{"network":null}`, nil},
		{"others are ignored", `{"network":null,"x":1.5}`, nil},
		{"missing", `{}`, []string{`network: is missing`}},
		{"twice", `{"network":null,"netw\u006frk":null}`, []string{`network: is given twice`}},
		{"kind", `{"network":false}`, []string{`network: is not an object`}},
		{"network is exact", `{"network":{"enabled":true,` + networkText[1:] + `}`, []string{`network: unknown member "enabled"`}},
		{"rules", `{"network":` + with(t, networkText, `"10.0.0.6"`, `"10.0.0.7"`) + `}`, []string{
			`network.nodes[1].controlAddress: is the broadcast address of the control prefix`}},
	})
	checkWritten(t, func(t *rapid.T) GetVPNNetworkAnswer {
		if rapid.Bool().Draw(t, "none") {
			return GetVPNNetworkAnswer{}
		}
		x := drawVPNNetwork(t)
		return GetVPNNetworkAnswer{&x}
	}, ReadGetVPNNetworkAnswer)
}

func FuzzReadGetVPNNetworkAnswer(f *testing.F) {
	fuzzReader(f, ReadGetVPNNetworkAnswer, `{"network":`+networkText+`}`, `{"network":null}`, `{"network":{"nodes":[]}}`)
}
