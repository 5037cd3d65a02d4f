package peers

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// exchange sends one text message on a new socket and returns the first answer.
func exchange(t *testing.T, url, message string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := conn.Write(ctx, websocket.MessageText, []byte(message)); err != nil {
		t.Fatal(err)
	}
	kind, answer, err := conn.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if kind != websocket.MessageText {
		t.Errorf("answer is a %v message, want text", kind)
	}
	return string(answer)
}

func TestServersAnswerByteForByte(t *testing.T) {
	const identity = `"requestInstanceId":"uni_ri","correlation":{"id":"uni_c","phase":"response"}`
	tests := []struct{ name, program, method, want string }{
		{
			"v8 answer", "server8.mjs", "echo",
			`{"method":"echo","request":{"a":1},"response":{"got":{"a":1}},` + identity + `}`,
		},
		{
			"v8 typed error", "server8.mjs", "throwTyped",
			`{"method":"throwTyped","request":{"a":1},"response":null,` + identity + `,"error":{"text":"denied","data":{"code":"E1"}}}`,
		},
		{
			"v8 hides any other error", "server8.mjs", "throwPlain",
			`{"method":"throwPlain","request":{"a":1},"response":null,` + identity + `,"error":{"text":"Internal server error","data":{}}}`,
		},
		{
			"v8 unknown method", "server8.mjs", "h_none",
			`{"method":"h_none","request":{"a":1},"response":null,` + identity +
				`,"error":{"text":"There is no available method for this call on the server side","data":{}}}`,
		},
		{
			"v8 retry", "server8.mjs", "retryTwice",
			`{"method":"retryTwice","request":{"a":1},"response":null,` + identity + `,"retry":{"waitForMs":20,"reason":"not yet"}}`,
		},
		{
			"3.3.0 answer", "server3.mjs", "echo",
			`{"method":"echo","request":{"a":1},"response":{"got":{"a":1}},` + identity + `,"localData":null}`,
		},
		{
			"3.3.0 swallows any other error", "server3.mjs", "throwPlain",
			`{"method":"throwPlain","request":{"a":1},"response":null,` + identity + `,"localData":null}`,
		},
	}
	urls := map[string]string{
		"server8.mjs": Start(t, "server8.mjs").URL(),
		"server3.mjs": Start(t, "server3.mjs").URL(),
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			request := `{"method":"` + test.method + `","request":{"a":1},"response":null,` +
				strings.Replace(identity, "response", "request", 1) + `}`
			if diff := cmp.Diff(test.want, exchange(t, urls[test.program], request)); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// Where the versions differ: keyed by client and server.
var differing = map[[2]string]map[string]string{
	{"client8.mjs", "server8.mjs"}: {
		"plainError": `{"error":{"name":"TypedResponseError","text":"Internal server error","data":{}}}`,
		"retryTwice": `{"response":{"attempts":3},"sends":3,"correlations":1,"instances":3}`,
		"retryForever": `{"error":{"name":"TypedRequestRetryLimitError","message":` +
			`"Typed request \"retryForever\" exceeded its 3 server-directed retries"},"sends":4,"correlations":1,"instances":4}`,
		"silence": `{"silent":{"error":{"name":"Error","message":"TypedTarget response timed out after 300ms"}},"after":{"response":{"got":{"n":1}}}}`,
	},
	{"client3.mjs", "server8.mjs"}: {
		"plainError": `{"error":{"name":"TypedResponseError","text":"Internal server error","data":{}}}`,
		"retryTwice": `{"response":{"attempts":3},"sends":3,"correlations":1,"instances":0}`,
		"silence":    `{"silent":{"error":{"name":"Error","message":"no answer in 300ms"}},"after":{"response":{"got":{"n":1}}}}`,
	},
	{"client8.mjs", "server3.mjs"}: {
		"plainError": `{"response":null}`,
		"retryTwice": `{"response":{"attempts":3},"sends":3,"correlations":1,"instances":3}`,
	},
	{"client3.mjs", "server3.mjs"}: {
		"plainError": `{"response":null}`,
		"retryTwice": `{"response":{"attempts":3},"sends":3,"correlations":1,"instances":0}`,
	},
}

func TestClientsAgainstServers(t *testing.T) {
	for pair, own := range differing {
		t.Run(pair[0]+" "+pair[1], func(t *testing.T) {
			var names []string
			want := map[string]string{}
			for _, results := range []map[string]string{Agreed(), own} {
				for name, result := range results {
					names = append(names, name)
					want[name] = result
				}
			}
			server := Start(t, pair[1])
			client := Start(t, pair[0], append([]string{server.URL()}, names...)...)
			for _, name := range names {
				if diff := cmp.Diff(want[name], client.Result(name)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
			client.Await("done", nil)
			if code := client.Wait(); code != 0 {
				t.Errorf("client ended with %d", code)
			}
			var closed struct {
				Code int `json:"code"`
			}
			if server.Await("closed", &closed); closed.Code != 1000 {
				t.Errorf("server saw close code %d, want 1000", closed.Code)
			}
		})
	}
}

// The malformed answers that leave a v8 caller waiting, those that fail its call, and those it accepts.
func TestMalformedAnswersAgainstTheRealClient(t *testing.T) {
	server := Start(t, "server8.mjs")
	client := Start(t, "client8.mjs", server.URL(), "malformedAnswers")
	var outcomes map[string]struct {
		Response any
		Error    *struct{ Name, Message, Text string }
	}
	if err := json.Unmarshal([]byte(client.Result("malformedAnswers")), &outcomes); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for kind, outcome := range outcomes {
		switch {
		case outcome.Error == nil:
			got[kind] = "accepted"
		case strings.Contains(outcome.Error.Message, "timed out"):
			got[kind] = "waits"
		default:
			got[kind] = outcome.Error.Name
		}
	}
	want := map[string]string{
		"instance-id-absent": "waits", "instance-id-other": "waits", "method-other": "waits",
		"correlation-absent": "waits", "correlation-id-other": "waits", "phase-unknown": "waits",
		"response-absent": "TypeError", "error-null": "TypeError", "error-string": "TypeError",
		"error-text-absent": "TypeError", "error-text-number": "TypeError",
		"retry-wait-zero": "RangeError", "retry-wait-negative": "RangeError", "retry-wait-fraction": "RangeError",
		"retry-wait-string": "RangeError", "retry-wait-huge": "RangeError",
		"retry-null": "accepted", "error-data-null": "TypedResponseError", "request-null": "accepted",
		"request-absent": "accepted", "response-null": "accepted", "local-data-null": "accepted",
		"answered-twice": "accepted", "duplicate-member": "accepted", "deep": "accepted", "binary": "accepted",
		"empty": "waits", "not-json": "waits", "truncated": "waits", "trailing-data": "waits", "array": "waits",
		"number": "waits", "null": "waits", "byte-order-mark": "waits",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

func TestServerCommands(t *testing.T) {
	server := Start(t, "server8.mjs", "--record")
	client := Start(t, "client8.mjs", server.URL(), "echo", "closed")
	client.Result("echo")

	var frame struct {
		Direction string `json:"direction"`
		Text      string `json:"text"`
	}
	server.Await("frame", &frame)
	if frame.Direction != "in" || !strings.HasPrefix(frame.Text, `{"method":"echo","request":{"a":1,`) {
		t.Errorf("first recorded frame: %+v", frame)
	}

	server.Send(map[string]any{"do": "call", "calls": []map[string]any{{"method": "clientAdds", "request": map[string]int{"q": 1}}}})
	var called struct {
		Answers any `json:"answers"`
	}
	server.Await("called", &called)
	if diff := cmp.Diff([]any{map[string]any{"response": map[string]any{"answer": 2.0}}}, called.Answers); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}

	server.Send(map[string]any{"do": "close", "code": 4001, "reason": "enough"})
	if got, want := client.Result("closed"), `{"code":4001,"reason":"enough"}`; got != want {
		t.Errorf("closed: %s, want %s", got, want)
	}
	server.Send(map[string]string{"do": "stop"})
	if code := server.Wait(); code != 0 {
		t.Errorf("server ended with %d", code)
	}
}

// outcome records how a test that started a peer ended.
type outcome struct {
	testing.TB
	skipped, failed bool
}

func (o *outcome) Helper()               {}
func (o *outcome) Cleanup(func())        {}
func (o *outcome) Skipf(string, ...any)  { o.skipped = true; runtime.Goexit() }
func (o *outcome) Fatalf(string, ...any) { o.failed = true; runtime.Goexit() }

func startOutcome(start func(testing.TB)) *outcome {
	o := &outcome{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		start(o)
	}()
	<-done
	return o
}

func TestMissingNodeSkipsUnlessRequired(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, test := range []struct {
		require         string
		skipped, failed bool
	}{{"", true, false}, {"0", true, false}, {"1", false, true}} {
		t.Setenv(RequireVariable, test.require)
		got := startOutcome(func(tb testing.TB) { Start(tb, "server8.mjs") })
		if got.skipped != test.skipped || got.failed != test.failed {
			t.Errorf("%s=%q: skipped %v, failed %v", RequireVariable, test.require, got.skipped, got.failed)
		}
	}
}

func TestAwaitFailsWhenThePeerEnds(t *testing.T) {
	p := Start(t, "no-such-program.mjs")
	got := startOutcome(func(tb testing.TB) {
		p.tb = tb
		p.Await("ready", nil)
	})
	if !got.failed {
		t.Error("waited for an event of a peer that had ended")
	}
	if report := p.report(); !strings.Contains(report, "no-such-program.mjs") {
		t.Errorf("the report does not show what the peer wrote: %s", report)
	}
}

// The bundle is the only copy of the v8 source that is served: its lock entry must stay this very content.
func TestLockFilePinsEveryPackage(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("typedrequest8", "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct{ Version, Integrity, Resolved string }
	}
	if err := json.Unmarshal(content, &lock); err != nil {
		t.Fatal(err)
	}
	for path, entry := range lock.Packages {
		if path == "" {
			continue
		}
		if !strings.HasPrefix(entry.Integrity, "sha512-") {
			t.Errorf("%s has no sha512", path)
		}
		if entry.Resolved != "" {
			t.Errorf("%s names the registry it came from", path)
		}
	}
	const bundle = "sha512-iSkbsyR7/bzdv/hJcwDI/919V17xqwb5teHj8JAcziuIjdJnRAcYK4+S5KIqDK1KhioYcn7yuZRW0gTv6xEW9w=="
	pins := map[string][2]string{
		"node_modules/@design.estate/dees-comms": {"1.1.0", bundle},
		"node_modules/@api.global/typedrequest":  {"3.3.0", ""},
		"node_modules/@push.rocks/smartserve":    {"2.0.3", ""},
		"node_modules/ws":                        {"8.23.0", ""},
	}
	for path, want := range pins {
		entry := lock.Packages[path]
		if entry.Version != want[0] || want[1] != "" && entry.Integrity != want[1] {
			t.Errorf("%s is %s %s, want %v", path, entry.Version, entry.Integrity, want)
		}
	}
}
