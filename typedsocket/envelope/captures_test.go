package envelope

import (
	"os"
	"path/filepath"
	"testing"
)

// capture returns a message of a real peer, byte for byte.
func capture(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "captures", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// captures are the messages that real TypedRequest peers exchanged, and what
// they are. Those of version 2 travelled inside a socket.io event.
var captures = []struct {
	name             string
	kind             Kind
	method           string
	request          string
	response         string
	id, instance     string
	streams          int
	hasLocalData     bool
	composesAsOurOwn bool // our composer writes the very same bytes
}{
	{
		name: "run1-v8-request", kind: KindRequest, method: "ok", response: `null`, composesAsOurOwn: true,
		request:  `{"x":1,"u8":{"0":1,"1":2,"2":3},"b":{"type":"Buffer","data":[97,98,99]},"d":"1970-01-01T00:00:00.000Z"}`,
		id:       "uni_03899181965d44bc675e034f",
		instance: "uni_9db98fcac2e1ba05e4be1219",
	},
	{
		name: "run1b-v3-request", kind: KindRequest, method: "ok", response: `null`,
		request: `{"x":1,"u8":{"0":1,"1":2,"2":3},"b":{"type":"Buffer","data":[97,98,99]}}`,
		id:      "uni_b8548b02c889939048e147d4",
	},
	{
		name: "run1b-v3-answer", kind: KindResponse, method: "h_throw", request: `{"a":1}`, response: `null`,
		id: "c", instance: "ri", hasLocalData: true,
	},
	{
		name: "run3-v8-stream-request", kind: KindRequest, method: "up", response: `null`, streams: 1, composesAsOurOwn: true,
		request:  `{"data":{"_isVirtualStream":true,"protocol":"virtual-stream-v1","streamId":"s2","creatorDirection":"send","integrity":{"algorithm":"sha256","byteLength":3,"digest":"sha256:039058c6f2c0cb492c533b0a4d14ef77cc0f78abccced5287d84a1a2011cfb81"},"transport":{"any":["json",1,null]}},"name":"x"}`,
		id:       "uni_7ac94779a9bfd27c4f41649a",
		instance: "uni_165a37ee67a7c11150ae5618",
	},
	{
		name: "run4-client-request", kind: KindRequest, method: "echo", request: `{"a":1}`, response: `null`, composesAsOurOwn: true,
		id: "uni_543b369e48f459363ac875b9", instance: "uni_71ee10b1d2f8ded1d115cb07",
	},
	{
		name: "run4-server-answer", kind: KindResponse, method: "echo", request: `{"a":1}`,
		response: `{"got":{"a":1},"local":["firstTypedrouter"]}`,
		id:       "uni_543b369e48f459363ac875b9", instance: "uni_71ee10b1d2f8ded1d115cb07",
	},
	{
		name: "run4-server-request", kind: KindRequest, method: "serverAsksClient", request: `{"q":41}`, response: `null`, composesAsOurOwn: true,
		id: "uni_1561f00d84e7d64034cae0f9", instance: "uni_56b67985b2dfc88f838a3a44",
	},
	{
		name: "run4-client-answer", kind: KindResponse, method: "serverAsksClient", request: `{"q":41}`, response: `{"answer":42}`,
		id: "uni_1561f00d84e7d64034cae0f9", instance: "uni_56b67985b2dfc88f838a3a44",
	},
	{
		name: "run5-request", kind: KindRequest, method: "echo", request: `{"a":1}`, response: `null`, composesAsOurOwn: true,
		id: "uni_1b", instance: "uni_ri",
	},
	{
		name: "run5-v3-answer", kind: KindResponse, method: "echo", request: `{"a":1}`,
		response: `{"got":{"a":1},"hasPeer":true,"peerUrl":"/"}`,
		id:       "uni_1b", instance: "uni_ri", hasLocalData: true,
	},
	{
		name: "run7-v2-request", kind: KindRequest, method: "sayhi", request: `{"name":"go"}`, response: `null`,
		id: "uni_f037ac77cee860a87ab8c955",
	},
	{
		name: "run7-v2-answer", kind: KindResponse, method: "sayhi", request: `{"name":"go"}`, response: `{"answer":"hi go"}`,
		id: "uni_f037ac77cee860a87ab8c955",
	},
	{
		name: "run8-v3-stream-request", kind: KindRequest, method: "up", response: `null`, streams: 1,
		request: `{"name":"f","stream":{"_isVirtualStream":true,"streamId":"uni_e7686a8e00a6ebf9acf3a7e2"}}`,
		id:      "uni_4f3019c5a753b1d3ee3aaafa",
	},
}

func TestCaptures(t *testing.T) {
	files, _ := filepath.Glob("testdata/captures/*.json")
	if len(files) != len(captures) {
		t.Errorf("%d files for %d captures", len(files), len(captures))
	}
	var f Frame
	for _, c := range captures {
		t.Run(c.name, func(t *testing.T) {
			text := capture(t, c.name)
			if err := Scan(text, &f); err != nil {
				t.Fatal(err)
			}
			compareWithReference(t, text)
			if f.Kind() != c.kind || f.Body.Streams != c.streams || f.HasLocalData != c.hasLocalData {
				t.Errorf("kind %v, streams %d, localData %v", f.Kind(), f.Body.Streams, f.HasLocalData)
			}
			isObject := c.kind == KindRequest || c.response != `null`
			if f.Body.Object != isObject {
				t.Errorf("object is %v", f.Body.Object)
			}
			for _, member := range []struct{ name, got, want string }{
				{"method", string(f.Method), c.method},
				{"request", string(f.Request), c.request},
				{"response", string(f.Response), c.response},
				{"id", string(f.ID), c.id},
				{"instance", string(f.Instance), c.instance},
			} {
				if member.got != member.want {
					t.Errorf("%s is %s, want %s", member.name, member.got, member.want)
				}
			}
			if got := string(joinRequest(c.method, c.request, c.id, c.instance)); c.composesAsOurOwn != (got == string(text)) {
				t.Errorf("composed as\n%s", got)
			}
		})
	}
}

func joinRequest(method, body, id, instance string) []byte {
	text := AppendRequestHead(nil, method)
	text = append(text, body...)
	return AppendRequestTail(text, id, instance)
}
