package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/duty"
	"serve.zone/relay/operator"
	"serve.zone/relay/typedsocket/carriertest"
)

// local is a network whose connections come from this machine.
type local struct{ addressed }

type fromHere struct{ net.Conn }

func (fromHere) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40001} }

func (l local) Accept() (net.Conn, error) {
	conn, err := l.addressed.Accept()
	if err != nil {
		return nil, err
	}
	return fromHere{conn}, nil
}

// explained runs a real endpoint, with a hub that explains or without one, for peers on
// this machine or not.
func explained(t *testing.T, explain func(from, to netip.Addr) operator.Explanation, here bool) Client {
	t.Helper()
	network := addressed{carriertest.NewNetwork()}
	var listener net.Listener = network
	if here {
		listener = local{network}
	}
	catalogue, err := duty.NewCatalogue(operator.EventKinds)
	if err != nil {
		t.Fatal(err)
	}
	o := operator.New(operator.Config{
		Listen:  func(context.Context, string, string) (net.Listener, error) { return listener, nil },
		Address: netip.MustParseAddrPort("127.0.0.1:9465"), Events: duty.NewEvents(duty.EventsConfig{Catalogue: catalogue}), Explain: explain,
	})
	if err := o.Bind(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- o.Serve() }()
	t.Cleanup(func() {
		if err := errors.Join(o.Close(), <-ended); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
	})
	return Client{Base: base, Dial: network.Dial}
}

func TestExplainAgainstARealEndpoint(t *testing.T) {
	from, to := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	carriertest.Bubble(t, func(t *testing.T) {
		c := explained(t, func(from, to netip.Addr) operator.Explanation {
			return operator.Explanation{
				Admitted: true, Action: "drop", Reason: "packet-ipv6", Revision: 7, Suspended: true, Sentence: "It is dropped.",
				From: operator.End{Address: from.String(), Node: "node-a", Prefix: "10.0.0.0/24", Domain: "web", Connected: true},
				To:   operator.End{Address: to.String(), Node: "node-b", Prefix: "fd00::/8", Domain: "db", Connected: true},
			}
		}, true)
		got, err := c.Explain(t.Context(), from, to)
		want := Explanation{
			Admitted: true, Action: "drop", Reason: "packet-ipv6", Revision: 7, Suspended: true, Sentence: "It is dropped.",
			From: End{Address: "10.0.0.1", Node: "node-a", Prefix: "10.0.0.0/24", Domain: "web", Connected: true},
			To:   End{Address: "fd00::1", Node: "node-b", Prefix: "fd00::/8", Domain: "db", Connected: true},
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
	carriertest.Bubble(t, func(t *testing.T) {
		if x, err := explained(t, nil, true).Explain(t.Context(), from, to); err != ErrNoHub || x != (Explanation{}) {
			t.Errorf("without a hub: %+v, %v", x, err)
		}
	})
	carriertest.Bubble(t, func(t *testing.T) {
		var answer *AnswerError
		if _, err := explained(t, nil, false).Explain(t.Context(), from, to); !errors.As(err, &answer) || answer.Status != http.StatusForbidden {
			t.Errorf("from elsewhere: %v", err)
		}
	})
}

// Only the endpoint's own word is taken for a relay without a hub.
func TestExplainTellsAMissingHubFromAMissingPage(t *testing.T) {
	for body, kind := range map[string]string{
		`{"error":"no-hub"}`: "text/plain", `{"error":"other"}`: "application/json", `{"error":7}`: "application/json", "no-hub": "application/json",
	} {
		carriertest.Bubble(t, func(t *testing.T) {
			c := scripted(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", kind)
				w.WriteHeader(http.StatusNotFound)
				io.WriteString(w, body)
			})
			var answer *AnswerError
			_, err := c.Explain(t.Context(), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.1.0.1"))
			if !errors.As(err, &answer) || *answer != (AnswerError{"/explain", http.StatusNotFound}) {
				t.Errorf("%s as %s: %v", body, kind, err)
			}
		})
	}
}
