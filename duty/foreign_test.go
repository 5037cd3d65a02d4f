package duty

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/duty/field"
)

func TestClassify(t *testing.T) {
	for _, row := range []struct {
		line    string
		class   foreignClass
		address string
		reason  string
	}{
		{"", foreignLine, "", ""},
		{"something else", foreignLine, "", ""},
		{"http: TLS handshake error from 192.0.2.1:4711: EOF", tlsHandshakeError, "192.0.2.1:4711", "eof"},
		{"http: TLS handshake error from [2001:db8::1]:4711: remote error: tls: bad certificate", tlsHandshakeError, "[2001:db8::1]:4711", "alert-bad-certificate"},
		{"http: TLS handshake error from 192.0.2.1:4711: remote error: tls: unknown certificate authority", tlsHandshakeError, "192.0.2.1:4711", "alert-unknown-certificate-authority"},
		{"http: TLS handshake error from 192.0.2.1:4711: remote error: tls: invented", tlsHandshakeError, "192.0.2.1:4711", ""},
		{"http: TLS handshake error from 192.0.2.1:4711: tls: first record does not look like a TLS handshake", tlsHandshakeError, "192.0.2.1:4711", "not-tls"},
		{"http: TLS handshake error from 192.0.2.1:4711: tls: client offered only unsupported versions: [301]", tlsHandshakeError, "192.0.2.1:4711", "unsupported-versions"},
		{"http: TLS handshake error from 192.0.2.1:4711: read tcp 192.0.2.2:443->192.0.2.1:4711: read: connection reset by peer", tlsHandshakeError, "192.0.2.1:4711", "connection-reset"},
		{"http: TLS handshake error from 192.0.2.1:4711: read tcp 192.0.2.2:443->192.0.2.1:4711: i/o timeout", tlsHandshakeError, "192.0.2.1:4711", "timeout"},
		{"http: TLS handshake error from @: EOF", tlsHandshakeError, "", "eof"},
		{"http: TLS handshake error from ", tlsHandshakeError, "", ""},
		{"http: panic serving 192.0.2.1:4711: body with EOF\ngoroutine 1", httpPanic, "192.0.2.1:4711", ""},
		{"http2: panic serving 192.0.2.1:4711: body", httpPanic, "192.0.2.1:4711", ""},
		{"http: Accept error: accept tcp 0.0.0.0:443: accept4: too many open files; retrying in 5ms", httpAcceptError, "", "too-many-open-files"},
		{"http: superfluous response.WriteHeader call from main.f (f.go:1)", httpHandlerMisuse, "", ""},
		{"http: proxy error: context canceled", httpProxyError, "", ""},
		{"http: anything else", httpLine, "", ""},
		{"net/http: invalid byte", httpLine, "", ""},
		{"http2: server connection error from 192.0.2.1:4711: x", http2Line, "192.0.2.1:4711", ""},
		{"http2: received GOAWAY", http2Line, "", ""},
		{"Unsolicited response received on idle HTTP channel starting with \"x\"; err=EOF", httpUnsolicited, "", ""},
		{"failed to sufficiently increase receive buffer size (was: 208 kiB, wanted: 7168 kiB, got: 416 kiB).", udpBufferSmall, "", ""},
	} {
		t.Run(row.line, func(t *testing.T) {
			v := classify(row.line)
			if v.class != row.class || v.address.String() != row.address || v.reason.String() != row.reason {
				t.Errorf("%v %q %q", v.class, v.address, v.reason)
			}
		})
	}
}

func TestForeignNamesAreNames(t *testing.T) {
	for c := range foreignClasses {
		if !field.IsName(c.String()) {
			t.Errorf("class %d is named %q", c, c)
		}
	}
	for _, known := range foreignReasons {
		if !field.IsName(known.reason) {
			t.Errorf("reason %q is no name", known.reason)
		}
	}
	for words, name := range alertReasons {
		if !field.IsName(name) {
			t.Errorf("alert %q is named %q", words, name)
		}
	}
	// RFC 8446 §6 has 27 alerts, and crypto/tls knows those and older ones.
	if len(alertReasons) < 27 {
		t.Errorf("%d alerts are known", len(alertReasons))
	}
	// A prefix that an earlier one begins with would never be reached.
	for i, later := range foreignPrefixes {
		for _, earlier := range foreignPrefixes[:i] {
			if strings.HasPrefix(later.prefix, earlier.prefix) {
				t.Errorf("%q hides %q", earlier.prefix, later.prefix)
			}
		}
	}
}

func TestHandler(t *testing.T) {
	var out output
	l := NewLogger(LogConfig{Out: &out, Wall: wall})
	s := slog.New(l.Handler("library"))
	for _, row := range []struct {
		name string
		do   func()
		want string // behind the source
	}{
		{"a message", func() { s.Warn("secret") }, `"level":"WARN","msg":"foreign-line","source":"library","bytes":6}`},
		{"a known message", func() { s.Info("http2: received GOAWAY x") }, `"level":"INFO","msg":"http2-line","source":"library","bytes":24}`},
		{"attributes", func() {
			s.Error("x", "node", "worker-1", "password", "secret", "err", io.EOF, "count", 3, "method", "not a method")
		}, `"level":"ERROR","msg":"foreign-line","source":"library","error":"EOF","count":3,"bytes":1}`},
		{"a logger's attributes", func() { s.With("node", "worker-1", "token", "secret").Info("x", "count", 1) },
			`"level":"INFO","msg":"foreign-line","source":"library","count":1,"bytes":1}`},
		{"a logger's attributes alone", func() { s.With("node", "worker-1").Info("x") },
			`"level":"INFO","msg":"foreign-line","source":"library","bytes":1}`},
		{"inside a group", func() { s.WithGroup("secret").With("node", "worker-1").Info("x", "count", 1) },
			`"level":"INFO","msg":"foreign-line","source":"library","bytes":1}`},
		{"a group", func() { s.Info("x", slog.Group("node", "node", "worker-1")) }, `"level":"INFO","msg":"foreign-line","source":"library","bytes":1}`},
		{"a group without a name", func() { s.WithGroup("").Info("x", "count", 1) }, `"level":"INFO","msg":"foreign-line","source":"library","count":1,"bytes":1}`},
		{"keys that are ours alone", func() { s.Info("x", "source", "other", "seq", 1, "bytes", 99) }, `"level":"INFO","msg":"foreign-line","source":"library","bytes":1}`},
		{"an odd list", func() { s.Info("x", []any{"secret"}...) }, `"level":"INFO","msg":"foreign-line","source":"library","bytes":1}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.do()
			if diff := cmp.Diff(`{"time":"2026-01-02T03:04:05Z",`+row.want+"\n", out.take()); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := value(l.Metrics(), "relay_log_dropped_attributes_total"); got != 12 {
		t.Errorf("dropped %v attributes, want 12", got)
	}
}

func TestTakeOver(t *testing.T) {
	var out output
	oldOut, oldFlags, oldPrefix, oldSlog := log.Writer(), log.Flags(), log.Prefix(), slog.Default()
	log.SetPrefix("kept ")
	defer log.SetPrefix(oldPrefix)
	restore := NewLogger(LogConfig{Out: &out, Wall: wall}).TakeOver()

	log.Print("secret")
	if got := out.take(); got != head("INFO", "foreign-line")+`,"source":"log","bytes":6}`+"\n" {
		t.Errorf("log: %s", got)
	}
	slog.Warn("secret", "node", "worker-1")
	if got := out.take(); got != head("WARN", "foreign-line")+`,"source":"slog","bytes":6}`+"\n" {
		t.Errorf("slog: %s", got)
	}
	restore()
	if log.Writer() != oldOut || log.Flags() != oldFlags || log.Prefix() != "kept " || slog.Default() != oldSlog {
		t.Errorf("not put back: flags %d, prefix %q", log.Flags(), log.Prefix())
	}
	log.SetOutput(io.Discard)
	defer log.SetOutput(oldOut)
	log.Print("x")
	slog.Info("x")
	if got := out.take(); got != "" {
		t.Errorf("after it was put back: %s", got)
	}
}

// The lines of a real server must be recognised: their text is not ours and
// may change with a release of Go.
func TestErrorLogOfARealServer(t *testing.T) {
	var out output
	l := NewLogger(LogConfig{Out: &out, Wall: wall})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/twice" {
			w.WriteHeader(http.StatusOK)
			w.WriteHeader(http.StatusOK)
			return
		}
		panic("secret body of " + r.URL.Path)
	}))
	server.Config.ErrorLog = l.ErrorLog("node-listener")
	server.StartTLS()
	defer server.Close()

	client := server.Client()
	client.Transport.(*http.Transport).DisableKeepAlives = true
	if _, err := client.Get(server.URL + "/panic"); err == nil {
		t.Error("the handler did not panic")
	}
	if answer, err := client.Get(server.URL + "/twice"); err != nil {
		t.Error(err)
	} else {
		answer.Body.Close()
	}
	untrusting := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	_, err := untrusting.Get(server.URL)
	if got := field.Error(err).String(); got != "get: tls: certificate not verified: x509: unknown authority" {
		t.Errorf("the client's side: %q", got)
	}
	plain, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Write([]byte("secret that is no TLS\r\n")); err != nil {
		t.Error(err)
	}
	_, _ = io.Copy(io.Discard, plain)
	plain.Close()

	wants := []string{
		`"level":"ERROR","msg":"http-panic","source":"node-listener","address":"127.0.0.1:`,
		`"level":"WARN","msg":"http-handler-misuse","source":"node-listener","bytes":`,
		`"level":"INFO","msg":"tls-handshake-error","source":"node-listener","address":"127.0.0.1:`,
		`"reason":"alert-bad-certificate"`,
		`"reason":"not-tls"`,
	}
	// The server reads the client's alert in its own time, and closing it
	// earlier would give the line another reason.
	for deadline := time.Now().Add(10 * time.Second); !containsAll(out.String(), wants) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	server.Close()
	got := out.String()
	for _, want := range wants {
		if !strings.Contains(got, want) {
			t.Errorf("missing %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "secret") || strings.Contains(got, `"foreign-line"`) {
		t.Errorf("%s", got)
	}
}

func containsAll(s string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(s, part) {
			return false
		}
	}
	return true
}

// A record may come from a library that builds them itself.
func TestHandlerTakesRecordsOfAnyShape(t *testing.T) {
	var out output
	h := NewLogger(LogConfig{Out: &out, Wall: wall}).Handler("library")
	record := slog.NewRecord(time.Time{}, slog.LevelInfo+1, "", 0)
	record.AddAttrs(slog.Attr{}, slog.Any("err", errors.Join(tls.AlertError(40), nil)), slog.Any("error", nil))
	if err := h.Handle(context.Background(), record); err != nil {
		t.Error(err)
	}
	want := `{"time":"2026-01-02T03:04:05Z","level":"INFO+1","msg":"foreign-line","source":"library","error":"tls: handshake failure","bytes":0}` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// FuzzForeignLine holds down that of a foreign line nothing is written but
// its class, its length, an address and a known reason.
func FuzzForeignLine(f *testing.F) {
	for _, known := range foreignPrefixes {
		f.Add(known.prefix, "192.0.2.1:4711: EOF")
		f.Add(known.prefix, "192.0.2.1:4711: hunter2 EOF")
	}
	f.Add("", "clusterRelayToken_a_b")
	f.Fuzz(func(t *testing.T, before, after string) {
		v := classify(before + after)
		if !field.IsName(v.class.String()) {
			t.Errorf("class %v", v.class)
		}
		if reason := v.reason.String(); reason != "" && (v.reason.IsWithheld() || !field.IsName(reason)) {
			t.Errorf("reason %q", reason)
		}
		if address := v.address.String(); address != "" {
			if _, err := net.ResolveTCPAddr("tcp", address); err != nil || !strings.Contains(before+after, address) {
				t.Errorf("address %q: %v", address, err)
			}
		}
		if again := classify(before + after); again != v {
			t.Errorf("%v, then %v", v, again)
		}
	})
}
