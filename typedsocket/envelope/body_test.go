package envelope

import (
	"fmt"
	"strings"
	"testing"
)

// R31: every nodeId of a body, at any depth, is found, counted and compared, as
// isolation between nodes needs it (contract §7.2, O39).
func TestR31_NodeIDFacts(t *testing.T) {
	long := strings.Repeat("x", MaxNodeIDBytes)
	for _, c := range []struct {
		body    string
		count   int
		first   string // "-" for nil
		uniform bool
	}{
		{`{}`, 0, "-", false},
		{`[]`, 0, "-", false},
		{`{"nodeid":"a","NodeId":"a","node_id":"a","nodeId ":"a"}`, 0, "-", false},
		{`{"a":"nodeId","b":["nodeId","a"]}`, 0, "-", false},
		{`{"nodeId":"a"}`, 1, "a", true},
		{`{"nodeId":""}`, 1, "", true},
		{`{"x":{"nodeId":"a"}}`, 1, "a", true},
		{`[{"nodeId":"a"}]`, 1, "a", true},
		{`{"session":{"nodeId":"a"}}`, 1, "a", true},
		{`{"session":{"x":[{"nodeId":"a"}]},"nodeId":"a","y":[[{"nodeId":"a"}]]}`, 3, "a", true},
		{`{"nodeId":"a","x":{"nodeId":"b"}}`, 2, "a", false},
		{`{"x":{"nodeId":"b"},"nodeId":"a"}`, 2, "b", false},
		{`{"nodeId":"a","x":[{"nodeId":"b"},{"nodeId":"a"}]}`, 3, "a", false},
		{`{"nodeId":"a","x":{"nodeId":"A"}}`, 2, "a", false},
		{`{"nodeId":"a","x":{"nodeId":"a "}}`, 2, "a", false},
		{`{"nodeId":"a","x":{"nodeId":"a","nodeId":"b"}}`, 3, "a", false},
		{`{"nodeId":"a","x":{"nodeId":null}}`, 2, "a", false},
		{`{"nodeId":"a","x":{"nodeId":["a"]}}`, 2, "a", false},
		{`{"nodeId":null}`, 1, "-", false},
		{`{"nodeId":null,"x":{"nodeId":"a"},"y":{"nodeId":"a"}}`, 3, "-", false},
		{`{"nodeId":{"nodeId":"a"}}`, 2, "-", false},
		{`{"nodeId":["a",{"nodeId":"a"}]}`, 2, "-", false},

		{`{"node\u0049d":"a"}`, 1, "a", true},
		{`{"x":{"\u006e\u006f\u0064\u0065\u0049\u0064":"b"},"nodeId":"a"}`, 2, "b", false},
		{`{"nodeId":"\u0061","x":{"nodeId":"a"},"y":{"nodeId":"\u0061"}}`, 3, "a", true},
		{`{"nodeId":"a","x":{"nodeId":"\u0062"}}`, 2, "a", false},
		{`{"x":{"nodeId":"\ud800"}}`, 1, "-", false},
		{`{"nodeId":"a","x":{"nodeId":"a\ud800"}}`, 2, "a", false},
		{`{"x":{"nodeId\ud800":"b"},"nodeId":"a"}`, 1, "a", true},

		{`{"nodeId":"` + long + `"}`, 1, long, true},
		{`{"nodeId":"` + long + `x"}`, 1, "-", false},
		{`{"nodeId":"` + strings.Repeat(`\u0061`, 128) + `"}`, 1, strings.Repeat("a", 128), true},
		{`{"nodeId":"a","x":{"nodeId":"` + strings.Repeat(`a`, 1<<16) + `"}}`, 2, "a", false},
	} {
		for _, phase := range []string{"request", "response"} {
			// Whatever stands elsewhere names another node, and must not be heard.
			other := map[string]string{"request": "response", "response": "request"}[phase]
			for _, text := range []string{
				fmt.Sprintf(`{"%s":%s,"%s":{"nodeId":"z"},"correlation":{"phase":"%s"},"error":{"data":{"nodeId":"z"}},"nodeId":"z"}`, phase, c.body, other, phase),
				fmt.Sprintf(`{"%s":%s,"error":{"data":{"nodeId":"z"}},"x":[{"nodeId":"z"}],"correlation":{"phase":"%s"}}`, phase, c.body, phase),
				fmt.Sprintf(`{"nodeId":"z","x":{"nodeId":"z"},"correlation":{"phase":"%s","nodeId":"z"},"%s":{"nodeId":"z"},"%s":%s}`, phase, other, phase, c.body),
			} {
				ids := scan(t, text).Body.NodeIDs
				first := string(ids.First)
				if ids.First == nil {
					first = "-"
				}
				if ids.Count != c.count || first != c.first || ids.Uniform != c.uniform {
					t.Errorf("%.100s: %d, first %.20q, uniform %v", text, ids.Count, first, ids.Uniform)
				}
				compareWithReference(t, []byte(text))
			}
		}
	}
}

// R31: session and its node are read from the top of a body and from nowhere else.
func TestR31_Session(t *testing.T) {
	const none = "-"
	for _, c := range []struct{ body, session, sessionNodeID, nodeID string }{
		{`{}`, none, none, none},
		{`{"session":{ "nodeId":"a" } ,"nodeId":"b"}`, `{ "nodeId":"a" }`, "a", "b"},
		{`{"s\u0065ssion":{"node\u0049d":"\u0061"},"node\u0049d":"\u0062"}`, `{"node\u0049d":"\u0061"}`, "a", "b"},
		{`{"session":{"nodeId":1},"nodeId":null}`, `{"nodeId":1}`, none, none},
		{`{"session":{"x":{"nodeId":"a"}}}`, `{"x":{"nodeId":"a"}}`, none, none},
		{`{"session":[{"nodeId":"a"}]}`, `[{"nodeId":"a"}]`, none, none},
		{`{"session":null}`, `null`, none, none},
		{`{"session":"a"}`, `"a"`, none, none},
		{`{"Session":{"nodeId":"a"}}`, none, none, none},
		{`{"x":{"session":{"nodeId":"a"},"nodeId":"a"}}`, none, none, none},
		{`[{"session":{"nodeId":"a"}}]`, none, none, none},
		{`"session"`, none, none, none},
		{`null`, none, none, none},
	} {
		text := `{"request":` + c.body + `,"correlation":{"phase":"request"}}`
		b := scan(t, text).Body
		for _, member := range []struct {
			name string
			got  []byte
			want string
		}{{"session", b.Session, c.session}, {"session.nodeId", b.SessionNodeID, c.sessionNodeID}, {"nodeId", b.NodeID, c.nodeID}} {
			got := string(member.got)
			if member.got == nil {
				got = none
			}
			if got != member.want {
				t.Errorf("%s: %s is %s, want %s", text, member.name, got, member.want)
			}
		}
		if b.Object != strings.HasPrefix(c.body, "{") {
			t.Errorf("%s: object is %v", text, b.Object)
		}
		compareWithReference(t, []byte(text))
	}
}

func TestStreamMarkers(t *testing.T) {
	for body, want := range map[string]int{
		`{}`:                        0,
		`{"_isVirtualStream":true}`: 1,
		`{"x":{"_isVirtualStream":true},"y":[{"a":1,"_isVirtualStream" : true , "b":2},[{"_isVirtualStream":true}]]}`: 3,
		`{"_isVirtualStream":true,"x":{"_isVirtualStream":true}}`:                                                     2,
		`{"session":{"_isVirtualStream":true,"x":{"_isVirtualStream":true}}}`:                                         2,
		`{"x":{"\u005fisVirtualStream":true}}`:                                                                        1,
		`{"x":{"_isVirtualStream":true,"_isVirtualStream":true}}`:                                                     1,
		`{"x":{"_isVirtualStream":true,"_isVirtualStream":false}}`:                                                    1,
		`{"x":{"_isVirtualStream":false,"y":{"_isVirtualStream":true},"_isVirtualStream":true}}`:                      2,
		`{"x":[{"_isVirtualStream":true},{"_isVirtualStream":true},{"a":{}}]}`:                                        2,
		`{"x":{"_isVirtualStream":false},"y":{"_isVirtualStream":"true"},"z":{"_isVirtualStream":1}}`:                 0,
		`{"x":{"_isVirtualStream":[true]},"y":["_isVirtualStream",true],"z":"_isVirtualStream"}`:                      0,
		`{"x":{"_isvirtualstream":true},"y":{"_isVirtualStream ":true},"z":{"_OMITTED_VIRTUAL_STREAM":true}}`:         0,
	} {
		text := `{"response":{"_isVirtualStream":true},"request":` + body + `,"correlation":{"phase":"request"}}`
		if got := scan(t, text).Body.Streams; got != want {
			t.Errorf("%s: got %d, want %d", body, got, want)
		}
		compareWithReference(t, []byte(text))
	}
}

// TestBodyFollowsPhase: without a phase there are no facts.
func TestBodyFollowsPhase(t *testing.T) {
	for _, phase := range []string{``, `"phase":"other"`} {
		f := scan(t, `{"request":{"nodeId":"a"},"response":{"nodeId":"a"},"correlation":{`+phase+`}}`)
		if diff := diffFrames(&Frame{Request: f.Request, Response: f.Response, RequestAt: 11, ResponseAt: 37, Phase: f.Phase}, f); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", phase, diff)
		}
	}
}
