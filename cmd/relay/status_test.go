package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// status runs `relay status` against an operator endpoint that answers as h says.
func status(t *testing.T, h http.HandlerFunc, flags ...string) (code int, stdout, stderr string) {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	var out, errs strings.Builder
	code = run(process{args: append([]string{"status", "--operator=" + server.Listener.Addr().String()}, flags...), stdout: &out, stderr: &errs})
	return code, out.String(), errs.String()
}

// answering answers one path and no other.
func answering(path string, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			http.NotFound(w, r)
			return
		}
		h(w, r)
	}
}

// documentText is a document of testdata/status and what is shown of it.
func documentText(t *testing.T, name string) (document, shown string) {
	t.Helper()
	for extension, to := range map[string]*string{".json": &document, ".txt": &shown} {
		text, err := os.ReadFile(filepath.Join("testdata", "status", name+extension))
		if err != nil {
			t.Fatal(err)
		}
		*to = string(text)
	}
	return document, shown
}

// A relay is shown, however it is; --json is its answer to the byte.
func TestStatus(t *testing.T) {
	for _, name := range []string{"well", "away", "starting", "older", "newer"} {
		document, shown := documentText(t, name)
		h := answering("/status", answers(200, "application/json", document))
		if code, stdout, stderr := status(t, h); code != exitClean || stdout != shown || stderr != "" {
			t.Errorf("%s: ended with %d, %q, %q", name, code, stdout, stderr)
		}
		if code, stdout, stderr := status(t, h, "--json"); code != exitClean || stdout != document || stderr != "" {
			t.Errorf("%s --json: ended with %d, %q, %q", name, code, stdout, stderr)
		}
	}
}

// Why there is no answer is said by name; what a peer said is not repeated.
func TestStatus_NoAnswer(t *testing.T) {
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"too much at once", answers(503, "text/plain", "a secret!"), "it cannot answer at present (503)"},
		{"something else", answers(200, "text/html", "a secret!"), "the answer is not JSON"},
		{"half an answer", answers(200, "application/json", `{"schema":1,"a secret!`), "the answer is not JSON"},
		{"another page", answers(404, "text/plain", "a secret!"), "status 404"},
		{"the node listener", answers(400, "text/plain", "a secret!"), "what answers there is no operator endpoint (400)"},
	} {
		for _, flag := range []string{"--json", "--json=false"} {
			want := "relay: ask the relay for /status: " + test.want + "\n"
			if code, stdout, stderr := status(t, test.handler, flag); code != exitFailed || stdout != "" || stderr != want {
				t.Errorf("%s %s: ended with %d, %q, %q", test.name, flag, code, stdout, stderr)
			}
		}
	}
	want := "relay: ask the relay for /status: the answer is JSON, and no status document\n"
	if code, stdout, stderr := status(t, answers(200, "application/json", `{"name":"a secret!"}`)); code != exitFailed || stdout != "" || stderr != want {
		t.Errorf("another program's JSON: ended with %d, %q, %q", code, stdout, stderr)
	}
}

func TestStatus_CheckLive(t *testing.T) {
	const ask = "relay: ask the relay for /livez: "
	for _, test := range []struct {
		handler        http.HandlerFunc
		code           int
		stdout, stderr string
	}{
		{answering("/livez", answers(200, "text/plain", "ok\n")), 0, "live\n", ""},
		{answering("/livez", answers(503, "text/plain", "a secret!")), 2, "", ask + "it cannot answer at present (503)\n"},
		{answering("/other", nil), 2, "", ask + "status 404\n"},
	} {
		if code, stdout, stderr := status(t, test.handler, "--check=live"); code != test.code || stdout != test.stdout || stderr != test.stderr {
			t.Errorf("want %d, %q, %q: %d, %q, %q", test.code, test.stdout, test.stderr, code, stdout, stderr)
		}
	}
}

// notReadyAnswer is that of a relay of which two required checks do not hold.
const notReadyAnswer = `{"ready":false,"findings":[
{"duty":"relay","check":"serving","advice":false,"state":"ok","ageSeconds":3},
{"duty":"hub","check":"hub-key","advice":true,"state":"failing","reason":"key-ephemeral","hint":"Name a file.","ageSeconds":3},
{"duty":"cloudly","check":"cloudly-session","advice":false,"state":"failing","reason":"dial-failed","hint":"Is it up?","facts":{"attempt":3},"since":"2026-12-01T04:00:00Z","ageSeconds":180},
{"duty":"tls","check":"certificate","advice":false,"state":"pending","reason":"certificate-pending","hint":"There is none \u001b[2Jyet.","ageSeconds":0}]}`

func TestStatus_CheckReady(t *testing.T) {
	const ask = "relay: ask the relay for /readyz: "
	for _, test := range []struct {
		name           string
		handler        http.HandlerFunc
		code           int
		stdout, stderr string
	}{
		{"ready", answering("/readyz", answers(200, "application/json", `{"ready":true,"findings":[]}`)), 0, "ready\n", ""},
		{"not ready", answering("/readyz", answers(503, "application/json", notReadyAnswer)), 1, "not ready\n" +
			"WRONG        cloudly-session failing for 3m: dial-failed (attempt=3)\n" +
			"             Is it up?\n" +
			"pending      tls certificate pending: certificate-pending\n" +
			"             There is none \uFFFD[2Jyet.\n", ""},
		{"not ready, and it does not say why", answering("/readyz", answers(503, "application/json", `{"ready":false}`)), 1, "not ready\n", ""},
		{"too much at once", answering("/readyz", answers(503, "text/plain", "a secret!")), 2, "", ask + "it cannot answer at present (503)\n"},
		{"something else", answering("/other", nil), 2, "", ask + "status 404\n"},
	} {
		if code, stdout, stderr := status(t, test.handler, "--check=ready"); code != test.code || stdout != test.stdout || stderr != test.stderr {
			t.Errorf("%s: ended with %d, %q, %q", test.name, code, stdout, stderr)
		}
	}
}

// broken is an output that takes nothing.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// An answer that could not be written is none.
func TestStatus_BrokenOutput(t *testing.T) {
	document, _ := documentText(t, "well")
	for path, flag := range map[string]string{"/status": "--json", "/livez": "--check=live", "/readyz": "--check=ready"} {
		answer := document
		if path == "/readyz" {
			answer = `{"ready":true}`
		}
		server := httptest.NewServer(answering(path, answers(200, "application/json", answer)))
		var errs strings.Builder
		code := run(process{args: []string{"status", flag, "--operator=" + server.Listener.Addr().String()}, stdout: broken{}, stderr: &errs})
		server.Close()
		if code != exitFailed || !strings.HasPrefix(errs.String(), "relay: could not write the answer: ") {
			t.Errorf("%s: ended with %d, %q", flag, code, errs.String())
		}
	}
}

func TestStatusAsACommand(t *testing.T) { runScript(t, "status") }
