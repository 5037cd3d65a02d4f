package simulate

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
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

func hello(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello %s", r.Host) }

// The certificate is the one of the name, and without a route there is none.
func TestCertificatesAreChosenByName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSite(t, 1, to("a.example", backendA), to("B.example", backendA))
		for _, name := range []string{"a.example", "A.Example", "b.example"} {
			conn, err := s.tlsTo(name, nil)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if state := conn.ConnectionState(); state.NegotiatedProtocol != "" || state.Version != tls.VersionTLS13 {
				t.Errorf("%s: protocol %q, version %x", name, state.NegotiatedProtocol, state.Version)
			}
			conn.Close()
		}
		s.backend(backendA, hello)
		if status, _ := bodyOf(s.exchange("A.Example", get("a.example", "/"))); status != "200" || s.Counted("a.example").Requests != 1 {
			t.Errorf("a name in another case: %s", status)
		}
		unknown := "remote error: tls: unrecognized name"
		for name, test := range map[string]struct {
			name   string
			change func(*tls.Config)
			want   string
		}{
			"no route":      {"c.example", nil, unknown},
			"below a route": {"x.a.example", nil, unknown},
			"no name":       {"", func(c *tls.Config) { c.InsecureSkipVerify = true }, unknown},
			"TLS 1.1":       {"a.example", func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }, "remote error: tls: protocol version not supported"},
			"HTTP/2 alone":  {"a.example", func(c *tls.Config) { c.NextProtos = []string{"h2"} }, "remote error: tls: no application protocol"},
		} {
			if _, err := s.tlsTo(test.name, test.change); err == nil || err.Error() != test.want {
				t.Errorf("%s: %v, want %s", name, err, test.want)
			}
		}
		if _, err := s.tlsTo("a.example", func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }); !errors.As(err, new(*tls.CertificateVerificationError)) {
			t.Errorf("who does not trust the authority: %v", err)
		}
		conn, err := s.tlsTo("a.example", func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 })
		if err != nil || conn.ConnectionState().Version != tls.VersionTLS12 {
			t.Errorf("TLS 1.2: %v", err)
		}
		synctest.Wait()
		if got := s.ClientsRefused(); got.Handshakes < 5 || got.Overload != 0 {
			t.Errorf("%+v", got)
		}
		s.counted("c.example", Traffic{})
	})
}

// R68: a simulated ingress serves a hostname that goes, comes or gets another
// certificate so at once, and nothing before the first table.
func TestR68_TheServedTableIsTheOneHeld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSite(t, 0)
		s.backend(backendA, hello)
		if _, err := s.tlsTo("a.example", nil); err == nil {
			t.Error("served without a table")
		}
		s.publish(1, to("a.example", backendA))
		standing, err := s.tlsTo("a.example", nil)
		if err != nil {
			t.Fatal(err)
		}
		first := standing.ConnectionState().PeerCertificates[0]
		s.publish(2, to("a.example", backendA), to("b.example", backendA))
		again, err := s.tlsTo("a.example", nil)
		if err != nil || again.ConnectionState().PeerCertificates[0].Equal(first) {
			t.Errorf("another certificate is not served: %v", err)
		}
		s.publish(3, to("b.example", backendA))
		if _, err := s.tlsTo("a.example", nil); err == nil {
			t.Error("a hostname that is gone is served")
		}
		io.WriteString(standing, get("a.example", "/"))
		if answer, _ := io.ReadAll(standing); !strings.HasPrefix(string(answer), "HTTP/1.1 404 ") {
			t.Errorf("on a connection that stood: %q", answer)
		}
		if status, body := bodyOf(s.exchange("b.example", get("b.example", "/"))); status != "200" || body != "hello b.example" {
			t.Errorf("got %s %q", status, body)
		}
	})
}

// Traffic is counted under the day on which it passed.
func TestTrafficIsCountedByDay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSite(t, 1, to("a.example", backendA))
		s.backend(backendA, hello)
		answer := s.exchange("a.example", get("a.example", "/"))
		s.clock.step(24 * time.Hour)
		s.exchange("a.example", get("a.example", "/"))
		s.exchange("a.example", get("a.example", "/"))
		one := Traffic{Requests: 1, Connections: 1, BytesIn: int64(len(get("a.example", "/"))), BytesOut: int64(len(answer))}
		want := []TrafficBucket{{day1, "a.example", "node-a", one}, {day2, "a.example", "node-a", one.plus(one)}}
		if diff := cmp.Diff(want, s.Counters()); diff != "" {
			t.Errorf("counted (-want +got):\n%s", diff)
		}
	})
}

// Clients that are slow or too many are sent away.
func TestClientsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSite(t, 1, to("a.example", backendA))
		s.backend(backendA, hello)
		ends := func(c net.Conn, after time.Duration, what string) {
			t.Helper()
			began := time.Now()
			io.Copy(io.Discard, c)
			if took := time.Since(began); took != after {
				t.Errorf("%s ends after %s, want %s", what, took, after)
			}
		}
		silent, err := connect(t.Context(), s.edge)
		if err != nil {
			t.Fatal(err)
		}
		ends(silent, headerWait, "who begins no handshake")
		conn, err := s.tlsTo("a.example", nil)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, "GET / HTTP/1.1\r\n")
		ends(conn, headerWait, "who begins a request")
		kept, err := s.tlsTo("a.example", nil)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(kept, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
		if _, err := http.ReadResponse(bufio.NewReader(kept), nil); err != nil {
			t.Fatal(err)
		}
		ends(kept, clientIdle, "who asks no more")
		synctest.Wait()

		var held []net.Conn
		for range maximumConnections {
			c, err := connect(t.Context(), s.edge)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, c)
		}
		more, err := connect(t.Context(), s.edge)
		if err != nil {
			t.Fatal(err)
		}
		ends(more, 0, "one too many")
		if got := s.ClientsRefused(); got != (ClientRefusals{Handshakes: 1, Overload: 1}) {
			t.Errorf("%+v", got)
		}
		for _, c := range held {
			c.Close()
		}
		synctest.Wait()
		if status, _ := bodyOf(s.exchange("a.example", get("a.example", "/"))); status != "200" {
			t.Errorf("after they have left: %s", status)
		}
	})
}

// R76: a simulated ingress serves what it holds while the relay is away, and counts it.
func TestR76_ServesWhileItsSocketIsAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSite(t, 4, to("a.example", backendA))
		s.backend(backendA, hello)
		s.line.withConn(func(g *gate) { g.Close() })
		synctest.Wait()
		if _, ok := s.Registered(); ok {
			t.Error("still registered")
		}
		if status, body := bodyOf(s.exchange("a.example", get("a.example", "/"))); status != "200" || body != "hello a.example" {
			t.Errorf("got %s %q", status, body)
		}
		if _, err := s.WaitRegistered(soon(t), 1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		sent := s.Frames().Sent(pullTable)
		if got := string(sent[len(sent)-1].Body); got != `{"knownRevision":4}` {
			t.Errorf("it came back and asked %s", got)
		}
		s.says[pullTable] = `{"table":null}` // a relay that was given none yet
		s.Reconnect()
		if _, err := s.WaitRegistered(soon(t), 2); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if last := s.Tables()[len(s.Tables())-1]; last.Outcome != TableNone || s.Revision() != 4 {
			t.Errorf("null: %+v, it holds %d", last, s.Revision())
		}
		s.Restart() // the table is nowhere but in memory
		synctest.Wait()
		if _, err := s.tlsTo("a.example", nil); err == nil || s.Counted("a.example").Requests != 1 {
			t.Errorf("after a restart: %v, counted %+v", err, s.Counted("a.example"))
		}
	})
}

// Nothing stays behind an end, not even towards a backend that is asked nothing.
func TestIdleBackendsAreLetGo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSite(t, 1, to("a.example", backendA))
		var ended time.Time
		s.raw(backendA, func(c net.Conn) {
			http.ReadRequest(bufio.NewReader(c))
			io.WriteString(c, "HTTP/1.1 204 None\r\n\r\n")
			io.Copy(io.Discard, c)
			ended = time.Now()
		})
		s.exchange("a.example", get("a.example", "/"))
		if !ended.IsZero() {
			t.Error("a connection is used once")
		}
		began := time.Now()
		s.Close()
		synctest.Wait()
		if !ended.Equal(began) {
			t.Error("an idle connection outlives the ingress")
		}
	})
}

func TestAnIngressThatHasEndedServesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSite(t, 1, to("a.example", backendA))
		s.raw(backendA, func(c net.Conn) { io.Copy(io.Discard, c) })
		waiting, err := s.tlsTo("a.example", nil)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(waiting, get("a.example", "/"))
		synctest.Wait()
		s.Close()
		if answer, err := io.ReadAll(waiting); len(answer) > 0 {
			t.Errorf("a request was answered after the end: %q, %v", answer, err)
		}
		if _, err := connect(t.Context(), s.edge); err == nil {
			t.Error("a connection was taken after the end")
		}
		if err := s.Serve(s.edge); err != ErrClosed {
			t.Errorf("served after the end: %v", err)
		}
		if err := s.ServePort(1, s.edge); err != ErrClosed {
			t.Errorf("forwarded after the end: %v", err)
		}
	})
}
