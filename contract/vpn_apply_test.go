package contract

import (
	"testing"

	"pgregory.net/rapid"
)

// R04: a member more is refused at every level of a network's request, with its path.
func TestR04_ApplyVPNNetworkRequest(t *testing.T) {
	checkExactKeys(t, `{"network":`+networkText+`}`, nil, errorOf(ReadApplyVPNNetworkRequest))
}

func TestApplyVPNNetworkRequest(t *testing.T) {
	checkBodies(t, ReadApplyVPNNetworkRequest, []bodyCase{
		{"whole", `{"network":` + networkText + `}`, nil},
		{"missing", `{}`, []string{`network: is missing`}},
		{"null", `{"network":null}`, []string{`network: is not an object`}},
		{"twice", `{"network":` + networkText + `,"netw\u006frk":null}`, []string{`network: is given twice`}},
		{"rules", `{"network":` + with(t, networkText, `"revision":1`, `"revision":0`) + `}`, []string{`network.revision: is not a counter`}},
		{"size", `{"network":` + string(fill(t, vpnNetwork(256, 68), VPNNetworkLimit+1).AppendJSON(nil)) + `}`,
			[]string{`network: has more than 917504 canonical bytes`}},
	})
	checkWritten(t, func(t *rapid.T) ApplyVPNNetworkRequest {
		return ApplyVPNNetworkRequest{drawVPNNetwork(t)}
	}, ReadApplyVPNNetworkRequest)
}

func TestApplyVPNNetworkAnswer(t *testing.T) {
	checkBodies(t, ReadApplyVPNNetworkAnswer, []bodyCase{
		{"idle", `{"appliedRevision":7,"state":"idle"}`, nil},
		{"applying", `{"appliedRevision":0,"state":"applying"}`, nil},
		{"failed", `{"appliedRevision":6,"state":"failed","why":[]}`, nil},
		{"missing", `{}`, []string{`appliedRevision: is missing`, `state: is missing`}},
		{"twice", `{"appliedRevision":7,"state":"idle","st\u0061te":"idle"}`, []string{`state: is given twice`}},
		{"rules", `{"appliedRevision":-1,"state":"Idle"}`, []string{`appliedRevision: is not a count`, `state: is not idle, applying or failed`}},
	})
	checkWritten(t, func(t *rapid.T) ApplyVPNNetworkAnswer {
		return ApplyVPNNetworkAnswer{drawCount(t, "revision"),
			rapid.SampledFrom([]VPNNetworkState{VPNNetworkIdle, VPNNetworkApplying, VPNNetworkFailed}).Draw(t, "state")}
	}, ReadApplyVPNNetworkAnswer)
}

// R60: an answer of idle counts only with the revision that was pushed; applying and
// failed may name another.
func TestR60_IdleMeansThePushedRevision(t *testing.T) {
	sent := ApplyVPNNetworkRequest{vpnNetwork(1, 1)} // revision 7
	for answer, want := range map[ApplyVPNNetworkAnswer]bool{
		{7, VPNNetworkIdle}:     true,
		{6, VPNNetworkIdle}:     false,
		{8, VPNNetworkIdle}:     false,
		{0, VPNNetworkApplying}: true,
		{6, VPNNetworkApplying}: true,
		{6, VPNNetworkFailed}:   true,
	} {
		if got := answer.Answers(sent); got != want {
			t.Errorf("%+v: %v", answer, got)
		}
	}
}

func FuzzReadApplyVPNNetworkRequest(f *testing.F) {
	fuzzReader(f, ReadApplyVPNNetworkRequest, `{"network":`+networkText+`}`, `{"network":{}}`)
}

func FuzzReadApplyVPNNetworkAnswer(f *testing.F) {
	fuzzReader(f, ReadApplyVPNNetworkAnswer, `{"appliedRevision":7,"state":"idle"}`, `{"state":"","x":{}}`)
}
