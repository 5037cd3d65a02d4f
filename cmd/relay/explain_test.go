package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// explain runs `relay explain` against an operator endpoint that answers as h says.
func explain(t *testing.T, h http.HandlerFunc, flags ...string) (code int, stdout, stderr string) {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	var out, errs strings.Builder
	code = run(process{
		args: append([]string{
			"explain", "--from=10.0.0.1", "--to=10.1.0.1", "--operator=" + server.Listener.Addr().String(),
		}, flags...),
		stdout: &out, stderr: &errs,
	})
	return code, out.String(), errs.String()
}

// answers is an endpoint with one answer.
func answers(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

const admitted = `{"admitted":true,"action":"relay","reason":"","revision":3,` +
	`"from":{"address":"10.0.0.1","node":"node-a","prefix":"10.0.0.0/24","domain":"web","connected":true},` +
	`"to":{"address":"10.1.0.1","node":"node-b","prefix":"10.1.0.0/24","domain":"db","connected":true},` +
	`"suspended":false,"sentence":"A packet from 10.0.0.1 to 10.1.0.1 is relayed: revision 3 grants \"web\" to \"db\"."}`

// An answer is an answer, whatever becomes of the packet.
func TestExplain(t *testing.T) {
	sentence := "A packet from 10.0.0.1 to 10.1.0.1 is relayed: revision 3 grants \"web\" to \"db\".\n"
	dropped := strings.NewReplacer(`"admitted":true`, `"admitted":false`, `"relay"`, `"drop"`, `"reason":""`, `"reason":"no-grant"`, "relayed", "dropped").Replace(admitted)
	for _, test := range []struct{ answer, sentence string }{
		{admitted, sentence}, {dropped, strings.Replace(sentence, "relayed", "dropped", 1)},
	} {
		asked := ""
		h := func(w http.ResponseWriter, r *http.Request) {
			asked = r.URL.String()
			answers(200, "application/json", test.answer)(w, r)
		}
		code, stdout, stderr := explain(t, h)
		if code != exitClean || stdout != test.sentence || stderr != "" {
			t.Errorf("ended with %d, %q, %q", code, stdout, stderr)
		}
		if asked != "/explain?from=10.0.0.1&to=10.1.0.1" {
			t.Errorf("asked for %s", asked)
		}
		code, stdout, stderr = explain(t, h, "--json")
		if diff := cmp.Diff(test.answer+"\n", stdout); code != exitClean || diff != "" || stderr != "" || !json.Valid([]byte(stdout)) {
			t.Errorf("--json ended with %d, %q: %s", code, stderr, diff)
		}
	}
}

// Why there is no answer is said by name; what a peer said is not repeated.
func TestExplain_NoAnswer(t *testing.T) {
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"no hub", answers(404, "application/json", `{"error":"no-hub"}`), "relay: the relay has no hub: it was started without --hub-listen\n"},
		{"an older relay", answers(404, "text/plain", "a secret!"), "relay: ask the relay for /explain: status 404\n"},
		{"another machine's", answers(403, "text/plain", "a secret!"), "relay: ask the relay for /explain: it is answered on the relay's own machine alone, by a loopback address (403)\n"},
		{"too much at once", answers(503, "text/plain", "a secret!"), "relay: ask the relay for /explain: it cannot answer at present (503)\n"},
		{"something else", answers(200, "text/html", "a secret!"), "relay: ask the relay for /explain: the answer is not JSON\n"},
		{"half an answer", answers(200, "application/json", admitted[:40]), "relay: ask the relay for /explain: the answer is not JSON\n"},
	} {
		for _, flag := range []string{"--json", "--json=false"} {
			if code, stdout, stderr := explain(t, test.handler, flag); code != exitFailed || stdout != "" || stderr != test.want {
				t.Errorf("%s %s: ended with %d, %q, %q", test.name, flag, code, stdout, stderr)
			}
		}
	}
}

// What an answer could do to a terminal it does not do.
func TestExplain_Terminal(t *testing.T) {
	answer := strings.Replace(admitted, "A packet", `A \u001b[2J\u202epacket\n`, 1)
	_, stdout, _ := explain(t, answers(200, "application/json", answer))
	if want := "A \uFFFD[2J\uFFFDpacket\uFFFD from"; !strings.HasPrefix(stdout, want) || strings.Count(stdout, "\n") != 1 {
		t.Errorf("%q", stdout)
	}
}
