package contract

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	relayText  = `{"origin":"https://relay.example"}`
	statedText = `{"data":{"relay":` + relayText + `}}`
	otherText  = `{"data":{"relay":{"origin":"https://other.example"}}}`
	nodesText  = `[{"id":"-a","data":{"corestore":{"endpoint":"http://10.0.0.1:3000"}}},{"id":"b"}]`
)

func stated(nodes ...ConfiguredNode) ClusterConfiguration {
	return ClusterConfiguration{Relay: RelayStated, Block: ClusterRelay{"https://relay.example"}, Nodes: nodes}
}

func at(id, endpoint string) ConfiguredNode {
	return ConfiguredNode{id, &NodeCorestore{endpoint}}
}

func TestClusterConfiguration_WhichDocument(t *testing.T) {
	other := ClusterConfiguration{Relay: RelayStated, Block: ClusterRelay{"https://other.example"}}
	for body, want := range map[string]ClusterConfiguration{
		`{"configData":` + statedText + `}`: stated(),
		`{"cluster":` + statedText + `}`:    stated(),
		statedText:                          stated(),
		`{"cluster":` + otherText + `,"configData":` + statedText + `}`: stated(),
		`{"data":{"relay":null},"cluster":` + statedText + `}`:          stated(),
		`{"configData":{"data":[]},"cluster":` + statedText + `}`:       stated(),
		`{"configData":null,"cluster":` + statedText + `}`:              stated(),
		`{"configData":{},"cluster":"c",` + statedText[1:]:              stated(),
		`{"configData":{"Data":{}},"cluster":` + otherText + `}`:        other,
		`{"configData":{"d\u0061ta":{}},"cluster":` + otherText + `}`:   {Relay: RelayAbsent},
		`{}`:                                {},
		`{"data":null}`:                     {},
		`{"data":[]}`:                       {},
		`{"configData":{"relay":{}}}`:       {},
		`{"relay":` + relayText + `}`:       {},
		`{"configdata":` + statedText + `}`: {},
		`{"x":{"configData":` + statedText + `},"services":[]}`: {},
	} {
		got, err := ReadClusterConfiguration([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
		if got.Recognised() != (want.Relay != RelayUnrecognised) {
			t.Errorf("%s: recognised %v", body, got.Recognised())
		}
	}
}

// R27: a relay block that is absent, null, not valid or stated is read as that, and a
// fault names its path: what a relay must do differs between these.
func TestR27_ClusterConfiguration_RelayBlock(t *testing.T) {
	for relay, want := range map[string]ClusterConfiguration{
		``:                                  {Relay: RelayAbsent},
		`"Relay":` + relayText:              {Relay: RelayAbsent},
		`"relay":null`:                      {Relay: RelayNull},
		`"relay":` + relayText:              stated(),
		`"x":1,"rel\u0061y":` + relayText:   stated(),
		`"relay":{}`:                        {Relay: RelayInvalid, Faults: []string{`cluster.data.relay.origin: is missing`}},
		`"relay":false`:                     {Relay: RelayInvalid, Faults: []string{`cluster.data.relay: is not an object`}},
		`"relay":[null]`:                    {Relay: RelayInvalid, Faults: []string{`cluster.data.relay: is not an object`}},
		`"relay":{"origin":null}`:           {Relay: RelayInvalid, Faults: []string{`cluster.data.relay.origin: is not a string`}},
		`"relay":{"origin":"https://a.b/"}`: {Relay: RelayInvalid, Faults: []string{`cluster.data.relay.origin: is not a canonical https origin`}},
		`"relay":{"origin":"https://relay.example","port":1}`: {Relay: RelayInvalid, Faults: []string{`cluster.data.relay: unknown member "port"`}},
	} {
		got, err := ReadClusterConfiguration([]byte(`{"cluster":{"id":"c","data":{` + relay + `}}}`))
		if err != nil {
			t.Fatalf("%s: %v", relay, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", relay, diff)
		}
	}
}

func TestClusterConfiguration_WhichNodes(t *testing.T) {
	nodes := []ConfiguredNode{at("-a", "http://10.0.0.1:3000"), {ID: "b"}}
	for body, want := range map[string]ClusterConfiguration{
		`{"configData":{"data":{"nodes":` + nodesText + `},"nodes":[]},"nodes":[]}`:  {Relay: RelayAbsent, Nodes: nodes},
		`{"configData":{"data":{},"nodes":` + nodesText + `},"nodes":[]}`:            {Relay: RelayAbsent, Nodes: nodes},
		`{"configData":{"data":{}},"nodes":` + nodesText + `}`:                       {Relay: RelayAbsent, Nodes: nodes},
		`{"configData":{"data":{"nodes":null}},"nodes":` + nodesText + `}`:           {Relay: RelayAbsent, Nodes: nodes},
		`{"data":{},"nodes":` + nodesText + `}`:                                      {Relay: RelayAbsent, Nodes: nodes},
		`{"configData":{"data":{"nodes":[]}},"nodes":` + nodesText + `}`:             {Relay: RelayAbsent, Nodes: []ConfiguredNode{}},
		`{"configData":{"data":{}},"cluster":{"data":{},"nodes":` + nodesText + `}}`: {Relay: RelayAbsent},
		`{"configData":{"data":{"nodes":{}},"nodes":"n"},"nodes":` + nodesText + `}`: {Relay: RelayAbsent, Nodes: nodes,
			Faults: []string{`configData.data.nodes: is not an array`, `configData.nodes: is not an array`}},
		`{"data":{},"nodes":7}`: {Relay: RelayAbsent, Faults: []string{`nodes: is not an array`}},
	} {
		got, err := ReadClusterConfiguration([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
}

// R77: of a cluster document each node's endpoint is read where it is a canonical
// origin; any other is absent, and the fault names its path.
func TestR77_ClusterConfiguration_Corestore(t *testing.T) {
	const nodes = `[
		{"id":"a","data":{"corestore":{"endpoint":"http://10.0.0.1:3000"},"corestoreDatabase":{"host":"h","port":1.5}}},
		{"id":"b","data":{"corestore":null}},
		{"id":"c","data":{"corestore":{"endpoint":"http://u@10.0.0.1"}}},
		{"id":"d","data":{"corestore":{"endpoint":"https://cs.example/"}}},
		{"id":"e","data":{"corestore":{"endpoint":"https://cs.example","token":"x"}}},
		{"id":"f","data":{"corestore":{}}},
		{"id":"g","data":null},
		{"id":"h","corestore":{"endpoint":"https://cs.example"}},
		{"id":"i.j","data":{"corestore":{"endpoint":"https://cs.example"}}},
		{"data":{}},
		{"id":7},
		null,
		{"id":"a","data":{"corestore":{"endpoint":"http://10.0.0.9:3000"}}},
		{"id":"_k","data":{"corestore":{"endpoint":"https://cs.example:8443"}}}]`
	got, err := ReadClusterConfiguration([]byte(`{"data":{"nodes":` + nodes + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := ClusterConfiguration{
		Relay: RelayAbsent,
		Nodes: []ConfiguredNode{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}, {ID: "e"}, {ID: "f"}, {ID: "g"}, {ID: "h"},
			at("_k", "https://cs.example:8443")},
		Faults: []string{
			`data.nodes[2].data.corestore.endpoint: is not a canonical http or https origin`,
			`data.nodes[3].data.corestore.endpoint: is not a canonical http or https origin`,
			`data.nodes[4].data.corestore: unknown member "token"`,
			`data.nodes[5].data.corestore.endpoint: is missing`,
			`data.nodes[6].data: is not an object`,
			`data.nodes[8].id: is not a node id`,
			`data.nodes[9].id: is missing`,
			`data.nodes[10].id: is not a string`,
			`data.nodes[11]: is not an object`,
			`data.nodes[12].id: repeats the id of another node`,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n, ok := got.FindNode("_k"); !ok || n.Corestore == nil {
		t.Error("a configured node is not found")
	}
	if _, ok := got.FindNode("i.j"); ok {
		t.Error("a node without a node id is found")
	}
}

// R01: nodes of a cluster document are named by the rule of nodes; others are not found
// in it.
func TestR01_ClusterConfigurationNodeID(t *testing.T) {
	for id, want := range nodeIDs {
		body := `{"data":{"nodes":[{"id":` + string(appendString(nil, id)) + `}]}}`
		got, err := ReadClusterConfiguration([]byte(body))
		if _, found := got.FindNode(id); err != nil || found != want {
			t.Errorf("%q: found %v, %v", id, found, err)
		}
	}
}

func TestClusterConfiguration_BoundOfNodes(t *testing.T) {
	body := []byte(`{"data":{"relay":` + relayText + `,"nodes":[`)
	for i := range maximumConfiguredNodes + 1 {
		body = fmt.Appendf(body, `{"id":"n%d"},`, i)
	}
	body = append(bytes.TrimRight(body, ","), `]}}`...)
	got, err := ReadClusterConfiguration(body)
	if err != nil || got.Relay != RelayStated || len(got.Nodes) != maximumConfiguredNodes {
		t.Fatalf("%v: %d nodes, %v", got.Relay, len(got.Nodes), err)
	}
	if diff := cmp.Diff([]string{`data.nodes: has more elements than are read`}, got.Faults); diff != "" {
		t.Error(diff)
	}
}

// R03: a body that is not strict JSON states nothing, wherever it is not.
func TestR03_ClusterConfigurationIsStrict(t *testing.T) {
	const repeats = `repeats a name or holds a lone surrogate`
	checkBodies(t, ReadClusterConfiguration, []bodyCase{
		{"array", `[]`, []string{`body: is not an object`}},
		{"document twice", `{"configData":` + statedText + `,"c\u006fnfigData":{}}`, []string{`configData: is given twice`}},
		{"relay twice", `{"configData":{"data":{"relay":null,"relay":{}}}}`, []string{`configData: ` + repeats}},
		{"relay twice by escape", `{"cluster":{"data":{"relay":null,"r\u0065lay":{}}}}`, []string{`cluster: ` + repeats}},
		{"repeated in an ignored member", `{"data":{},"services":[{"a":1,"a":1}]}`, []string{
			`body: an ignored member repeats a name or holds a lone surrogate`}},
		{"surrogate in the data", `{"data":{"name":"\ud800"}}`, []string{`data: ` + repeats}},
		{"surrogate in the nodes", `{"nodes":["\udc00"]}`, []string{`nodes: ` + repeats}},
		{"trailing", statedText + `{}`, []string{`body: has data after its value`}},
		{"cut", statedText[:20], []string{`data: is not well-formed json`}},
		{"deep", `{"data":` + strings.Repeat(`[`, 64) + strings.Repeat(`]`, 64) + `}`, []string{`body: nests too deep`}},
		{"utf-8", "{\"data\":{\"x\":\"\xff\"}}", []string{`body: is not valid utf-8`}},
	})
}

func TestClusterConfiguration_Written(t *testing.T) {
	checkWritten(t, func(t *rapid.T) ClusterConfiguration {
		x := ClusterConfiguration{Relay: RelayStatement(rapid.IntRange(0, 4).Draw(t, "relay"))}
		switch x.Relay {
		case RelayUnrecognised:
			return x
		case RelayStated:
			x.Block.Origin = drawOrigin(t, "https")
		case RelayInvalid:
			x.Faults = []string{`configData.data.relay.origin: is missing`}
		}
		for _, id := range rapid.SliceOfDistinct(rapid.StringMatching(`[A-Za-z0-9_-]{1,4}`), rapid.ID[string]).Draw(t, "nodes") {
			n := ConfiguredNode{ID: id}
			if rapid.Bool().Draw(t, "corestore") {
				n.Corestore = &NodeCorestore{drawOrigin(t, rapid.SampledFrom([]string{"http", "https"}).Draw(t, "scheme"))}
			}
			x.Nodes = append(x.Nodes, n)
		}
		return x
	}, ReadClusterConfiguration)
}

func TestRelayStatementNames(t *testing.T) {
	for statement, want := range map[RelayStatement]string{RelayUnrecognised: "unrecognised", RelayAbsent: "absent",
		RelayNull: "null", RelayInvalid: "invalid", RelayStated: "stated"} {
		if got := statement.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func FuzzReadClusterConfiguration(f *testing.F) {
	for _, seed := range []string{`{"configData":` + statedText + `,"nodes":` + nodesText + `}`,
		`{"cluster":{"data":{"relay":null,"nodes":[]}}}`, `{"data":{"relay":{"x":1}},"nodes":` + nodesText + `}`, `{}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		x, err := ReadClusterConfiguration(body)
		if err != nil {
			checkReasons(t, err)
			return
		}
		if len(x.Faults) > 0 {
			checkReasons(t, &InvalidError{"cluster configuration", x.Faults[:min(len(x.Faults), MaximumReasons)]})
		}
		again, err := ReadClusterConfiguration(x.AppendJSON(nil))
		if err != nil {
			t.Fatal(err)
		}
		x.Faults, again.Faults = nil, nil
		if diff := cmp.Diff(x, again); diff != "" {
			t.Error(diff)
		}
	})
}
