package carrier

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/integration/peers"
	"serve.zone/relay/typedsocket"
)

// agreed is what both real clients report of a real server of either version,
// and plainError as version 8 answers it; so they must report of ours.
func agreed() map[string]string {
	results := peers.Agreed()
	results["plainError"] = `{"error":{"name":"TypedResponseError","text":"Internal server error","data":{}}}`
	return results
}

func TestRealClientsAgainstOurServer(t *testing.T) {
	for program, own := range map[string]map[string]string{
		"client8.mjs": {
			"retryTwice": `{"response":{"attempts":3},"sends":3,"correlations":1,"instances":3}`,
			"retryForever": `{"error":{"name":"TypedRequestRetryLimitError","message":` +
				`"Typed request \"retryForever\" exceeded its 3 server-directed retries"},"sends":4,"correlations":1,"instances":4}`,
			"silence": `{"silent":{"error":{"name":"Error","message":"TypedTarget response timed out after 300ms"}},"after":{"response":{"got":{"n":1}}}}`,
		},
		"client3.mjs": {
			"retryTwice": `{"response":{"attempts":3},"sends":3,"correlations":1,"instances":0}`,
			"silence":    `{"silent":{"error":{"name":"Error","message":"no answer in 300ms"}},"after":{"response":{"got":{"n":1}}}}`,
		},
	} {
		t.Run(program, func(t *testing.T) {
			url, accepted := listen(t, typedsocket.Config{Peer: "node", Handler: newMethods()})
			runScenarios(t, program, url, agreed(), own)
			s := <-accepted
			<-s.Done()
			if end, ok := s.Err().(*typedsocket.EndError); !ok || end.Code != typedsocket.CloseNormal || !end.Remote {
				t.Errorf("socket ended with %v", s.Err())
			}
			if st := s.Stats(); st.Malformed+st.Ignored+st.Unmatched != 0 {
				t.Errorf("frames of a real peer did not count: %+v", st)
			}
		})
	}
}

func runScenarios(t *testing.T, program, url string, wanted ...map[string]string) {
	t.Helper()
	want := map[string]string{}
	args := []string{url}
	for _, results := range wanted {
		for name, result := range results {
			want[name] = result
			args = append(args, name)
		}
	}
	client := peers.Start(t, program, args...)
	for _, name := range args[1:] {
		if diff := cmp.Diff(want[name], client.Result(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	client.Await("done", nil)
	if code := client.Wait(); code != 0 {
		t.Errorf("client ended with %d", code)
	}
}

// clientMethods are what the real clients serve, served by ours.
var clientMethods = typedsocket.HandlerFunc(func(r *typedsocket.Request) {
	switch r.Method() {
	case "clientAdds":
		var q int
		fmt.Sscanf(string(r.Body()), `{"q":%d}`, &q)
		r.Answer(fmt.Appendf(nil, `{"answer":%d}`, q+1))
	case "clientThrows":
		r.Refuse("client refuses", []byte(`{"code":"C1"}`))
	default:
		r.RefuseMethod()
	}
})

func TestOurClientAgainstRealServers(t *testing.T) {
	for program, plain := range map[string]string{
		"server8.mjs": `{"error":{"name":"TypedResponseError","text":"Internal server error","data":{}}}`,
		"server3.mjs": `{"response":null}`,
	} {
		t.Run(program, func(t *testing.T) {
			s := dial(t, peers.Start(t, program).URL(), typedsocket.Config{Peer: "cloudly", Handler: clientMethods})
			for _, c := range []struct{ method, request, want string }{
				{"echo", `{"a":1,"b":[1,"é",null]}`, `{"response":{"got":{"a":1,"b":[1,"é",null]}}}`},
				{"throwTyped", `{}`, `{"error":{"name":"TypedResponseError","text":"denied","data":{"code":"E1"}}}`},
				{"throwPlain", `{}`, plain},
				{"nothing", `{}`, `{"response":null}`},
				{"nobodyServesThis", `{}`, `{"error":{"name":"TypedResponseError","text":"There is no available method for this call on the server side","data":{}}}`},
				{"retryTwice", `{}`, `{"response":{"attempts":3}}`},
				{"retryForever", `{}`, `RetryLimitError after 4 sends`},
				{"asksBack", `{"calls":[{"method":"clientAdds","request":{"q":41}},{"method":"clientThrows","request":{}},{"method":"none","request":{}}]}`,
					agreed()["servesCalls"]},
				{"silence", `{}`, "waits"},
			} {
				timeout := 10 * time.Second
				if c.method == "silence" {
					timeout = 300 * time.Millisecond
				}
				if diff := cmp.Diff(c.want, outcome(s, c.method, c.request, timeout)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", c.method, diff)
				}
			}
			var wg sync.WaitGroup
			for n := range 1000 {
				wg.Go(func() {
					body := fmt.Sprintf(`{"n":%d}`, n)
					if got := outcome(s, "echo", body, 30*time.Second); got != `{"response":{"got":`+body+`}}` {
						t.Errorf("call %d in flight: %s", n, got)
					}
				})
			}
			wg.Wait()
			text := strings.Repeat("x", 1<<20)
			if got := outcome(s, "echo", `{"t":"`+text+`"}`, 30*time.Second); got != `{"response":{"got":{"t":"`+text+`"}}}` {
				t.Errorf("1 MiB came back as %d bytes", len(got))
			}
			if st := s.Stats(); st.Malformed+st.Ignored+st.Unmatched != 0 {
				t.Errorf("frames of a real peer did not count: %+v", st)
			}
		})
	}
}

// TestMalformedAnswersOfARealServersSocket has our client meet the answers
// that a real v8 client meets in integration/peers. Where the two differ we are
// the stricter: bytes that O1 refuses fail to match instead of being believed.
func TestMalformedAnswersOfARealServersSocket(t *testing.T) {
	want := map[string]string{
		"instance-id-absent": "waits", "instance-id-other": "waits", "method-other": "waits",
		"correlation-absent": "waits", "correlation-id-other": "waits", "phase-unknown": "waits",
		"response-absent": "AnswerError: it has no member response",
		"error-null":      "AnswerError: its error is no object with a text", "error-string": "AnswerError: its error is no object with a text",
		"error-text-absent": "AnswerError: its error is no object with a text", "error-text-number": "AnswerError: its error is no object with a text",
		"retry-wait-zero": "AnswerError: its retry is not valid", "retry-wait-negative": "AnswerError: its retry is not valid",
		"retry-wait-fraction": "AnswerError: its retry is not valid", "retry-wait-string": "AnswerError: its retry is not valid",
		"retry-wait-huge": "AnswerError: its retry is not valid",
		"retry-null":      "accepted", "request-null": "accepted", "request-absent": "accepted",
		"local-data-null": "accepted", "answered-twice": "accepted",
		"error-data-null": `{"error":{"name":"TypedResponseError","text":"bad","data":null}}`,
		"response-null":   `{"response":null}`,
		"empty":           "waits", "not-json": "waits", "truncated": "waits", "trailing-data": "waits", "array": "waits",
		"number": "waits", "null": "waits", "byte-order-mark": "waits",
		"duplicate-member": "waits", "deep": "waits", "binary": "waits", "invalid-utf8": "waits",
	}
	url := peers.Start(t, "server8.mjs").URL()
	var wg sync.WaitGroup
	for kind, want := range want {
		wg.Go(func() {
			s := dial(t, url, typedsocket.Config{Peer: "cloudly", KeepMalformed: true, Streams: true})
			// The good answer makes us know the peer as one that sends instance ids.
			if got := outcome(s, "echo", `{}`, 30*time.Second); got != `{"response":{"got":{}}}` {
				t.Errorf("%s: %s", kind, got)
			}
			got := outcome(s, "malformed", `{"kind":"`+kind+`","good":false}`, 2*time.Second)
			if got == `{"response":{"kind":"`+kind+`"}}` {
				got = "accepted"
			}
			if got != want {
				t.Errorf("%s: %s, want %s", kind, got, want)
			}
			// Where the caller still waits the right answer must find it.
			if got := outcome(s, "malformed", `{"kind":"`+kind+`","good":true}`, 30*time.Second); want == "waits" && got != `{"response":{"kind":"`+kind+`"}}` {
				t.Errorf("%s, then the right answer: %s", kind, got)
			}
			if s.Err() != nil {
				t.Errorf("%s ended the socket: %v", kind, s.Err())
			}
		})
	}
	wg.Wait()
}

// TestRealPeersThroughTheRelay: a real v8 client, our forwarding, a real
// v8 server. The client cannot tell the difference.
func TestRealPeersThroughTheRelay(t *testing.T) {
	up := dial(t, peers.Start(t, "server8.mjs").URL(), typedsocket.Config{Peer: "cloudly"})
	url, _ := listen(t, typedsocket.Config{Peer: "node", Handler: typedsocket.HandlerFunc(func(r *typedsocket.Request) {
		if err := r.Forward(up, typedsocket.Forward{Method: r.Method(), Flow: "node-a", AnswerFlow: "cloudly"}); err != nil {
			t.Error(err)
			r.Fail()
		}
	})})
	want := map[string]string{
		"retryTwice": `{"response":{"attempts":3},"sends":3,"correlations":1,"instances":3}`,
		"silence":    `{"silent":{"error":{"name":"Error","message":"TypedTarget response timed out after 300ms"}},"after":{"response":{"got":{"n":1}}}}`,
	}
	for _, name := range []string{"echo", "loneSurrogate", "typedError", "plainError", "nothing", "unknownMethod", "inFlight", "outOfOrder", "large"} {
		want[name] = agreed()[name]
	}
	// The real server tells a retried call by its correlation id, which the
	// relay mints anew for every send: it asks to retry for ever.
	want["retryTwice"] = `{"error":{"name":"TypedRequestRetryLimitError","message":` +
		`"Typed request \"retryTwice\" exceeded its 3 server-directed retries"},"sends":4,"correlations":1,"instances":4}`
	runScenarios(t, "client8.mjs", url, want)
}
