package listener

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/typedsocket"
)

// TestWhichPathsUpgrade: any that no earlier rule takes.
func TestWhichPathsUpgrade(t *testing.T) {
	tests := []struct {
		path   string
		status int
	}{
		{"/", 101}, {"/socket", 101}, {"/typedrequest", 101}, {"/a/b?c=/../d", 101}, {"/socket?x", 101},
		{"//", 101}, {"/v2", 101}, {"/sparkle", 101}, {"/socket/", 101},
		{"/v2/", 200}, {"/v2/x", 200}, {"/_relay/registry-token", 200}, {"/%762/", 404},
		{"/spark/nodes/heartbeat", 404}, {"/spark/", 404}, {"/spark", 404},
		{"/.", 404}, {"/a/%2e%2e/b", 404}, {"/v2/../", 404}, {"/socket/..", 404},
	}
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Registry = http.HandlerFunc(registry) })
		for _, test := range tests {
			c := r.raw()
			c.send(handshake(test.path))
			if response, err := http.ReadResponse(c.reader, nil); err != nil || response.StatusCode != test.status {
				t.Errorf("%s: %v %v, want %d", test.path, response, err, test.status)
			}
			c.Close()
		}
	})
}

func TestHandshakesAreJudged(t *testing.T) {
	without := func(line string) string { return strings.Replace(handshake("/"), line+"\r\n", "", 1) }
	with := func(old, new string) string { return strings.Replace(handshake("/"), old, new, 1) }
	const key = "dGhlIHNhbXBsZSBub25jZQ=="
	tests := []struct {
		name, request string
		status        int
		refusal       string
	}{
		{"correct", handshake("/"), 101, ""},
		{"other case", with("Connection: Upgrade\r\nUpgrade: websocket", "connection: UPGRADE\r\nupgrade: WebSocket"), 101, ""},
		{"among other tokens", with("Connection: Upgrade", "Connection: keep-alive,\tUpgrade "), 101, ""},
		{"in a second line", with("Connection: Upgrade", "Connection: keep-alive\r\nConnection: upgrade"), 101, ""},
		{"subprotocols are ignored", handshake("/", "Sec-WebSocket-Protocol: a, b"), 101, ""},
		{"extensions are ignored", handshake("/", "Sec-WebSocket-Extensions: permessage-deflate"), 101, ""},
		{"another origin", handshake("/", "Origin: https://elsewhere.test"), 101, ""},
		{"an origin that is none", handshake("/", "Origin: ::"), 101, ""},
		{"an empty body", handshake("/", "Content-Length: 0"), 101, ""},

		{"no Upgrade", without("Upgrade: websocket"), 426, ""},
		{"no Connection", without("Connection: Upgrade"), 426, ""},
		{"another upgrade", with("Upgrade: websocket", "Upgrade: h2c"), 426, ""},
		{"HEAD", with("GET", "HEAD"), 426, ""},
		{"POST", with("GET", "POST"), 405, ""},
		{"no version", without("Sec-WebSocket-Version: 13"), 426, "version"},
		{"version 8", with("Version: 13", "Version: 8"), 426, "version"},
		{"two versions", with("Version: 13", "Version: 13\r\nSec-WebSocket-Version: 13"), 426, "version"},
		{"no key", without("Sec-WebSocket-Key: " + key), 400, "handshake"},
		{"two keys", handshake("/", "Sec-WebSocket-Key: "+key), 400, "handshake"},
		{"a short key", with(key, "dGhlIHNhbXBsZQ=="), 400, "handshake"},
		{"a key that is no base64", with(key, "the sample nonce"), 400, "handshake"},
		{"a body", handshake("/", "Content-Length: 2") + "{}", 400, "handshake"},
		{"a chunked body", handshake("/", "Transfer-Encoding: chunked") + "0\r\n\r\n", 400, "handshake"},
	}
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		for _, test := range tests {
			before := metric(r.Metrics(), "relay_listener_refused_upgrades_total", test.refusal)
			c := r.raw()
			c.send(test.request)
			method := strings.Fields(test.request)[0]
			response, err := http.ReadResponse(c.reader, &http.Request{Method: method})
			if err != nil || response.StatusCode != test.status {
				t.Errorf("%s: %v %v, want %d", test.name, response, err, test.status)
				continue
			}
			for _, header := range []string{"Sec-Websocket-Protocol", "Sec-Websocket-Extensions"} {
				if got := response.Header.Get(header); got != "" {
					t.Errorf("%s: %s: %s", test.name, header, got)
				}
			}
			if got := response.Header.Get("Sec-Websocket-Version"); (got == "13") != (test.refusal == "version") {
				t.Errorf("%s: version %q is offered", test.name, got)
			}
			if test.status == 101 {
				c.Close()
				continue
			}
			body, _ := io.ReadAll(response.Body)
			sentence := map[string]string{"": "", "version": "version 13 of", "handshake": "Sec-WebSocket-Key must be"}[test.refusal]
			if strings.Contains(test.name, "body") && test.refusal != "" {
				sentence = "a WebSocket handshake has no body"
			}
			if !strings.HasPrefix(string(body), sentence) {
				t.Errorf("%s: answered %q", test.name, body)
			}
			if test.refusal != "" {
				r.wantMetric(before+1, "relay_listener_refused_upgrades_total", test.refusal)
			}
			c.Close()
		}
	})
}

// A node may write its first frame together with the handshake.
func TestAFrameBehindTheHandshakeIsServed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.raw()
		request := envelope("echo", `{"early":true}`, "c")
		c.send(handshake("/") + frame(0x81, uint64(len(request)), request))
		if response, err := http.ReadResponse(c.reader, nil); err != nil || response.StatusCode != 101 {
			t.Fatal(response, err)
		}
		if answer := c.message(); !strings.Contains(answer, `"response":{"early":true}`) {
			t.Errorf("answered %q", answer)
		}
	})
}

// B005: whatever way a socket or an upgrade ends, the place that it took is given back.
func TestB005_APlaceIsGivenBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		// The connection cannot be taken over: Accept fails after the place was taken.
		request := httptest.NewRequest("GET", "/", nil)
		for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key()} {
			request.Header.Set(name, value)
		}
		r.serveHTTP(httptest.NewRecorder(), request)
		r.wantMetric(1, "relay_listener_refused_upgrades_total", "handshake")
		if got := r.Status().(Status).Sockets.Open; got != 0 {
			t.Fatalf("%d places are taken after a failed upgrade", got)
		}

		client, _ := r.connect()
		lost := r.upgraded()
		if got := r.Status().(Status).Sockets.Open; got != 2 {
			t.Fatalf("%d places are taken by two sockets", got)
		}
		client.Close(typedsocket.CloseNormal, "")
		<-client.Done()
		lost.Close()
		time.Sleep(time.Second)
		if got := r.Status().(Status).Sockets.Open; got != 0 {
			t.Errorf("%d places are taken after the end", got)
		}
		r.wantMetric(0, "relay_listener_open_sockets", Unbound)
		r.wantMetric(1, "relay_listener_closed_sockets_total", "peer-closed")
		r.wantMetric(1, "relay_listener_closed_sockets_total", "lost")
	})
}

// TestAsManySocketsAsThereMayBe stand; one more is refused before its upgrade,
// and welcome as soon as a place is free.
func TestAsManySocketsAsThereMayBe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		check := func(reason string, since time.Time) {
			t.Helper()
			if c := r.Checks(time.Now())[1]; c.Reason != reason || !c.Advice || !c.Since.Equal(since) {
				t.Errorf("check %+v, want %q since %s", c, reason, since)
			}
		}
		begin := time.Now()
		time.Sleep(time.Second)
		check("", begin)
		all := make([]*rawConn, maxSockets)
		for i := range all {
			all[i] = r.upgraded()
		}
		full := time.Now()
		for range 3 {
			response, body, closed := r.exchange(handshake("/"), "GET")
			if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != "5" || !closed {
				t.Fatalf("one too many: %s %q", response.Status, body)
			}
		}
		time.Sleep(time.Second)
		check("full", full)
		r.wantMetric(3, "relay_listener_refused_upgrades_total", "full")
		if got := countOf(r.published(), EventSocketsFull); got != 1 {
			t.Errorf("%d events say that it is full, want one a minute", got)
		}
		all[7].Close()
		all[8].Close()
		synctest.Wait()
		free := time.Now()
		time.Sleep(time.Second)
		check("", free)
		r.upgraded()
		r.upgraded()
		check("full", time.Now())
		if response, _, _ := r.exchange(plain("GET", "/"), "GET"); response.StatusCode != 426 {
			t.Errorf("plain HTTP while full: %s", response.Status)
		}
	})
}

func countOf[T comparable](list []T, want T) (n int) {
	for _, x := range list {
		if x == want {
			n++
		}
	}
	return n
}
