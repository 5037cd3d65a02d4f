package operator

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/typedsocket/carriertest"
)

func TestRoutes(t *testing.T) {
	const text, binary = "text/plain; charset=utf-8", "application/octet-stream"
	nothing := "there is nothing here; / lists what there is\n"
	tests := []struct {
		path   string
		status int
		kind   string
		begins string
		route  route
		became outcome
	}{
		{"/", 200, text, "cluster relay, operator endpoint\n", routeIndex, served},
		{"/livez", 200, text, "ok\n", routeLive, served},
		{"/healthz", 200, text, "ok\n", routeLive, served},
		{"/livez?verbose", 200, text, "ok\n", routeLive, served},
		{"/readyz", 503, text, "not ready\n", routeReady, notReady},
		{"/status", 200, "application/json", `{"schema":1,`, routeStatus, served},
		{"/events", 200, "application/json", `{"events":[{"seq":1,`, routeEvents, served},
		{"/metrics", 200, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", "# HELP go_gc_duration_seconds", routeMetrics, served},
		{"/explain?from=10.0.0.1&to=10.1.0.1", 404, "application/json", `{"error":"no-hub","hint":"`, routeExplain, notFound},
		{"/explain", 400, text, "from must be given once, as an IP address\n", routeExplain, misused},
		{"/explain/", 404, text, nothing, routeNothing, notFound},
		{"/debug/pprof/", 200, text, "profile?seconds=N\ntrace?seconds=N\nallocs?debug=1\n", routeProfile, served},
		{"/debug/pprof/heap", 200, binary, "\x1f\x8b", routeProfile, served},
		{"/debug/pprof/goroutine?debug=1", 200, text, "goroutine profile: total ", routeProfile, served},
		{"/debug/pprof/allocs?gc=1", 200, binary, "\x1f\x8b", routeProfile, served},
		{"/debug/pprof/cmdline", 404, text, nothing, routeProfile, notFound},
		{"/debug/pprof/symbol", 404, text, nothing, routeProfile, notFound},
		{"/debug/pprof", 404, text, nothing, routeNothing, notFound},
		{"/debug/vars", 404, text, nothing, routeNothing, notFound},
		{"/livez/", 404, text, nothing, routeNothing, notFound},
		{"/Livez", 404, text, nothing, routeNothing, notFound},
		{"//livez", 404, text, nothing, routeNothing, notFound},
		{"/x/../livez", 404, text, nothing, routeNothing, notFound},
		{"/index.html", 404, text, nothing, routeNothing, notFound},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			carriertest.Bubble(t, func(t *testing.T) {
				r := newRig(t)
				got := r.get(test.path)
				if got.status != test.status || got.header.Get("Content-Type") != test.kind || !strings.HasPrefix(got.body, test.begins) {
					t.Errorf("%d %q %.80q", got.status, got.header.Get("Content-Type"), got.body)
				}
				if n := r.count(test.route, test.became); n != 1 {
					t.Errorf("counted %d as %s %s", n, test.route, test.became)
				}
				head := r.do(local, "HEAD "+test.path)
				if head.status != test.status || head.body != "" {
					t.Errorf("HEAD: %d %.80q", head.status, head.body)
				}
				for _, answer := range []read{got, head} {
					wantSecured(t, answer)
				}
				got.header.Del("Content-Length")
				got.header.Del("Date")
				head.header.Del("Content-Length")
				head.header.Del("Date")
				if diff := cmp.Diff(slices.Sorted(maps.Keys(got.header)), slices.Sorted(maps.Keys(head.header))); diff != "" && test.kind != binary {
					t.Errorf("headers of GET and HEAD: %s", diff)
				}
			})
		})
	}
}

func wantSecured(t *testing.T, answer read) {
	t.Helper()
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
	} {
		if got := answer.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if location := answer.header.Get("Location"); location != "" {
		t.Errorf("a redirect to %s", location)
	}
}

func TestMisuse(t *testing.T) {
	tests := []struct {
		name    string
		line    string
		headers []string
		status  int
		body    string
		closes  bool
	}{
		{"POST", "POST /livez", []string{"Content-Length: 0"}, 405, "this endpoint is read only: GET and HEAD\n", false},
		{"PUT of a body", "PUT /status", []string{"Content-Length: 9"}, 405, "this endpoint is read only: GET and HEAD\n", true},
		{"DELETE", "DELETE /events", nil, 405, "this endpoint is read only: GET and HEAD\n", false},
		{"OPTIONS of all", "OPTIONS *", nil, 405, "this endpoint is read only: GET and HEAD\n", false},
		{"TRACE", "TRACE /", nil, 405, "this endpoint is read only: GET and HEAD\n", false},
		{"an unknown method", "BREW /nowhere", nil, 405, "this endpoint is read only: GET and HEAD\n", false},
		{"a body of known length", "GET /livez", []string{"Content-Length: 9"}, 400, "requests have no body here\n", true},
		{"a body in chunks", "GET /livez", []string{"Transfer-Encoding: chunked"}, 400, "requests have no body here\n", true},
		{"a name for Host", "GET /livez", []string{"Host: relay.example"}, 421, "the Host header must be an IP address or localhost\n", false},
		{"a name with our port", "GET /status", []string{"Host: relay.example:9465"}, 421, "the Host header must be an IP address or localhost\n", false},
		{"a name in the target", "GET http://relay.example/livez", nil, 421, "the Host header must be an IP address or localhost\n", false},
		{"an empty Host", "GET /livez", []string{"Host:"}, 421, "the Host header must be an IP address or localhost\n", false},
		{"localhost", "GET /livez", []string{"Host: LocalHost:1"}, 200, "ok\n", false},
		{"IPv6", "GET /livez", []string{"Host: [::1]:9465"}, 200, "ok\n", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			carriertest.Bubble(t, func(t *testing.T) {
				r := newRig(t)
				c := r.dial(local)
				got := c.do(test.line, test.headers...)
				if got.status != test.status || got.body != test.body {
					t.Errorf("%d %q, want %d %q", got.status, got.body, test.status, test.body)
				}
				wantSecured(t, got)
				allow := ""
				if test.status == http.StatusMethodNotAllowed {
					allow = "GET, HEAD"
				}
				if got.header.Get("Allow") != allow {
					t.Errorf("Allow is %q", got.header.Get("Allow"))
				}
				if test.closes {
					if !c.closed() {
						t.Error("the connection stays, so its body was read")
					}
					return
				}
				if again := c.do("GET /livez"); again.status != 200 {
					t.Errorf("the next request: %d", again.status)
				}
			})
		})
	}
}

func TestHost(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:9465": true, "10.0.4.7:1": true, "0.0.0.0": true, "[::1]": true, "[::1]:9465": true,
		"[fd00::7]:80": true, "[::ffff:10.0.0.1]": true, "localhost": true, "localhost:9465": true, "LOCALHOST": true, "localhost:": true,
		"": false, ":9465": false, "relay": false, "relay.example": false, "localhost.": false, "x.localhost": false,
		"localhost.example": false, "127.0.0.1.example": false, "127.1": false, "0x7f000001": false, "2130706433": false,
		"::1": false, "[::1": false, "::1]": false, "[localhost]": false, "[127.0.0.1]": false, "[fe80::1%eth0]": false,
		"127.0.0.1:80x": false, "127.0.0.1:123456": false, "[::1]80": false, "[::1]:x": false, "localhost:80:80": false, "127.0.0.1 ": false,
	} {
		if got := isDirect(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

func TestLoopback(t *testing.T) {
	for peer, want := range map[string]bool{
		"127.0.0.1:1": true, "127.8.0.1:1": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true,
		"10.0.0.1:1": false, "[fd00::1]:1": false, "[::ffff:10.0.0.1]:1": false, "0.0.0.0:1": false, "": false, "pipe": false, "localhost:1": false,
	} {
		if got := isLoopback(peer); got != want {
			t.Errorf("%q: %v", peer, got)
		}
	}
}

func TestBadParameters(t *testing.T) {
	number := " must be given once, as a whole number from "
	events := map[string]string{
		"fromSeq": "fromSeq" + number + "0 to 9007199254740991\n",
		"limit":   "limit" + number + "1 to 4096\n",
		"wait":    "wait" + number + "0 to 30\n",
	}
	verbose := "verbose must be given once, alone or as true or false\n"
	format := "format must be given once, as text or json\n"
	from := "from must be given once, as an IP address\n"
	pairs := "the query is not one of name=value pairs\n"
	tests := []struct{ target, want string }{
		{"/events?fromSeq=", events["fromSeq"]},
		{"/events?fromSeq=-1", events["fromSeq"]},
		{"/events?fromSeq=+1", events["fromSeq"]},
		{"/events?fromSeq=1e3", events["fromSeq"]},
		{"/events?fromSeq=0x10", events["fromSeq"]},
		{"/events?fromSeq=9007199254740992", events["fromSeq"]},
		{"/events?fromSeq=99999999999999999999", events["fromSeq"]},
		{"/events?fromSeq=1&fromSeq=1", events["fromSeq"]},
		{"/events?limit=0", events["limit"]},
		{"/events?limit=4097", events["limit"]},
		{"/events?limit=x", events["limit"]},
		{"/events?wait=31", events["wait"]},
		{"/events?wait=0.5", events["wait"]},
		{"/events?%zz=1", pairs},
		{"/events?a;b", pairs},
		{"/readyz?verbose=yes", verbose},
		{"/readyz?verbose&verbose", verbose},
		{"/readyz?format=xml", format},
		{"/readyz?format=json&format=json", format},
		{"/readyz?%zz", pairs},
		{"/debug/pprof/profile?seconds=0", "seconds" + number + "1 to 60\n"},
		{"/debug/pprof/profile?seconds=61", "seconds" + number + "1 to 60\n"},
		{"/debug/pprof/trace?seconds=11", "seconds" + number + "1 to 10\n"},
		{"/debug/pprof/goroutine?debug=2", "debug" + number + "0 to 1\n"},
		{"/debug/pprof/heap?gc=yes", "gc" + number + "0 to 1\n"},
		{"/debug/pprof/heap?seconds=1", "seconds is a parameter of profile and trace alone\n"},
		{"/debug/pprof/?%zz", pairs},
		{"/explain?%zz", pairs},
		{"/explain?to=10.0.0.1", from},
		{"/explain?from=&to=10.0.0.1", from},
		{"/explain?from=node-a&to=10.0.0.1", from},
		{"/explain?from=10.0.0.1/32&to=10.0.0.1", from},
		{"/explain?from=10.0.0.01&to=10.0.0.1", from},
		{"/explain?from=10.0.0.1:80&to=10.0.0.1", from},
		{"/explain?from=fe80::1%25eth0&to=10.0.0.1", from},
		{"/explain?from=10.0.0.1&from=10.0.0.1&to=10.0.0.1", from},
		{"/explain?from=10.0.0.1", strings.Replace(from, "from", "to", 1)},
		{"/explain?from=10.0.0.1&to=x", strings.Replace(from, "from", "to", 1)},
	}
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.profiles.take() // the runtime profiles in real time, so here nobody may
		for _, test := range tests {
			if got := r.get(test.target); got.status != 400 || got.body != test.want {
				t.Errorf("%s: %d %q, want %q", test.target, got.status, got.body, test.want)
			}
		}
	})
}
