package listener

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// handshakeWith makes a TLS handshake and returns its state or error.
func (r *rig) handshakeWith(config *tls.Config) (tls.ConnectionState, error) {
	r.t.Helper()
	conn, err := r.memory.dial(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	c := tls.Client(conn, config)
	if err := c.Handshake(); err != nil {
		return tls.ConnectionState{}, err
	}
	// A 1.3 client has not heard yet what its server thinks of it.
	io.WriteString(c, plain("GET", "/"))
	_, err = http.ReadResponse(bufio.NewReader(c), nil)
	return c.ConnectionState(), err
}

// TestTLSVersions: 1.2 and newer, HTTP/1.1 alone, no resumption.
func TestTLSVersions(t *testing.T) {
	tests := []struct {
		name     string
		max      uint16
		protocol []string
		version  uint16 // 0: refused
		agreed   string
	}{
		{"TLS 1.0", tls.VersionTLS10, nil, 0, ""},
		{"TLS 1.1", tls.VersionTLS11, nil, 0, ""},
		{"TLS 1.2", tls.VersionTLS12, nil, tls.VersionTLS12, ""},
		{"TLS 1.3", tls.VersionTLS13, nil, tls.VersionTLS13, ""},
		{"HTTP/2 or 1.1", 0, []string{"h2", "http/1.1"}, tls.VersionTLS13, "http/1.1"},
		{"HTTP/1.1", 0, []string{"http/1.1"}, tls.VersionTLS13, "http/1.1"},
		{"HTTP/2 alone", 0, []string{"h2"}, 0, ""},
		{"another protocol", 0, []string{"acme-tls/1"}, 0, ""},
	}
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cache := tls.NewLRUClientSessionCache(4)
		for _, test := range tests {
			config := clientTLS()
			config.MinVersion, config.MaxVersion, config.NextProtos, config.ClientSessionCache = tls.VersionTLS10, test.max, test.protocol, cache
			for range 2 {
				state, err := r.handshakeWith(config)
				if (err != nil) != (test.version == 0) || state.Version != test.version || state.NegotiatedProtocol != test.agreed || state.DidResume {
					t.Errorf("%s: %x %q resumed %v: %v", test.name, state.Version, state.NegotiatedProtocol, state.DidResume, err)
				}
			}
		}
	})
}

// TestWithoutACertificateHandshakesFailWithAnAlert, and go on as soon as there
// is one.
func TestWithoutACertificateHandshakesFailWithAnAlert(t *testing.T) {
	for name, missing := range map[string]error{"nil": nil, "an error": errors.New("certificate-pending: a secret")} {
		bubble(t, func(t *testing.T) {
			var held atomic.Pointer[tls.Certificate]
			r := newRig(t, func(c *Config) {
				c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
					if p := held.Load(); p != nil {
						return p, nil
					}
					return nil, missing
				}
			})
			for range 3 {
				_, err := r.handshakeWith(clientTLS())
				if want := "remote error: tls: internal error"; err == nil || err.Error() != want {
					t.Errorf("%s: %v, want %q", name, err, want)
				}
			}
			r.wantMetric(3, "relay_listener_uncertified_handshakes_total")
			held.Store(theCertificate())
			if _, err := r.handshakeWith(clientTLS()); err != nil {
				t.Errorf("%s: then: %v", name, err)
			}
			synctest.Wait()
			if log := r.log.String(); strings.Count(log, `"reason":"no-certificate"`) != 3 || strings.Contains(log, "secret") {
				t.Errorf("%s: log: %s", name, log)
			}
		})
	}
}

// R91: the connection after a swap gets the new certificate, and sockets that stand
// live on.
func TestR91_ANewCertificateIsForNewConnections(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var held atomic.Pointer[tls.Certificate]
		held.Store(certified("old.test"))
		r := newRig(t, func(c *Config) {
			c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return held.Load(), nil }
		})
		node, _ := r.node("node-a")
		config := clientTLS()
		config.ClientSessionCache = tls.NewLRUClientSessionCache(4)
		shown := func() string {
			state, err := r.handshakeWith(config)
			if err != nil {
				t.Fatal(err)
			}
			return state.PeerCertificates[0].DNSNames[0]
		}
		if got := shown(); got != "old.test" {
			t.Errorf("shown %s", got)
		}
		held.Store(certified("new.test"))
		if got := shown(); got != "new.test" {
			t.Errorf("then shown %s", got)
		}
		time.Sleep(time.Hour)
		call(t, node, "echo", `{}`)
	})
}

// What does not speak TLS is answered or dropped, and costs nobody else anything.
func TestWhatIsNoTLS(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		for _, bytes := range []string{"GET / HTTP/1.1\r\nHost: relay.test\r\n\r\n", "SSH-2.0-x\r\n", "\x16\x03\x01\x00\x01\x00", strings.Repeat("\x00", 600), "\x80\x2e\x01"} {
			conn, err := r.memory.dial(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(conn, bytes)
			answer, _ := io.ReadAll(conn)
			if strings.HasPrefix(bytes, "GET") != strings.HasPrefix(string(answer), "HTTP/1.0 400") {
				t.Errorf("%q is answered %q", bytes, answer)
			}
			conn.Close()
		}
		r.connect()
		synctest.Wait()
		if log := r.log.String(); !strings.Contains(log, `"reason":"http-to-https"`) || strings.Contains(log, "SSH") {
			t.Errorf("log: %s", log)
		}
	})
}
