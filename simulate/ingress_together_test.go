package simulate

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket/carriertest"
)

// A Cloudly and an ingress on both sides of the least relay there is, in fake time
// over pipes: registered, given two tables, serving HTTPS, read page by page.
func TestCloudlyAndIngress(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		h := carry(t, s)
		bearer, err := s.DesignateIngress("node-a")
		if err != nil {
			t.Fatal(err)
		}
		site := &site{t: t, ca: authority(t), edge: carriertest.NewNetwork(), backends: map[string]*carriertest.Network{}}
		i := h.ingress(func(cfg *IngressConfig) {
			cfg.Bearer, cfg.Wall, cfg.DialBackend = bearer, s.clock.now, site.dial
		})
		site.Ingress = i
		if err := i.Serve(site.edge); err != nil {
			t.Fatal(err)
		}
		site.backend(backendA, hello)
		if _, err := i.WaitRegistered(soon(t), 0); err != nil {
			t.Fatal(err)
		}
		for n, hostnames := range [][]string{{"a.example"}, {"a.example", "b.example"}} {
			var routes []IngressRoute
			for _, hostname := range hostnames {
				routes = append(routes, to(hostname, backendA))
			}
			table, err := s.PublishRoutes(soon(t), site.certified(routes...), nil)
			if err != nil || table.Revision != int64(n)+1 {
				t.Fatalf("published %d, %v", table.Revision, err)
			}
			if err := i.WaitRevision(soon(t), table.Revision); err != nil {
				t.Fatal(err)
			}
			answer, err := site.client().Get("https://" + hostnames[n] + "/")
			if err != nil {
				t.Fatal(err)
			}
			if body, _ := io.ReadAll(answer.Body); string(body) != "hello "+hostnames[n] {
				t.Errorf("got %q", body)
			}
			answer.Body.Close()
		}
		synctest.Wait()
		read, err := s.ReadTraffic(soon(t), day1, day1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%+v", read); got != fmt.Sprintf("%+v", i.Counters()) || len(read) != 2 || read[0].Requests != 1 {
			t.Errorf("read %s, counted %+v", got, i.Counters())
		}
		if accepted := s.IngressRegistrations(); len(accepted) != 1 || accepted[0].NodeID != "node-a" || accepted[0].Revision != 0 {
			t.Errorf("accepted %+v", accepted)
		}

		// The assignment gets another credential: the ingress is refused until it has
		// it, and what it holds is served all the while.
		fresh, err := s.RotateIngressBearer()
		if err != nil {
			t.Fatal(err)
		}
		i.Reconnect()
		if err := s.Wait(soon(t), "a refusal", func() bool { return len(s.IngressRefusals()) == 1 }); err != nil {
			t.Fatal(err)
		}
		if status, _ := bodyOf(site.exchange("a.example", get("a.example", "/"))); status != "200" {
			t.Errorf("while it is refused: %s", status)
		}
		if err := s.RunIngress("node-a"); err != nil {
			t.Fatal(err)
		}
		i.SetBearer(fresh)
		if _, err := i.WaitRegistered(soon(t), 1); err != nil {
			t.Fatal(err)
		}
		if i.AcceptedRevision() != 2 {
			t.Errorf("accepted with revision %d", i.AcceptedRevision())
		}
		wantViolations(t, append(s.Violations(), i.Violations()...))
	})
}

// loopback is an ingress that serves one hostname on real sockets.
func loopback(t *testing.T, hostname string) (i *Ingress, ca *TLSAuthority, edge string) {
	t.Helper()
	backend := httptest.NewServer(http.HandlerFunc(hello))
	t.Cleanup(backend.Close)
	s := newStage(t, nil)
	h := carry(t, s)
	bearer, err := s.DesignateIngress("node-a")
	if err != nil {
		t.Fatal(err)
	}
	i = h.ingress(func(cfg *IngressConfig) { cfg.Bearer = bearer })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Serve(l); err != nil {
		t.Fatal(err)
	}
	if _, err := i.WaitRegistered(soon(t), 0); err != nil {
		t.Fatal(err)
	}
	ca = authority(t)
	table, err := s.PublishRoutes(soon(t), []IngressRoute{ca.route(t, hostname, destination(strings.TrimPrefix(backend.URL, "http://")))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.WaitRevision(soon(t), table.Revision); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { wantViolations(t, append(s.Violations(), i.Violations()...)) })
	return i, ca, l.Addr().String()
}

// The same over sockets of the system.
func TestIngressOverLoopback(t *testing.T) {
	i, ca, edge := loopback(t, "app.example")
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, edge)
		},
		TLSClientConfig: &tls.Config{RootCAs: ca.Pool()},
	}
	defer transport.CloseIdleConnections()
	for n := range 3 {
		answer, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Get("https://app.example/")
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(answer.Body); string(body) != "hello app.example" || err != nil {
			t.Errorf("got %q, %v", body, err)
		}
		answer.Body.Close()
		if err := i.Wait(soon(t), "a counted request", func() bool { return i.Counted("app.example").Requests == int64(n)+1 }); err != nil {
			t.Error(err)
		}
	}
	if got := i.Counted("app.example"); got.Connections != 1 || got.Failures != (BackendFailures{}) {
		t.Errorf("counted %+v", got)
	}
}

// A person's client is a client: curl, told where the name is and whom to trust.
func TestIngressServesCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("no curl on this machine")
	}
	_, ca, edge := loopback(t, "app.example")
	trusted := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(trusted, ca.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(edge)
	out, err := exec.CommandContext(soon(t), curl, "--silent", "--show-error", "--noproxy", "*", "--cacert", trusted,
		"--resolve", "app.example:"+port+":"+host, "https://app.example:"+port+"/").CombinedOutput()
	if err != nil || string(out) != "hello app.example:"+port {
		t.Errorf("curl: %q, %v", out, err)
	}
}

// The shortest rehearsal, as a reader may copy it.
func Example_ingress() {
	cloudly, err := NewCloudly(CloudlyConfig{Wall: time.Now, Origin: "https://relay.example:8443"})
	if err != nil {
		panic(err)
	}
	defer cloudly.Close()
	cloudly.EnrollNode("node-a")
	bearer, _ := cloudly.DesignateIngress("node-a")
	authority, _ := NewTLSAuthority(time.Now())
	certificate, _ := authority.Issue("app.example")
	table, err := cloudly.NextRouteTable([]IngressRoute{{
		Hostname: "app.example", Certificate: certificate,
		Destinations: []contract.Destination{{Address: "127.0.0.1", Port: 8080}},
	}}, nil)
	fmt.Println(table.Revision, err)
	// A relay that registers at cloudly pulls the table, and the ingress from it.
	ingress, err := NewIngress(IngressConfig{URL: "wss://relay.example:8443", Wall: time.Now, NodeID: "node-a", Bearer: bearer})
	if err != nil {
		panic(err)
	}
	defer ingress.Close()
	fmt.Println(ingress.Revision())
	// Output:
	// 1 <nil>
	// 0
}
