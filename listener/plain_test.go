package listener

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// exchange sends one raw request on a connection of its own and returns the
// answer, and whether the connection was closed after it.
func (r *rig) exchange(request, method string) (response *http.Response, body string, closed bool) {
	r.t.Helper()
	c := r.raw()
	defer c.Close()
	c.send(request)
	response, body = c.response(&http.Request{Method: method})
	c.SetReadDeadline(time.Now().Add(bodyWait + time.Second)) // less than idleWait
	_, err := c.reader.ReadByte()
	return response, body, err == io.EOF
}

// plain is a request without a body.
func plain(method, target string, lines ...string) string {
	return method + " " + target + " HTTP/1.1\r\nHost: relay.test\r\n" + strings.Join(append(lines, ""), "\r\n") + "\r\n"
}

// registry answers with what it was asked for.
func registry(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "registry: %s %s", r.Method, r.URL.EscapedPath())
}

// TestPlainHTTPIsAnsweredInOrder is design §4, row §16, word for word, with and
// without a registry.
func TestPlainHTTPIsAnsweredInOrder(t *testing.T) {
	type want struct {
		status int
		answer answer
	}
	dot, nothing := want{404, answerDotSegment}, want{404, answerNothing}
	spark, post, root := want{404, answerSpark}, want{405, answerPost}, want{426, answerRoot}
	pull, readOnly := want{200, answerRegistry}, want{405, answerRegistryMethod}
	tests := []struct {
		method, target string
		want           want
	}{
		// dot segments come first, also before the registry, /spark and POST
		{"GET", "/.", dot}, {"GET", "/..", dot}, {"GET", "/a/../", dot}, {"GET", "/%2e%2e/", dot}, {"GET", "/v2/../x", dot},
		{"GET", "/v2/%2e%2E/x", dot}, {"GET", "/v2/a%2f..%2fb", dot}, {"GET", "/v2/%252e%252e/x", dot}, {"PUT", "/v2/../x", dot},
		{"GET", "/v2/.", dot}, {"POST", "/a/..", dot}, {"POST", "/spark/../x", dot}, {"GET", "/spark/%2e", dot}, {"GET", `/v2/a\..\b`, dot},
		{"GET", "https://relay.test/../x", dot}, {"POST", "/%2e/typedrequest", dot},
		// the registry, read only
		{"GET", "/v2/", pull}, {"HEAD", "/v2/", pull}, {"GET", "/v2/team/app/manifests/sha256:00", pull},
		{"HEAD", "/v2/team/app/blobs/sha256:00", pull}, {"GET", "/v2/a%2fb/x", pull}, {"GET", "/v2/...", pull}, {"GET", "/v2/?n=/../", pull},
		{"GET", "/_relay/registry-token", pull}, {"GET", "/_relay/registry-token?scope=x", pull}, {"GET", "https://relay.test/v2/", pull},
		{"PUT", "/v2/x", readOnly}, {"POST", "/v2/x/blobs/uploads/", readOnly}, {"DELETE", "/v2/x", readOnly}, {"PATCH", "/v2/x", readOnly},
		{"OPTIONS", "/v2/", readOnly}, {"POST", "/_relay/registry-token", readOnly}, {"HEAD", "/_relay/registry-token", readOnly},
		{"PUT", "/_relay/registry-token", readOnly},
		{"GET", "/v2", nothing}, {"GET", "/v22/", nothing}, {"GET", "//v2/", nothing}, {"GET", "/V2/", nothing}, {"GET", "/%762/", nothing},
		{"GET", "/v2%2fx", nothing}, {"GET", "/_relay/registry-token/", nothing}, {"GET", "/_relay/registry%2dtoken", nothing},
		{"PUT", "/%762/x", nothing}, {"POST", "/%762/x", nothing},
		// Spark's, for every method
		{"POST", "/spark/nodes/heartbeat", spark}, {"GET", "/spark/nodes/host", spark}, {"PUT", "/spark/x", spark}, {"OPTIONS", "/spark/", spark},
		{"POST", "/spark", spark}, {"HEAD", "/spark/", spark}, {"POST", "/%73park/nodes/heartbeat", spark}, {"POST", "/sparkle", post},
		// no typed request over HTTP
		{"POST", "/", post}, {"POST", "/typedrequest", post}, {"POST", "/?/v2/", post}, {"POST", "//", post}, {"POST", "/v2", post},
		// what is left
		{"GET", "/", root}, {"HEAD", "/", root}, {"PUT", "/", root}, {"OPTIONS", "/", root}, {"DELETE", "/", root}, {"BREW", "/", root},
		{"GET", "/?x", root}, {"GET", "https://relay.test/", root},
		{"GET", "/x", nothing}, {"GET", "/typedrequest", nothing}, {"HEAD", "/typedrequest", nothing}, {"PUT", "/x", nothing}, {"GET", "//", nothing},
		{"OPTIONS", "*", nothing}, {"GET", "/index.html", nothing}, {"GET", "/livez", nothing}, {"GET", "/socket", nothing},
	}
	for _, with := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			r := newRig(t, func(c *Config) {
				if with {
					c.Registry = http.HandlerFunc(registry)
				}
			})
			for _, test := range tests {
				name := fmt.Sprintf("%s %s (registry %v)", test.method, test.target, with)
				before := metric(r.Metrics(), "relay_listener_http_requests_total", test.want.answer.String())
				response, body, _ := r.exchange(plain(test.method, test.target), test.method)
				status := test.want.status
				if status == 200 && !with {
					status = 404
				}
				if response.StatusCode != status {
					t.Errorf("%s: %s, want %d", name, response.Status, status)
				}
				if after := metric(r.Metrics(), "relay_listener_http_requests_total", test.want.answer.String()); after != before+1 {
					t.Errorf("%s: not counted as %s", name, test.want.answer)
				}
				if (body == "") != (test.method == "HEAD") {
					t.Errorf("%s: body %q", name, body)
				}
				checkHeaders(t, name, response, test.want.answer, test.target)
			}
		})
	}
}

// checkHeaders holds the headers that a status must have (RFC 9110 §15.5).
func checkHeaders(t *testing.T, name string, response *http.Response, a answer, target string) {
	t.Helper()
	allow := map[answer]string{answerPost: "GET", answerRegistryMethod: "GET, HEAD"}[a]
	if a == answerRegistryMethod && strings.HasPrefix(target, registryToken) {
		allow = "GET"
	}
	if got := response.Header.Get("Allow"); got != allow {
		t.Errorf("%s: Allow is %q, want %q", name, got, allow)
	}
	upgrade := map[answer]string{answerRoot: "websocket"}[a]
	if got := response.Header.Get("Upgrade"); got != upgrade {
		t.Errorf("%s: Upgrade is %q, want %q", name, got, upgrade)
	}
	if got := response.Header.Get("Connection"); (got == "Upgrade") != (a == answerRoot) {
		t.Errorf("%s: Connection is %q", name, got)
	}
}

func TestTheRegistryGetsThePathAsItWasSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Registry = http.HandlerFunc(registry) })
		if _, body, _ := r.exchange(plain("GET", "/v2/a%2fb%20c"), "GET"); body != "registry: GET /v2/a%2fb%20c" {
			t.Errorf("answered %q", body)
		}
	})
}

// R40: a typed request over HTTP is refused whatever it says: nothing reaches a handler
// and the body is not read.
func TestR40_ATypedRequestOverHTTPIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		body := envelope("registerPalletRuntimeSession", `{"nodeId":"node-a"}`, "c")
		for _, path := range []string{"/typedrequest", "/", "/socket"} {
			request := plain("POST", path, "Content-Type: application/json", fmt.Sprintf("Content-Length: %d", len(body))) + body
			response, answer, _ := r.exchange(request, "POST")
			if response.StatusCode != http.StatusMethodNotAllowed || strings.Contains(answer, "node-a") {
				t.Errorf("%s: %s %q", path, response.Status, answer)
			}
		}
		r.wantMetric(0, "relay_listener_typed_requests_total", Unbound, "served")
	})
}

// B187: requests with an Expect header are answered with a final status, never with a
// panic or silence, whatever the request is.
func TestB187_ExpectationsAreAnswered(t *testing.T) {
	tests := []struct {
		name, request string
		status        int
	}{
		{"a body that waits", plain("POST", "/typedrequest", "Expect: 100-continue", "Content-Length: 7"), 405},
		{"a body that does not wait", plain("POST", "/typedrequest", "Expect: 100-continue", "Content-Length: 7") + `{"a":1}`, 405},
		{"a chunked body", plain("POST", "/", "Expect: 100-continue", "Transfer-Encoding: chunked"), 405},
		{"no body", plain("POST", "/", "Expect: 100-continue"), 405},
		{"a read", plain("GET", "/", "Expect: 100-continue"), 426},
		{"a push to the registry", plain("PUT", "/v2/x", "Expect: 100-continue", "Content-Length: 1048576"), 405},
		{"a pull with a body", plain("GET", "/v2/x", "Expect: 100-continue", "Content-Length: 3"), 200},
		{"to Spark", plain("POST", "/spark/nodes/heartbeat", "Expect: 100-continue", "Content-Length: 3"), 404},
		{"another expectation", plain("POST", "/", "Expect: a-miracle", "Content-Length: 3"), 417},
		{"HTTP/1.0", "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n", 405},
		{"a handshake with a body", handshake("/", "Expect: 100-continue", "Content-Length: 3"), 400},
	}
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Registry = http.HandlerFunc(registry) })
		for _, test := range tests {
			response, _, closed := r.exchange(test.request, "POST")
			if response.StatusCode != test.status {
				t.Errorf("%s: %s, want %d", test.name, response.Status, test.status)
			}
			// A connection whose next bytes may be a body must not be read on.
			if unread := strings.Contains(test.request, "Expect: 100-continue\r\nContent-Length") ||
				strings.Contains(test.request, "chunked"); unread && test.name != "a body that does not wait" && !closed {
				t.Errorf("%s: the connection goes on", test.name)
			}
		}
		// A handshake that expects to go on, and has no body, is a handshake.
		c := r.raw()
		c.send(handshake("/", "Expect: 100-continue"))
		if response, err := http.ReadResponse(c.reader, nil); err != nil || response.StatusCode != 101 {
			t.Errorf("handshake: %v %v", response, err)
		}
	})
}

// What is no request at all costs its connection alone.
func TestBrokenRequestsCostTheirConnection(t *testing.T) {
	long := strings.Repeat("x", maxHeader+8<<10)
	tests := []struct {
		name, request string
		status        int
	}{
		{"no target", "GET\r\n\r\n", 400},
		{"no host", "GET / HTTP/1.1\r\n\r\n", 400},
		{"HTTP/1.0 without a host", "GET / HTTP/1.0\r\n\r\n", 426},
		{"HTTP/1.0 with an upgrade", strings.Replace(handshake("/"), "HTTP/1.1", "HTTP/1.0", 1), 426},
		{"HTTP/2 without ALPN", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 404},
		{"HTTP/3", "GET / HTTP/3.0\r\nHost: x\r\n\r\n", 505},
		{"two lengths", plain("POST", "/", "Content-Length: 3", "Content-Length: 4"), 400},
		{"a length and chunks", plain("POST", "/", "Content-Length: 3", "Transfer-Encoding: chunked"), 405},
		{"another coding", plain("POST", "/", "Transfer-Encoding: gzip"), 501},
		{"a bad escape", "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"a space in a name", "GET / HTTP/1.1\r\nHost: x\r\na b: c\r\n\r\n", 400},
		{"a folded host", "GET / HTTP/1.1\r\nHost: x/../y\r\n\r\n", 400},
		{"a tunnel", "CONNECT relay.test:443 HTTP/1.1\r\nHost: relay.test:443\r\n\r\n", 404},
		{"a large header", plain("GET", "/", "X-Large: "+long), 431},
	}
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		for _, test := range tests {
			c := r.raw()
			c.sent = test.name
			go io.WriteString(c, test.request)
			response, _ := c.response(&http.Request{Method: "GET"})
			if response.StatusCode != test.status {
				t.Errorf("%s: %s, want %d", test.name, response.Status, test.status)
			}
			c.Close()
		}
		r.connect()
		r.wantMetric(0, "relay_listener_refused_upgrades_total", "handshake") // HTTP/1.0 has none
	})
}

// Nothing that a peer writes comes back in an answer or gets into the log.
func TestAnswersAndLogQuoteNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		const marker = "MARKER7f3a9c"
		for _, request := range []string{
			plain("GET", "/"+marker, "X: "+marker), plain("POST", "/"+marker, "Cookie: "+marker), plain("GET", "/", "Authorization: Bearer "+marker),
			strings.Replace(handshake("/"+marker), "13", marker, 1), strings.Replace(handshake("/"), "dGhlIHNhbXBsZSBub25jZQ==", marker, 1),
			handshake("/", "Sec-WebSocket-Key: "+marker), plain("GET", "/", "Host: "+marker+"/x"), marker + " / HTTP/1.1\r\nHost: x\r\n\r\n",
		} {
			response, body, _ := r.exchange(request, "GET")
			if text := fmt.Sprint(response.Header, body); strings.Contains(text, marker) {
				t.Errorf("%q is answered %s", request, text)
			}
		}
		if strings.Contains(r.log.String(), marker) {
			t.Errorf("log: %s", r.log)
		}
	})
}

// TestPlainConnectionsHaveDeadlines: whoever stalls loses the connection, in
// every phase of one.
func TestPlainConnectionsHaveDeadlines(t *testing.T) {
	bubble(t, func(t *testing.T) {
		stopped := make(chan error, 1)
		r := newRig(t, func(c *Config) {
			c.Registry = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				_, err := io.Copy(io.Discard, req.Body)
				stopped <- err
			})
		})
		closedAfter := func(name string, c *rawConn, least, most time.Duration) {
			t.Helper()
			begin := time.Now()
			io.Copy(io.Discard, c.reader)
			if took := time.Since(begin); took < least || took > most {
				t.Errorf("%s: closed after %s, want %s to %s", name, took, least, most)
			}
		}
		begin := time.Now()
		bare, err := r.memory.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, bare)
		if took := time.Since(begin); took != headerWait {
			t.Errorf("no TLS: closed after %s", took)
		}
		bare.Close()

		closedAfter("no request", r.raw(), headerWait, headerWait)

		half := r.raw()
		half.send("GET / HTTP/1.1\r\nHost: relay.test\r\n")
		closedAfter("half a header", half, headerWait, headerWait)

		idle := r.raw()
		idle.send(plain("GET", "/"))
		idle.response(nil)
		closedAfter("between requests", idle, idleWait, idleWait)

		body := r.raw()
		begin = time.Now()
		body.send(plain("PUT", "/", "Content-Length: 1000") + "{")
		if response, _ := body.response(nil); response.StatusCode != 426 || time.Since(begin) > 0 {
			t.Errorf("half a body: %s after %s, want the answer at once", response.Status, time.Since(begin))
		}
		closedAfter("half a body", body, plainWait, plainWait+time.Second)

		pull := r.raw()
		pull.send(plain("GET", "/v2/", "Content-Length: 1000") + "{")
		closedAfter("half a body to the registry", pull, bodyWait, bodyWait+time.Second)
		if err := <-stopped; err == nil {
			t.Error("the registry read a body that did not come")
		}

		// It asks and asks and does not read, so that an answer does not leave.
		deaf := r.raw()
		deaf.send(strings.Repeat(plain("GET", "/"), 300))
		time.Sleep(plainWait - time.Second)
		r.wantMetric(1, "relay_listener_open_connections")
		time.Sleep(10 * time.Second)
		r.wantMetric(0, "relay_listener_open_connections")
	})
}

// A registry that is slow to answer is not cut: its deadlines are its own.
func TestTheRegistryMayTakeItsTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			c.Registry = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				for range 60 {
					time.Sleep(time.Minute)
					io.WriteString(w, "part ")
					http.NewResponseController(w).Flush()
				}
				if req.Context().Err() != nil {
					t.Error("the request was given up")
				}
			})
		})
		if _, body, _ := r.exchange(plain("GET", "/v2/x"), "GET"); body != strings.Repeat("part ", 60) {
			t.Errorf("got %d bytes", len(body))
		}
	})
}

func TestAPanicOfTheRegistryCostsItsConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			c.Registry = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("with a secret") })
		})
		c := r.raw()
		c.send(plain("GET", "/v2/"))
		if got, _ := io.ReadAll(c.reader); len(got) > 0 {
			t.Errorf("answered %q", got)
		}
		r.connect()
		synctest.Wait()
		if log := r.log.String(); !strings.Contains(log, "http-panic") || strings.Contains(log, "secret") {
			t.Errorf("log: %s", log)
		}
	})
}
