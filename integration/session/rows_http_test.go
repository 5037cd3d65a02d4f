package session_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

// plainly makes one plain request to the node listener.
func plainly(t *testing.T, r *rig.Rig, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(r.Soon(), method, r.Origin()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, err := r.NodeHTTP().Do(request)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

// Design §4, row §16: what the node listener answers to plain requests, in this order.
func TestPlainRequestsAreAnsweredInOrder(t *testing.T) {
	r := ready(t)
	for _, c := range []struct {
		method, path string
		status       int
	}{
		// A dot segment comes before everything else.
		{"GET", "/.", 404}, {"GET", "/../", 404}, {"GET", "/a/%2e%2e/b", 404}, {"GET", "/v2/../x", 404}, {"GET", "/v2/%252e%252E/x", 404},
		{"POST", "/a/../typedrequest", 404}, {"PUT", "/v2/x/..", 404}, {"GET", "/a%2f..%2fb", 404},
		// The registry, which is not there yet, is read only.
		{"GET", "/v2/", 404}, {"HEAD", "/v2/", 404}, {"GET", "/v2/team/app/manifests/latest", 404}, {"GET", "/_relay/registry-token", 404},
		{"PUT", "/v2/x", 405}, {"POST", "/v2/x/blobs/uploads/", 405}, {"DELETE", "/v2/x", 405}, {"POST", "/_relay/registry-token", 405},
		// Spark's routes are nothing here, for every method (O33).
		{"POST", "/spark/nodes/heartbeat", 404}, {"POST", "/spark/nodes/host", 404}, {"POST", "/spark/swarm-nodes/x", 404},
		{"GET", "/spark/nodes/host", 404}, {"PUT", "/spark/x", 404},
		{"POST", "/", 405}, {"POST", "/typedrequest", 405}, {"POST", "/sparkle", 405},
		{"GET", "/", 426}, {"HEAD", "/", 426}, {"PUT", "/", 426}, {"GET", "/?x=/../", 426},
		// The operator's pages are not a node's business.
		{"GET", "/livez", 404}, {"GET", "/readyz", 404}, {"GET", "/status", 404}, {"GET", "/metrics", 404}, {"GET", "/events", 404},
		{"GET", "/debug/pprof/", 404}, {"GET", "/typedrequest", 404}, {"PUT", "/x", 404}, {"GET", "/index.html", 404},
	} {
		answer, text := plainly(t, r, c.method, c.path, "")
		if answer.StatusCode != c.status || answer.Header.Get("Location") != "" {
			t.Errorf("%s %s was answered %s, want %d", c.method, c.path, answer.Status, c.status)
		}
		if c.method != "HEAD" && !strings.Contains(strings.TrimSpace(text), " ") {
			t.Errorf("%s %s: there is no sentence but %q", c.method, c.path, text)
		}
		if c.status == http.StatusMethodNotAllowed && answer.Header.Get("Allow") == "" {
			t.Errorf("%s %s: it is not said which method is allowed", c.method, c.path)
		}
		if c.status == http.StatusUpgradeRequired && !strings.EqualFold(answer.Header.Get("Upgrade"), "websocket") {
			t.Errorf("%s %s: it is not said to what to upgrade", c.method, c.path)
		}
	}
	// A handshake is taken on any path that is left over, and on none of the others.
	handshake := []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "MDEyMzQ1Njc4OWFiY2RlZg=="}
	for _, path := range []string{"/a/../", "/v2/", "/spark/nodes"} {
		if answer, _ := plainly(t, r, "GET", path, "", handshake...); answer.StatusCode != http.StatusNotFound {
			t.Errorf("a handshake on %s was answered %s", path, answer.Status)
		}
	}
	anywhere := strings.TrimSuffix(r.NodeURL(), "/") + "/typedrequest/of/another/time"
	r.Node("node-a", func(c *simulate.PalletConfig) { c.URL = anywhere })
}

// R40: registrations and all other typed requests are refused over HTTP, on every path, and nothing is forwarded.
func TestR40_TypedRequestsAreNotTakenOverHTTP(t *testing.T) {
	r := ready(t)
	a := r.Node("node-a")
	before := len(r.Cloudly.Frames().Messages())
	for _, path := range []string{"/", "/typedrequest", "/typedsocket", "/registerPalletRuntimeSession", "/?x"} {
		for _, body := range []string{
			rig.RequestText(registration, "uni_0123456789abcdef01234567", registrationOf(r, "node-b", 1)),
			rig.RequestText(protection, "uni_0123456789abcdef01234567", string(under(bound(t, a), `"x":"`+withheld+`"`))),
			rig.RequestText("holdRuntimeNetworkDnsLeaseRenewals", "uni_0123456789abcdef01234567", `{"x":"`+withheld+`"}`),
		} {
			for _, method := range []string{"POST", "PUT"} {
				answer, text := plainly(t, r, method, path, body, "Content-Type", "application/json")
				if answer.StatusCode < 400 || answer.StatusCode > 499 || strings.Contains(text, "correlation") {
					t.Errorf("%s %s was answered %s %s", method, path, answer.Status, text)
				}
			}
		}
	}
	if got := r.Cloudly.ConnectedNodes(); got != 1 {
		t.Errorf("cloudly holds %d nodes", got)
	}
	wantCarried(t, r, a, "node-a")
	wantWithheld(t, r.Cloudly.Frames())
	if got := len(r.Cloudly.Frames().Messages()) - before; got != 4 {
		t.Errorf("%d messages crossed cloudly's socket, want the four of a report and a push", got)
	}
	// The very same registration is accepted on a socket.
	registered(t, r, "node-b", 1)
}

// handshakeWait bounds one handshake.
const handshakeWait = 20 * time.Second

// TLS is 1.2 or newer: an older client is told so by an alert.
func TestOlderTLSIsRefused(t *testing.T) {
	r := ready(t)
	for version, accepted := range map[uint16]bool{
		tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true,
	} {
		config := r.ClientTLS()
		config.MinVersion, config.MaxVersion = version, version
		conn, err := tls.DialWithDialer(&net.Dialer{Timeout: handshakeWait}, "tcp4", r.ListenAddress(), config)
		switch {
		case err == nil:
			if got := conn.ConnectionState().Version; got != version || !accepted {
				t.Errorf("%s: agreed on %s", tls.VersionName(version), tls.VersionName(got))
			}
			conn.Close()
		case accepted || !strings.Contains(err.Error(), "protocol version not supported"):
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
	r.Node("node-a")
}
