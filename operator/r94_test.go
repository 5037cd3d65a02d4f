package operator

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket/carriertest"
)

// mark stands for a secret. Every request of the test bears it somewhere, and
// nothing may ever repeat it.
const mark = "pl4nted"

// plantings are requests as raw text, the good, the bad and the broken.
func plantings() map[string]string {
	bearer := "clusterRelayToken_" + mark + "_" + strings.Repeat("9f3b", 16)
	jwt := "eyJhbGciOiJIUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(`{"id":"`+mark+`"}`)) + "." + mark
	headers := []string{"Authorization: Bearer " + bearer, "Cookie: a=" + mark, "User-Agent: " + mark, "Referer: http://" + mark,
		"X-Forwarded-For: " + mark, "X-" + mark + ": " + jwt, "Accept: " + mark + "/json;" + mark + "=" + mark, "Accept-Encoding: " + mark,
		"If-None-Match: " + mark, "Range: " + mark, "Origin: http://" + mark, "Connection: " + mark, "Accept: application/openmetrics-text;escaping=" + mark}
	all := map[string]string{
		"a name for Host":       request("GET /status", "Host: "+mark+".example"),
		"a broken Host":         request("GET /status", "Host: "+mark+" "+mark),
		"two Hosts":             request("GET /status", "Host: 127.0.0.1", "Host: "+mark),
		"a target with a name":  request("GET http://" + mark + "/status"),
		"user information":      request("GET http://" + mark + ":" + bearer + "@127.0.0.1/status"),
		"a method":              request(strings.ToUpper(mark) + " /status"),
		"a broken method":       request("G(" + mark + " /status"),
		"a broken target":       request("GET " + mark),
		"a broken escape":       request("GET /%" + mark),
		"a broken query":        request("GET /events?%" + mark),
		"a protocol":            "GET / " + mark + "/1.1\r\n\r\n",
		"no protocol":           mark + "\r\n\r\n",
		"a broken header":       request("GET /livez", mark+" "+mark),
		"a broken header name":  request("GET /livez", "("+mark+": x"),
		"an encoding":           request("GET /livez", "Transfer-Encoding: "+mark),
		"a length":              request("GET /livez", "Content-Length: "+mark),
		"an expectation":        request("GET /livez", "Expect: "+mark),
		"an upgrade":            request("GET /livez", "Connection: Upgrade", "Upgrade: "+mark),
		"a body":                request("GET /status", "Content-Length: 7") + mark,
		"a body of a POST":      request("POST /status", "Content-Length: 7", "Content-Type: application/"+mark) + mark,
		"a body in chunks":      request("POST /"+mark, "Transfer-Encoding: chunked") + "7\r\n" + mark + "\r\n0\r\n\r\n",
		"a request of TLS":      "\x16\x03\x01" + mark,
		"a foreign fetch":       request("GET /debug/pprof/heap", "Sec-Fetch-Site: "+mark),
		"a path of a profile":   request("GET /debug/pprof/" + mark),
		"a tunnel":              request("CONNECT "+mark+".example:443", "Host: "+mark),
		"the start of HTTP/2":   "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + mark,
		"a path with a dot":     request("GET /../" + mark),
		"a path with two dots":  request("GET //" + mark + "/.."),
		"a fragment":            request("GET /status#" + mark),
		"an escaped line break": request("GET /status%0d%0aX-" + mark + ":%20x"),
	}
	for _, path := range []string{"/", "/livez", "/readyz", "/status", "/events", "/metrics", "/debug/pprof/", "/debug/pprof/goroutine", "/nowhere"} {
		all["headers of "+path] = request("GET "+path, headers...)
		all["HEAD of "+path] = request("HEAD "+path+"?"+mark+"="+mark, headers...)
		for _, parameter := range []string{"fromSeq", "limit", "wait", "verbose", "format", "debug", "gc", "seconds", "name[]", mark} {
			all[parameter+" of "+path] = request("GET " + path + "?" + url.QueryEscape(parameter) + "=" + mark + "&" + mark + "=" + bearer)
		}
		all["below "+path] = request("GET " + path + "/" + mark + "/" + jwt)
	}
	return all
}

// R94: nothing of a request comes back, neither to who sent it nor to who looks
// at the endpoint afterwards.
func TestR94_NothingOfARequestIsRepeated(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t, duties(says("cloudly", ok("session"))))
		check := func(what, output string) {
			t.Helper()
			plain := strings.ToLower(output)
			if at := strings.Index(plain, mark); at >= 0 {
				t.Errorf("%s: ...%q", what, output[max(0, at-60):min(len(output), at+20)])
			}
		}
		statuses := map[string]int{}
		var peers sync.WaitGroup // the bubble's time stands still once the test has ended
		for what, text := range plantings() {
			c := r.dial(local)
			peers.Go(func() {
				io.WriteString(c, text)
				// Long polls and such do not occur; this is for answers that keep
				// their connection.
				time.Sleep(time.Minute)
				c.Close()
			})
			answer, _ := io.ReadAll(c.reader)
			check("the answer to "+what, string(answer))
			status, _, _ := strings.Cut(string(answer), "\r\n")
			statuses[status]++
		}
		peers.Wait()
		synctest.Wait()
		// The plantings reach every kind of answer, or the test shows nothing.
		for _, code := range []int{200, 400, 403, 404, 405, 417, 421, 431, 501} {
			if status := fmt.Sprintf("HTTP/1.1 %d %s", code, http.StatusText(code)); statuses[status] == 0 && code != 431 {
				t.Errorf("nothing was answered %q: %v", status, statuses)
			}
		}
		check("the log", r.log.String())
		for _, path := range []string{"/status", "/events", "/metrics", "/readyz?verbose", "/debug/pprof/goroutine?debug=1"} {
			check(path, r.get(path).body)
		}
	})
}

// R94: a duty's panic and a duty's texts that are no names are in nobody's answer.
func TestR94_NothingOfAPanicIsShown(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		secret := "clusterRelayToken_" + mark + "_" + strings.Repeat("9f3b", 16)
		r := newRig(t, func(c *Config) {
			m := duty.NewMetrics("tls")
			m.Func("relay_tls_queue_bytes", "x", func() float64 { panic(secret) })
			c.Metrics = []*duty.Metrics{m}
			c.Duties = []duty.Duty{
				&stub{name: "hub", checks: func() []duty.Check { panic(fmt.Errorf("body %s", secret)) }, status: func() any { panic([]byte(secret)) }},
				says("cloudly", duty.Check{Name: secret, State: duty.Failing, Reason: secret}),
			}
		})
		var shown strings.Builder
		for range 2 {
			for _, path := range []string{"/status", "/readyz?verbose", "/readyz?format=json", "/readyz", "/metrics", "/events"} {
				shown.WriteString(r.get(path).body)
			}
		}
		output := shown.String() + r.log.String()
		if strings.Contains(output, mark) || strings.Contains(output, "9f3b9f3b") {
			t.Errorf("%s", output)
		}
		if n := strings.Count(r.log.String(), `"panic-recovered"`); n < 3 {
			t.Errorf("%d panics in the log: %s", n, r.log)
		}
	})
}
