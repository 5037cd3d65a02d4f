package operator

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"serve.zone/relay/duty"
)

// Over real sockets: the address that was really bound answers, and both profiles
// over time come out whole.
func TestOnRealSockets(t *testing.T) {
	transport := &http.Transport{DisableKeepAlives: true}
	for _, test := range []struct{ address, profile string }{
		{"127.0.0.1:0", "profile"},
		{"[::1]:0", "trace"},
	} {
		t.Run(test.profile, func(t *testing.T) {
			t.Parallel()
			address := netip.MustParseAddrPort(test.address)
			if address.Addr().Is6() && !hasIPv6() {
				address = netip.MustParseAddrPort("127.0.0.1:0")
			}
			o := New(Config{
				Listen: new(net.ListenConfig).Listen, Address: address,
				Duties: []duty.Duty{says("cloudly", ok("session"))}, Events: duty.NewEvents(duty.EventsConfig{}),
			})
			if err := o.Bind(t.Context()); err != nil {
				t.Fatal(err)
			}
			served := make(chan error, 1)
			go func() { served <- o.Serve() }()
			for path, begins := range map[string]string{
				"/livez": "ok\n", "/readyz": "ok\n", "/status": `{"schema":1,`,
				"/debug/pprof/" + test.profile + "?seconds=1": map[string]string{"profile": "\x1f\x8b", "trace": "go 1."}[test.profile],
			} {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+o.Addr().String()+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				response, err := transport.RoundTrip(request)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(response.Body)
				response.Body.Close()
				if err != nil || response.StatusCode != 200 || !strings.HasPrefix(string(body), begins) {
					t.Errorf("%s: %d %.40q %v", path, response.StatusCode, body, err)
				}
			}
			if err := o.Drain(context.Background()); err != nil {
				t.Error(err)
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

func hasIPv6() bool {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err == nil {
		l.Close()
	}
	return err == nil
}
