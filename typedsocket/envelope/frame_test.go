package envelope

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"weak"
)

func scan(t *testing.T, text string) *Frame {
	t.Helper()
	f := new(Frame)
	if err := Scan([]byte(text), f); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return f
}

// TestKind walks through the malformed envelopes of TypedRequest, none of
// which is an error of the scan.
func TestKind(t *testing.T) {
	for _, c := range []struct {
		text string
		want Kind
	}{
		{`{"method":"m","request":{},"correlation":{"id":"i","phase":"request"}}`, KindRequest},
		{`{"method":"m","request":[],"correlation":{"id":"i","phase":"request"}}`, KindRequest},
		{`{"correlation":{"phase":"request","id":"i"},"requestInstanceId":"r","response":1,"request": {"a":1} ,"method":"m"}`, KindRequest},
		{`{"method":"m","request":{},"response":{},"error":{},"localData":null,"x":1,"correlation":{"id":"i","phase":"request","x":1}}`, KindRequest},
		{`{"\u006dethod":"m","request":{},"correl\u0061tion":{"i\u0064":"i","ph\u0061se":"requ\u0065st"}}`, KindRequest},
		{`{"method":"m","request":null,"correlation":{"id":"i","phase":"request"}}`, KindNone},
		{`{"method":"m","request":"x","correlation":{"id":"i","phase":"request"}}`, KindNone},
		{`{"method":"m","request":1,"correlation":{"id":"i","phase":"request"}}`, KindNone},
		{`{"method":"m","correlation":{"id":"i","phase":"request"}}`, KindNone},

		{`{"method":"m","response":{},"correlation":{"id":"i","phase":"response"}}`, KindResponse},
		{`{"method":"m","response":null,"correlation":{"id":"i","phase":"response"}}`, KindResponse},
		{`{"method":"m","request":null,"correlation":{"id":"i","phase":"response"}}`, KindResponse},
		{`{"method":"m","error":null,"retry":1,"correlation":{"id":"i","phase":"response"}}`, KindResponse},

		{`{}`, KindNone},
		{`{"response":{"a":1}}`, KindNone},
		{`{"method":"##VirtualStream##","request":{"streamId":"uni_s"},"response":null}`, KindNone},
		{`{"request":{},"correlation":{"id":"i","phase":"request"}}`, KindNone},
		{`{"method":"","request":{},"correlation":{"id":"i","phase":"request"}}`, KindNone},
		{`{"method":1,"request":{},"correlation":{"id":"i","phase":"request"}}`, KindNone},
		{`{"Method":"m","request":{},"correlation":{"id":"i","phase":"request"}}`, KindNone},
		{`{"method":"m","request":{},"correlation":null}`, KindNone},
		{`{"method":"m","request":{},"correlation":"request"}`, KindNone},
		{`{"method":"m","request":{},"correlation":["id","request"]}`, KindNone},
		{`{"method":"m","request":{},"correlation":{"id":"i"}}`, KindNone},
		{`{"method":"m","request":{},"correlation":{"id":"i","phase":"Request"}}`, KindNone},
		{`{"method":"m","request":{},"correlation":{"id":"i","phase":null}}`, KindNone},
		{`{"method":"m","request":{},"correlation":{"id":"i","phase":{"phase":"request"}}}`, KindNone},
		{`{"method":"m","request":{},"id":"i","phase":"request"}`, KindNone},
		{`{"method":"m","request":{},"requestInstanceId":"","correlation":{"id":"i","phase":"request"}}`, KindNone},
		{`{"method":"m","request":{},"requestInstanceId":null,"correlation":{"id":"i","phase":"request"}}`, KindNone},
		{`{"method":"m","response":{},"requestInstanceId":7,"correlation":{"id":"i","phase":"response"}}`, KindNone},
	} {
		if got := scan(t, c.text).Kind(); got != c.want {
			t.Errorf("%s: got %v, want %v", c.text, got, c.want)
		}
		compareWithReference(t, []byte(c.text))
	}
}

// B181: odd ids crash nothing, and none is answered or taken for another.
func TestB181_OddIDs(t *testing.T) {
	const frame = `{"method":"m","request":{},"correlation":{%s"phase":"request"}}`
	for _, id := range []string{``, `"id":null,`, `"id":{},`, `"id":{"id":"i"},`, `"id":[],`, `"id":1e400,`, `"id":true,`, `"id":"",`} {
		f := scan(t, fmt.Sprintf(frame, id))
		if f.Kind() != KindNone || len(f.ID) != 0 || f.Phase != PhaseRequest {
			t.Errorf("%s: kind %v, id %q, phase %v", id, f.Kind(), f.ID, f.Phase)
		}
		if isString := id == `"id":"",`; isString != (f.ID != nil) || isString != (f.IDToken != nil) {
			t.Errorf("%s: id %v, token %v", id, f.ID, f.IDToken)
		}
	}
	for _, ids := range []string{`"id":"a","id":"a",`, `"id":"a","id":null,`, `"id":null,"\u0069d":"a",`} {
		if got := scanRule(t, fmt.Sprintf(frame, ids)); got != RuleDuplicateName {
			t.Errorf("%s: got %v", ids, got)
		}
	}
}

func TestPhase(t *testing.T) {
	for phase, want := range map[string]Phase{
		``: PhaseNone, `"phase":"request"`: PhaseRequest, `"phase":"response"`: PhaseResponse,
		`"phase":"\u0072esponse"`: PhaseResponse, `"phase":"cancel"`: PhaseOther, `"phase":""`: PhaseOther,
		`"phase":1`: PhaseOther, `"phase":null`: PhaseOther, `"Phase":"request"`: PhaseNone,
		`"phase":"` + strings.Repeat(`\u0072`, 1000) + `"`: PhaseOther,
	} {
		if got := scan(t, `{"correlation":{`+phase+`}}`).Phase; got != want {
			t.Errorf("%.40s: got %v, want %v", phase, got, want)
		}
	}
}

// TestScanKeepsBytes: what is handed out for forwarding is the peer's text,
// whatever its spelling.
func TestScanKeepsBytes(t *testing.T) {
	const request = `{ "b" : 1.0e+2,"a":"\u0041\/" , "n": [ ] }`
	const response = "[\t1 ,\n2]"
	const errorValue = `{ "text":"\u0041" }`
	text := "\n{ \"response\" :" + response + " , \"error\":\t" + errorValue + ",\"retry\" : null\r,\"request\": " + request +
		` , "requestInstanceId":"r\/\u0031", "correlation" : { "id" : "\u0069d" , "phase":"request" } , "method":"\u006d\ud83d\ude00"}` + "\n"
	f := scan(t, text)
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"request", f.Request, request},
		{"response", f.Response, response},
		{"error", f.Error, errorValue},
		{"retry", f.Retry, `null`},
		{"id", f.ID, `id`},
		{"id token", f.IDToken, `"\u0069d"`},
		{"instance", f.Instance, `r/1`},
		{"instance token", f.InstanceToken, `"r\/\u0031"`},
		{"method", f.Method, `m😀`},
	} {
		if string(c.got) != c.want {
			t.Errorf("%s is %s, want %s", c.name, c.got, c.want)
		}
		if cap(c.got) != len(c.got) {
			t.Errorf("%s: appending to it would write into the frame", c.name)
		}
	}
	if f.Kind() != KindRequest {
		t.Errorf("kind %v", f.Kind())
	}
	if text[f.RequestAt:][:len(request)] != request || text[f.ResponseAt:][:len(response)] != response {
		t.Errorf("request at %d, response at %d", f.RequestAt, f.ResponseAt)
	}
}

// TestFrameIsReused: nothing of one frame shows in the next, and of a refused
// one nothing at all.
func TestFrameIsReused(t *testing.T) {
	full := []byte(`{"method":"\u006d","request":{"nodeId":"\u0061","session":{"nodeId":"\u0061"},"s":{"_isVirtualStream":true}},"response":{},` +
		`"error":{},"retry":{},"localData":1,"requestInstanceId":"\u0061","correlation":{"id":"\u0061","phase":"request"}}`)
	f := new(Frame)
	for _, text := range []string{`{}`, `{`, `{"request":{"session":{"a":1,"b":2,`, "\xff"} {
		if err := Scan(full, f); err != nil || f.Kind() != KindRequest {
			t.Fatal(err, f.Kind())
		}
		_ = Scan([]byte(text), f)
		if diff := diffFrames(new(Frame), f); diff != "" {
			t.Errorf("after %q (-want +got):\n%s", text, diff)
		}
	}
}

// TestResetForgetsText: a frame may hold a bearer, so nothing keeps it alive.
func TestResetForgetsText(t *testing.T) {
	f := new(Frame)
	forgotten := func(text string, reset bool) bool {
		b := new([]byte)
		*b = []byte(text)
		pointer := weak.Make(&(*b)[0])
		_ = Scan(*b, f)
		if reset {
			f.Reset()
		}
		b = nil
		runtime.GC()
		runtime.KeepAlive(f)
		return pointer.Value() == nil
	}
	long := strings.Repeat(" ", 100)
	if forgotten(long+`{"method":"m"}`, false) {
		t.Error("the frame does not alias its text")
	}
	for _, text := range []string{
		long + `{"method":"m","request":{"session":{"nodeId":"a"},"nodeId":"a"},"correlation":{"id":"a","phase":"request"}}`,
		long + `{"a":{},"request":{"session":{"b":1,"c":[`,
	} {
		if !forgotten(text, true) {
			t.Errorf("%.150s stays reachable", text)
		}
	}
	for _, text := range []string{`{"request":{"session":{"\u0053ECRET":1}}}`, `{"request":{"session":{"\u0053ECRET":`} {
		_ = Scan([]byte(text), f)
		if names := f.names.text[:cap(f.names.text)]; len(names) == 0 || bytes.Contains(names, []byte("ECRET")) {
			t.Errorf("after %s the memory for names holds %q", text, names)
		}
	}
}

// TestTextsOutliveTheFrame: what is handed out lives as long as the text,
// whatever the Frame is used for next.
func TestTextsOutliveTheFrame(t *testing.T) {
	f := new(Frame)
	frame := func(letter string) []byte {
		return []byte(strings.ReplaceAll(`{"method":"\u006d.","request":{"nodeId":"\u006e.","session":{"nodeId":"\u006e."}},"requestInstanceId":"\u0072.",`+
			`"correlation":{"id":"\u0069.","phase":"request"}}`, ".", letter))
	}
	if err := Scan(frame("a"), f); err != nil {
		t.Fatal(err)
	}
	first := *f
	if err := Scan(frame("b"), f); err != nil {
		t.Fatal(err)
	}
	f.Reset()
	b := first.Body
	got := string(bytes.Join([][]byte{first.Method, first.ID, first.Instance, b.NodeID, b.SessionNodeID, b.NodeIDs.First}, []byte(" ")))
	if got != "ma ia ra na na na" || !b.NodeIDs.Uniform {
		t.Errorf("got %q", got)
	}
}

// TestFrameMemoryIsBounded: a hostile frame leaves no large memory behind.
func TestFrameMemoryIsBounded(t *testing.T) {
	f := new(Frame)
	wide := []byte(`{"request":{"session":{` + names(MaxNames) + `}},"response":{"` + strings.Repeat(`\u0061`, 1<<16) + `":1}}`)
	for _, text := range [][]byte{wide, wide[:len(wide)-1]} {
		_ = Scan(text, f)
		if cap(f.names.names) > keptNames || cap(f.names.text) > keptTextBytes {
			t.Errorf("kept %d names and %d bytes", cap(f.names.names), cap(f.names.text))
		}
	}
}

func TestScanAllocatesNothing(t *testing.T) {
	f := new(Frame)
	texts := [][]byte{
		benchFrame(500, true), benchFrame(100<<10, false),
		[]byte(`{"\u006dethod":"m","request":{"nodeId":"a","x":[{"node\u0049d":"\u0061"},{"nodeId":"\u0062"}],"\u0073ession":{"nodeId":"a"}},` +
			`"\u0063orrelation":{"id":"i","ph\u0061se":"\u0072equest"}}`),
		[]byte(`{"request":{` + names(keptNames-10) + `}}`),
	}
	for _, c := range captures {
		texts = append(texts, capture(t, c.name))
	}
	for _, text := range texts {
		allocs := testing.AllocsPerRun(20, func() {
			if err := Scan(text, f); err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 0 {
			t.Errorf("%.60s: %v allocations", text, allocs)
		}
	}
}
