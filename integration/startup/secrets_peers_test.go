package startup_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/typedsocket"
)

// What follows puts a marker of its own into every place where a peer can put a text of
// its choosing, and sees that the text arrived: it was answered, refused, or cost the
// connection. That none of them is shown anywhere is what the rig asserts at the end of
// each test; TestR94_TheAuditFindsWhatIsShown holds the rig to it.

// wantQuiet fails for an answer of the relay that repeats what a peer sent.
func wantQuiet(t *testing.T, where, marker string, answer []byte) {
	t.Helper()
	if strings.Contains(strings.ToLower(string(answer)), strings.ToLower(marker)) {
		t.Errorf("%s: what was sent is repeated in the answer", where)
	}
}

// wantNoPanic fails when the relay had to recover from a mistake of its own: what was
// sent must be refused, not survived.
func wantNoPanic(t *testing.T, r *rig.Rig) {
	t.Helper()
	if panics, ok := r.Metrics().Value("relay_log_recovered_panics_total"); !ok || panics != 0 {
		t.Errorf("%v panics were recovered", panics)
	}
}

// R94: of HTTP on the node listener, well formed or not, nothing secret is shown
// anywhere.
func TestR94_HTTPOfStrangers(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.WaitReady()
	client := r.NodeHTTP()
	send := func(where, method, path string, change func(*http.Request, string)) {
		marker := r.Marker("HTTP " + where)
		request, err := http.NewRequestWithContext(r.Soon(), strings.ReplaceAll(method, "%", marker), r.Origin()+strings.ReplaceAll(path, "%", marker), nil)
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(request, marker)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			return
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode < 400 {
			t.Errorf("%s: %d, %v", where, answer.StatusCode, err)
		}
		wantQuiet(t, where, marker, body)
	}
	header := func(names ...string) func(*http.Request, string) {
		return func(q *http.Request, marker string) {
			for _, name := range names {
				q.Header.Set(name, marker)
			}
		}
	}
	upgrade := func(q *http.Request, marker string) {
		header("Sec-WebSocket-Key", "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions", "Origin")(q, marker)
		q.Header.Set("Upgrade", "websocket")
		q.Header.Set("Connection", "Upgrade")
		q.Header.Set("Sec-WebSocket-Version", "13")
	}
	before, _ := r.Metrics().Sum("relay_listener_http_requests_total")
	send("path", "GET", "/%", nil)
	send("query", "GET", "/?token=%", nil)
	send("registry path", "GET", "/v2/%/manifests/%", nil)
	send("spark path", "GET", "/spark/%", nil)
	send("path with dots", "GET", "/x/../%", nil)
	send("method", "%", "/", nil)
	send("host", "GET", "/", func(q *http.Request, marker string) { q.Host = marker + ".example" })
	send("headers", "GET", "/", header("Authorization", "Cookie", "User-Agent", "Referer", "X-Forwarded-For", "Upgrade"))
	send("basic authorization", "GET", "/", func(q *http.Request, marker string) { q.SetBasicAuth(marker, marker) })
	send("body", "POST", "/", func(q *http.Request, marker string) {
		q.Body = io.NopCloser(strings.NewReader(`{"method":"` + marker + `"}`))
	})
	send("handshake", "GET", "/", upgrade)
	send("handshake on a path", "POST", "/%", upgrade)
	const sent = 12
	if after, _ := r.Metrics().Sum("relay_listener_http_requests_total"); after-before != sent {
		t.Errorf("%v requests were counted, want %d", after-before, sent)
	}

	for where, text := range map[string]string{
		"not HTTP":        "% % %\r\n\r\n",
		"a bad version":   "GET /% HTTP/%\r\nHost: x\r\n\r\n",
		"a bad header":    "GET / HTTP/1.1\r\nHost: x\r\nbad header %: %\r\n\r\n",
		"two hosts":       "GET / HTTP/1.1\r\nHost: %\r\nHost: %\r\n\r\n",
		"a bad length":    "POST /% HTTP/1.1\r\nHost: x\r\nContent-Length: %\r\n\r\n",
		"a bad encoding":  "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: %\r\n\r\n",
		"an endless line": "GET /" + strings.Repeat("%", 2000) + " HTTP/1.1\r\n\r\n",
	} {
		marker := r.Marker("HTTP, " + where)
		conn := r.DialTLS()
		conn.SetDeadline(time.Now().Add(rig.DefaultWait))
		if _, err := io.WriteString(conn, strings.ReplaceAll(text, "%", marker)); err != nil {
			t.Logf("%s: it was not read to its end: %v", where, err)
		}
		answer, err := io.ReadAll(conn)
		if !strings.HasPrefix(string(answer), "HTTP/1.1 4") && !strings.HasPrefix(string(answer), "HTTP/1.1 5") && err == nil {
			t.Errorf("%s was answered %q", where, answer)
		}
		wantQuiet(t, where, marker, answer)
		conn.Close()
	}
	wantNoPanic(t, r)
}

// R94: what stands in a TLS handshake, or in place of one, is shown nowhere, on both
// ports.
func TestR94_HandshakesOfStrangers(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.WaitReady()
	for where, c := range map[string]struct {
		change func(*tls.Config, string)
		taken  bool
	}{
		// A label has at most 63 characters. Whatever name is asked for, the origin's
		// certificate is served.
		"server name": {func(c *tls.Config, marker string) { c.ServerName, c.InsecureSkipVerify = marker[:60]+".example", true }, true},
		"protocol":    {func(c *tls.Config, marker string) { c.NextProtos = []string{marker} }, false},
	} {
		config := r.ClientTLS()
		c.change(config, r.Marker("TLS "+where))
		conn, err := tls.DialWithDialer(&net.Dialer{Timeout: rig.DefaultWait}, "tcp4", r.ListenAddress(), config)
		if err == nil {
			conn.Close()
		}
		if (err == nil) != c.taken {
			t.Errorf("%s: %v", where, err)
		}
	}
	for port, address := range map[string]string{"node listener": r.ListenAddress(), "operator endpoint": r.OperatorAddress()} {
		conn, err := net.DialTimeout("tcp4", address, rig.DefaultWait)
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(rig.DefaultWait))
		marker := r.Marker("first bytes at the " + port)
		if _, err := io.WriteString(conn, marker+"\r\n"+marker+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(conn)
		wantQuiet(t, port, marker, answer)
		conn.Close()
	}
	r.WaitLogged("tls-handshake-error", 1)
	wantNoPanic(t, r)
}

// R94: of typed requests, and of what is none, on sockets of strangers and of a node,
// nothing secret is shown anywhere.
func TestR94_FramesOfNodes(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.WaitReady()
	// A frame that is no envelope is passed over (typedsocket.md §1.5): what comes
	// behind it is answered.
	const ignored typedsocket.CloseCode = 1
	envelope := func(method, id, phase, body string) string {
		return fmt.Sprintf(`{"method":"%s","request":%s,"response":null,"requestInstanceId":"%s","correlation":{"id":"%s","phase":"%s"}}`, method, body, id, id, phase)
	}
	registers := contract.MethodRegisterPalletRuntimeSession
	// Each on a stranger's socket of its own. % is the marker; closes is the code that
	// it costs the socket, 0 for an answer with an error.
	for where, c := range map[string]struct {
		frame  string
		closes typedsocket.CloseCode
	}{
		"method":               {envelope("%", "id", "request", `{}`), 0},
		"ids":                  {envelope(registers, "%", "request", `{}`), 0},
		"node id that is none": {envelope(registers, "id", "request", `{"nodeId":"%.%"}`), 0},
		"credential":           {envelope(registers, "id", "request", `{"nodeId":"`+"node-z"+`","credential":{"generation":1,"token":"%"},"%":"%"}`), 0},
		"body of a report":     {envelope(report, "id", "request", `{"session":{"nodeId":"%"},"%":["%"]}`), 0},
		"Cloudly's own method": {envelope(contract.MethodPushRouteTable, "id", "request", `{"table":{"key":"%"}}`), 0},
		"phase":                {envelope(report, "id", "%", `{}`), ignored},
		"no envelope":          {`{"%":"%"}`, ignored},
		"no JSON":              {`{"method":"%`, typedsocket.CloseInvalidData},
		"a name twice":         {`{"method":"%","method":"%"}`, typedsocket.CloseInvalidData},
		"trailing text":        {envelope(report, "id", "request", `{}`) + `%`, typedsocket.CloseInvalidData},
		"bad UTF-8":            {envelope(report, "id", "request", "{\"\xff%\":1}"), typedsocket.CloseInvalidData},
		"depth":                {envelope(report, "id", "request", strings.Repeat(`{"%":`, 80)+`1`+strings.Repeat(`}`, 80)), typedsocket.CloseInvalidData},
		"too large":            {envelope(report, "id", "request", `{"x":"`+strings.Repeat("%", 1200)+`"}`), typedsocket.CloseTooBig},
	} {
		marker := r.Marker("frame, " + where)
		s := r.DialNode()
		s.Send(strings.ReplaceAll(c.frame, "%", marker))
		switch c.closes {
		case 0:
		case ignored:
			s.Request(report, `{}`)
		default:
			code, reason := s.WaitClose()
			if code != int(c.closes) {
				t.Errorf("%s: closed with %d, want %d", where, code, c.closes)
			}
			wantQuiet(t, where, marker, []byte(reason))
			continue
		}
		_, answer := s.Receive()
		if !strings.Contains(string(answer), `"error":{`) {
			t.Errorf("%s: it was not refused", where)
		}
		if where != "method" && where != "ids" { // which an answer repeats
			wantQuiet(t, where, marker, answer)
		}
		s.Close(4000, r.Marker("close reason of a stranger"))
	}
	binary := r.DialNode()
	binary.SendBinary([]byte(r.Marker("binary frame")))
	if code, _ := binary.WaitClose(); code != int(typedsocket.CloseUnsupported) {
		t.Errorf("a binary frame: closed with %d", code)
	}

	node := newPuppet(t, r, "node-a")
	refused := func(where, method, body string) {
		marker := r.Marker("request of a node, " + where)
		node.Request(strings.ReplaceAll(method, "%", marker), strings.ReplaceAll(body, "%", marker))
		if answer := node.next(); answer.Error == nil {
			t.Errorf("%s: it was not refused", where)
		} else {
			wantQuiet(t, where, marker, []byte(answer.Error.Text+string(answer.Error.Data)))
		}
	}
	refused("method", "%", `{}`)
	refused("session of another node", report, `{"session":{"nodeId":"node-b","%":"%"}}`)
	refused("session that is no longer", report, `{"session":{"nodeId":"node-a","epoch":"%"}}`)
	refused("no session", report, `{"a":{"nodeId":"%"}}`)
	refused("a stream", report, node.under(`"_isVirtualStream":true,"streamId":"%"`))
	refused("registration of another node", registers, `{"nodeId":"node-b","token":"%"}`)
	refused("a method that never passes", "openRuntimeAssignmentExec", node.under(`"command":"%"`))

	// What a node answers goes to Cloudly and nowhere else.
	for _, wrong := range []string{
		`"response":null,"error":{"text":"%","data":{"code":"%"}}`,
		`"response":null,"error":"%"`,
		`"response":{"%":"%"},"retry":{"forReason":"%"}`,
		`"response":{"_isVirtualStream":true,"streamId":"%"}`,
	} {
		done, ctx := make(chan struct{}), r.Soon()
		go func() { defer close(done); r.Cloudly.CallNode(ctx, "node-a", assign, member) }()
		l := node.next()
		node.Send(strings.ReplaceAll(fmt.Sprintf(`{"method":%q,"request":null,"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"},%s}`,
			l.Method, l.Instance, l.Correlation.ID, wrong), "%", r.Marker("answer of a node, "+wrong[:12])))
		<-done
	}
	node.Send(strings.ReplaceAll(envelope(assign, "%", "response", `null`), "%", r.Marker("answer to nothing")))
	node.Close(4001, r.Marker("close reason of a node"))
	r.WaitEvent("listener-socket-closed", 0)
	m := r.Metrics()
	if got, _ := m.Sum("relay_listener_closed_sockets_total", "cause", "malformed"); got != 5 {
		t.Errorf("%v sockets were closed as malformed", got)
	}
	if got, _ := m.Sum("relay_forward_refused_requests_total"); got < 6 {
		t.Errorf("%v requests were refused", got)
	}
	wantNoPanic(t, r)
}

// R94: whatever is asked of the operator endpoint, nothing of it is shown anywhere.
func TestR94_OperatorRequests(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.WaitReady()
	for _, request := range []string{
		"GET /% HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /status/%?%=% HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /status HTTP/1.1\r\nHost: %\r\n\r\n",
		"GET /status HTTP/1.1\r\nHost: %.example:9465\r\n\r\n",
		"% /status HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /events?fromSeq=% HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /events?limit=%&wait=% HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /readyz?format=% HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /readyz?verbose=% HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /debug/pprof/% HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /debug/pprof/profile?seconds=% HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /readyz?%;%=% HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"POST /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 64\r\n\r\n%",
		"GET /% HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %\r\nCookie: %\r\nUser-Agent: %\r\nSec-Fetch-Site: %\r\n\r\n",
		"GET / HTTP/%\r\nHost: localhost\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\n%: \x01%\r\n\r\n",
		"%\r\n\r\n",
	} {
		marker := r.Marker("asked of the operator endpoint: " + request[:min(40, len(request))])
		answer, body := ask(t, r, strings.ReplaceAll(request, "%", marker))
		if answer.StatusCode < 400 {
			t.Errorf("%q: %d", request, answer.StatusCode)
		}
		wantQuiet(t, request, marker, []byte(body))
	}
	wantNoPanic(t, r)
}
