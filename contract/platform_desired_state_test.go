package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const desiredStateText = `{"capabilities":["database",1.5],"providerConfigs":{"p":null},"bindings":[` +
	`{"nodeId":"-a","binding":{"id":"b1","id":"\ud800"}},{"nodeId":"b","binding":{}},{"nodeId":"-a","binding":{ }}]}`

// R90: the desired state is counted by node, and its opaque members are written as they
// came.
func TestR90_PlatformDesiredStateCountsByNode(t *testing.T) {
	x, err := ReadPlatformDesiredState([]byte(desiredStateText))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"-a": 2, "b": 1}, x.CountByNode()); diff != "" {
		t.Error(diff)
	}
	if got := string(x.AppendJSON(nil)); got != desiredStateText {
		t.Errorf("opaque members are written as %s", got)
	}
}

func TestPlatformDesiredState(t *testing.T) {
	checkBodies(t, ReadPlatformDesiredState, []bodyCase{
		{"whole", desiredStateText, nil},
		{"nothing desired", `{"capabilities":[],"providerConfigs":[],"bindings":[]}`, nil},
		{"others are ignored", `{"capabilities":null,"providerConfigs":{},"bindings":[{"nodeId":"a","binding":{},"x":1}],"revision":7}`, nil},
		{"missing", `{}`, []string{`capabilities: is missing`, `providerConfigs: is missing`, `bindings: is missing`}},
		{"missing inside", `{"capabilities":[],"providerConfigs":[],"bindings":[{}]}`, []string{
			`bindings[0].nodeId: is missing`, `bindings[0].binding: is missing`}},
		{"twice", `{"capabilities":[],"providerConfigs":[],"bindings":[],"b\u0069ndings":[]}`, []string{`bindings: is given twice`}},
		{"kinds", `{"capabilities":[],"providerConfigs":[],"bindings":[{"nodeId":1,"binding":null}]}`, []string{
			`bindings[0].nodeId: is not a string`, `bindings[0].binding: is not an object`}},
		{"capabilities repeat a name", `{"capabilities":{"a":1,"\u0061":2},"providerConfigs":[],"bindings":[]}`, []string{
			`capabilities: repeats a name or holds a lone surrogate`}},
		{"node id", `{"capabilities":[],"providerConfigs":[],"bindings":[{"nodeId":"a.b","binding":{}}]}`, []string{`bindings[0].nodeId: is not a node id`}},
	})
	checkWritten(t, func(t *rapid.T) PlatformDesiredState {
		opaque := rapid.SampledFrom([]Raw{Raw(`[]`), Raw(`{"a":[1.5,null]}`), Raw(`"x"`)})
		x := PlatformDesiredState{opaque.Draw(t, "capabilities"), opaque.Draw(t, "configs"), []PlatformBindingPlacement{}}
		for range rapid.IntRange(0, 4).Draw(t, "bindings") {
			x.Bindings = append(x.Bindings, PlatformBindingPlacement{drawNodeID(t, "nodeId"), Raw(`{"id":"b"}`)})
		}
		return x
	}, ReadPlatformDesiredState)
}

// R01: the node of a platform placement is named by the rule of nodes.
func TestR01_PlatformPlacementNodeID(t *testing.T) {
	for id, want := range nodeIDs {
		body := PlatformDesiredState{Raw(`[]`), Raw(`[]`), []PlatformBindingPlacement{{id, Raw(`{}`)}}}.AppendJSON(nil)
		if _, err := ReadPlatformDesiredState(body); (err == nil) != want {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func FuzzReadPlatformDesiredState(f *testing.F) {
	fuzzReader(f, ReadPlatformDesiredState, desiredStateText, `{"bindings":[{"nodeId":"a","binding":[]}]}`)
}
