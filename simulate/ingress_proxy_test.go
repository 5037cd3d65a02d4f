package simulate

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What a backend gets is what the client sent, but for what a proxy must change.
func TestRequestsReachTheBackendUnchanged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSite(t, 1, to("a.example", backendA))
		var got []string
		s.raw(backendA, func(c net.Conn) {
			r := bufio.NewReader(c)
			for {
				request, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				body, _ := io.ReadAll(request.Body)
				var head strings.Builder
				request.Header.Write(&head)
				got = append(got, request.Method+" "+request.RequestURI+" "+request.Host+"\n"+strings.ReplaceAll(head.String(), "\r", "")+string(body))
				io.WriteString(c, "HTTP/1.1 207 Odd\r\nX-Odd: a\r\nX-Odd: b\r\nContent-Length: 2\r\n\r\nok")
			}
		})
		text := "REPORT /a%2Fb//c;x?q=1;2&z HTTP/1.1\r\nHost: a.example:443\r\nX-Forwarded-For: 1.2.3.4\r\nForwarded: for=1.2.3.4\r\n" +
			"X-Forwarded-Proto: http\r\nAuthorization: Bearer x\r\nX-Hop: 1\r\nConnection: close, X-Hop\r\nContent-Length: 4\r\n\r\nbody"
		answer := s.exchange("a.example", text)
		if !strings.HasPrefix(answer, "HTTP/1.1 207 ") || !strings.Contains(answer, "X-Odd: a\r\nX-Odd: b\r\n") || !strings.HasSuffix(answer, "\r\n\r\nok") {
			t.Errorf("answered %q", answer)
		}
		want := "REPORT /a%2Fb//c;x?q=1;2&z a.example:443\nAuthorization: Bearer x\nContent-Length: 4\n" +
			"X-Forwarded-Host: a.example:443\nX-Forwarded-Proto: https\nbody"
		if diff := cmp.Diff([]string{want}, got); diff != "" {
			t.Errorf("the backend got (-want +got):\n%s", diff)
		}
		s.counted("a.example", Traffic{Requests: 1, Connections: 1, BytesIn: int64(len(text)), BytesOut: int64(len(answer))})
	})
}

func TestRequestsAreJudged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSite(t, 1, to("a.example", backendA), to("b.example", backendA))
		s.backend(backendA, hello)
		for name, test := range map[string]struct{ text, status string }{
			"good":                {get("a.example", "/"), "200"},
			"in another case":     {get("A.Example.", "/"), "200"},
			"another route's":     {get("b.example", "/"), "421"},
			"nobody's":            {get("c.example", "/"), "421"},
			"another's URL":       {get("a.example", "https://b.example/"), "421"},
			"its own URL":         {get("x", "https://a.example/x"), "200"},
			"a tunnel":            {"CONNECT a.example HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n", "400"},
			"a tunnel on a path":  {"CONNECT /x HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n", "400"},
			"no path":             {"OPTIONS * HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n", "400"},
			"no host":             {"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", "400"},
			"no HTTP":             {"hello\r\n\r\n", "400"},
			"too large a head":    {get("a.example", "/", "X: "+strings.Repeat("x", maximumHeader+8192)), "431"},
			"two lengths":         {get("a.example", "/", "Content-Length: 1", "Content-Length: 2"), "400"},
			"length and encoding": {get("a.example", "/", "Content-Length: 1", "Transfer-Encoding: odd"), "501"},
		} {
			if status, _ := bodyOf(s.exchange("a.example", test.text)); status != test.status {
				t.Errorf("%s: %s, want %s", name, status, test.status)
			}
		}
	})
}

func TestBasicAuthenticationIsDemanded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		protected := to("a.example", backendA)
		protected.BasicAuth = &BasicAuth{"someone", "a:pass"}
		s := newSite(t, 1, protected, to("b.example", backendA))
		var passed []string
		s.backend(backendA, func(w http.ResponseWriter, r *http.Request) {
			passed = append(passed, r.Header.Get("Authorization"))
		})
		ask := func(host, user, password string) string {
			r, _ := http.NewRequest("GET", "https://"+host+"/", nil)
			if user != "" {
				r.SetBasicAuth(user, password)
			}
			answer, err := s.client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			return fmt.Sprint(answer.StatusCode, answer.Header.Get("WWW-Authenticate"))
		}
		const demanded = `401Basic realm="a.example", charset="UTF-8"`
		for name, test := range map[string][4]string{
			"none":             {"a.example", "", "", demanded},
			"another password": {"a.example", "someone", "a:pas", demanded},
			"another user":     {"a.example", "someon", "a:pass", demanded},
			"right":            {"a.example", "someone", "a:pass", "200"},
			"no business here": {"b.example", "x", "y", "200"},
		} {
			if got := ask(test[0], test[1], test[2]); got != test[3] {
				t.Errorf("%s: %s", name, got)
			}
		}
		if len(passed) != 2 || strings.Join(passed, "") != "Basic eDp5" {
			t.Errorf("passed on: %q", passed)
		}
		synctest.Wait()
		if got := s.Counted("a.example"); got.Requests != 4 || got.Failures != (BackendFailures{}) {
			t.Errorf("counted %+v", got)
		}
	})
}

// Destinations take turns, and one that takes no connection is passed over.
func TestDestinationsTakeTurns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSite(t, 1, to("a.example", backendA, backendB), to("none.example"))
		says := func(name string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				fmt.Fprintf(w, "%s %s", name, body)
			}
		}
		s.backend(backendA, says("A"))
		s.backend(backendB, says("B"))
		post := "POST / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"
		turns := func(n int) string {
			var got []string
			for range n {
				status, body := bodyOf(s.exchange("a.example", post))
				got = append(got, status+body)
			}
			return strings.Join(got, ",")
		}
		if got := turns(4); got != "200A x,200B x,200A x,200B x" {
			t.Errorf("turns %s", got)
		}
		s.mu.Lock()
		delete(s.backends, backendA)
		s.mu.Unlock()
		s.web.backends.CloseIdleConnections()
		if got := turns(3); got != "200B x,200B x,200B x" {
			t.Errorf("turns %s", got)
		}
		if got := s.Counted("a.example").Failures; got != (BackendFailures{Connect: 2}) {
			t.Errorf("counted %+v", got)
		}
		s.mu.Lock()
		delete(s.backends, backendB)
		s.mu.Unlock()
		s.web.backends.CloseIdleConnections()
		if status, _ := bodyOf(s.exchange("a.example", post)); status != "502" {
			t.Errorf("without a backend: %s", status)
		}
		if got := s.Counted("a.example").Failures; got != (BackendFailures{Connect: 4}) {
			t.Errorf("counted %+v", got)
		}
		if status, _ := bodyOf(s.exchange("none.example", get("none.example", "/"))); status != "502" {
			t.Errorf("without a destination: %s", status)
		}
	})
}

// Each failure of a backend is counted as what it is, and a client's is none.
func TestBackendFailuresAreCounted(t *testing.T) {
	for name, test := range map[string]struct {
		backend string // what it answers, then it closes
		request string
		status  string
		want    BackendFailures
	}{
		"closes":         {"", get("a.example", "/"), "502", BackendFailures{Request: 1}},
		"no HTTP":        {"220 mail ready\r\n", get("a.example", "/"), "502", BackendFailures{Request: 1}},
		"breaks off":     {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", get("a.example", "/"), "200", BackendFailures{Request: 1}},
		"says its error": {"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", get("a.example", "/"), "500", BackendFailures{}},
		"another protocol": {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: odd\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "502", BackendFailures{Handshake: 1}},
		"an upgrade nobody asked for": {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: odd\r\n\r\n",
			get("a.example", "/"), "502", BackendFailures{Handshake: 1}},
		"too large a head": {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maximumHeader+8192) + "\r\n\r\n", get("a.example", "/"), "502", BackendFailures{Request: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSite(t, 1, to("a.example", backendA))
				s.raw(backendA, func(c net.Conn) {
					if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
						io.WriteString(c, test.backend)
					}
				})
				conn, err := s.tlsTo("a.example", nil)
				if err != nil {
					t.Fatal(err)
				}
				io.WriteString(conn, test.request)
				answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				io.ReadAll(answer.Body)
				conn.Close()
				synctest.Wait()
				if got := s.Counted("a.example").Failures; got != test.want || fmt.Sprint(answer.StatusCode) != test.status {
					t.Errorf("%d, counted %+v, want %+v", answer.StatusCode, got, test.want)
				}
			})
		})
	}
}

func TestASilentBackendIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSite(t, 1, to("a.example", backendA))
		s.raw(backendA, func(c net.Conn) { io.Copy(io.Discard, c) })
		began := time.Now()
		if status, _ := bodyOf(s.exchange("a.example", get("a.example", "/"))); status != "504" || time.Since(began) != answerWait {
			t.Errorf("%s after %s", status, time.Since(began))
		}
		if got := s.Counted("a.example").Failures; got != (BackendFailures{Request: 1}) {
			t.Errorf("counted %+v", got)
		}
	})
}

// A client that leaves is no failure of the backend, whatever it left behind.
func TestAClientThatLeaves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSite(t, 1, to("a.example", backendA))
		s.raw(backendA, func(c net.Conn) { io.Copy(io.Discard, c) })
		for _, text := range []string{get("a.example", "/"), "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 9\r\n\r\nhalf"} {
			conn, err := s.tlsTo("a.example", nil)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(conn, text)
			synctest.Wait()
			conn.NetConn().Close()
			synctest.Wait()
		}
		// Nor is one that stays and breaks the rules for its own body.
		s.exchange("a.example", "POST / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n")
		if got := s.Counted("a.example"); got.Requests != 3 || got.Failures != (BackendFailures{}) {
			t.Errorf("counted %+v", got)
		}
	})
}

// An upgrade becomes a tunnel whose bytes are counted, and ends when nothing passes.
func TestUpgradesPass(t *testing.T) {
	const offer = "GET /socket HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	bubble(t, func(t *testing.T) {
		s := newSite(t, 1, to("a.example", backendA))
		s.raw(backendA, func(c net.Conn) {
			r := bufio.NewReader(c)
			if request, err := http.ReadRequest(r); err != nil || request.Header.Get("Upgrade") != "websocket" {
				t.Errorf("%v", err)
				return
			}
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			io.Copy(c, r)
		})
		conn, err := s.tlsTo("a.example", nil)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, offer)
		r := bufio.NewReader(conn)
		if answer, err := http.ReadResponse(r, nil); err != nil || answer.StatusCode != 101 {
			t.Fatalf("%v", err)
		}
		synctest.Wait()
		before := s.Counted("a.example")
		for range 3 {
			time.Sleep(clientIdle - time.Second)
			io.WriteString(conn, "ping")
			echoed := make([]byte, 4)
			if _, err := io.ReadFull(r, echoed); err != nil || string(echoed) != "ping" {
				t.Fatalf("%q, %v", echoed, err)
			}
		}
		began := time.Now()
		if _, err := r.ReadByte(); err == nil || time.Since(began) != clientIdle {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		synctest.Wait()
		want := before.plus(Traffic{BytesIn: 12, BytesOut: 12})
		if got := s.Counted("a.example"); got != want || before.BytesIn != int64(len(offer)) || got.Requests != 1 || got.Connections != 1 {
			t.Errorf("counted %+v, want %+v", got, want)
		}
	})
}
