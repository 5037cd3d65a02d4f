package simulate

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
)

func TestWaitNamesWhatItWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		began := time.Now()
		_, err := s.WaitRegistered(t.Context(), 0)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "a registered relay") || time.Since(began) != DefaultWait {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		go func() { time.Sleep(time.Hour); s.relay(nil) }()
		if number, err := s.WaitRegistered(timeout(t, 2*time.Hour), 0); err != nil || number != 1 {
			t.Errorf("%d, %v", number, err)
		}
		synctest.Wait()
		if err := s.WaitReceived(soon(t), register, 1); err != nil {
			t.Error(err)
		}
		if err := s.WaitReceived(timeout(t, time.Second), register, 2); err == nil {
			t.Error("two registrations were received")
		}
	})
}

func TestFramesAreRecorded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		all := s.Frames().All()
		if len(all) != 6 || len(s.Frames().Messages()) != 6 {
			t.Fatalf("%d frames", len(all))
		}
		methods := []string{}
		for _, m := range s.Frames().Messages() {
			methods = append(methods, m.Method)
			if m.Socket != 1 || m.Sent == m.Request || m.At != time.Now() || m.Refused {
				t.Errorf("%+v", m)
			}
		}
		want := []string{contract.DefaultMethodExchangeIdentity, contract.DefaultMethodExchangeIdentity,
			contract.MethodRegisterCloudlyClientSession, contract.MethodRegisterCloudlyClientSession, register, register}
		if diff := cmp.Diff(want, methods); diff != "" {
			t.Errorf("methods (-want +got):\n%s", diff)
		}
		c.refuses("anything", wrong{"any", []byte(`{"a":[1, 2]}`), noSuchMethod().text, ""})
		request := s.Frames().Received("anything")[0]
		answer, ok := s.Frames().Answer(request)
		if string(request.Body) != `{"a":[1, 2]}` || !ok || !answer.Refused || answer.ErrorText != noSuchMethod().text || string(answer.ErrorData) != "{}" {
			t.Errorf("request %s, answer %+v", request.Body, answer)
		}
		if _, ok := s.Frames().Answer(Message{Method: "anything"}); ok {
			t.Error("a request that was never made has an answer")
		}
		s.Frames().Forget()
		if len(s.Frames().All()) != 0 {
			t.Error("forgotten frames")
		}
	})
}

func TestRecordIsBounded(t *testing.T) {
	l := FrameLog{limit: 10 * (frameOverhead + 2)}
	for range 25 {
		l.add(kept{Frame: Frame{Text: []byte("{}")}})
	}
	if len(l.All()) != 10 || l.Dropped() != 15 {
		t.Errorf("%d kept, %d dropped", len(l.All()), l.Dropped())
	}
	l.add(kept{Frame: Frame{Text: make([]byte, 2000)}})
	if len(l.All()) != 0 || l.Dropped() != 26 {
		t.Errorf("%d kept, %d dropped", len(l.All()), l.Dropped())
	}
	var v violations
	for range maximumViolations + 5 {
		v.add(Violation{})
	}
	if len(v.all()) != maximumViolations || v.more != 5 {
		t.Errorf("%d violations and %d more", len(v.all()), v.more)
	}
}

func TestNothingIsRecordedForLoad(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, func(cfg *CloudlyConfig) { cfg.RecordLimit = -1 })
		s.relay(nil)
		if n := len(s.Frames().All()); n != 0 {
			t.Errorf("%d frames", n)
		}
	})
}

// What a relay must not write into an envelope is noted, whatever is answered.
func TestEnvelopesAreJudged(t *testing.T) {
	request := func(more string) string {
		return `{"method":"getClusterVpnNetwork","request":{},"response":null,"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}` + more + `}`
	}
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		conn, err := s.network.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		ws, _, err := websocket.Dial(t.Context(), "ws://cloudly/", &websocket.DialOptions{HTTPClient: oneConn(conn)})
		if err != nil {
			t.Fatal(err)
		}
		defer ws.CloseNow()
		for _, text := range []string{request(""), request(`,"authInfo":{"jwt":"x"}`), request(`,"localData":null`), `{"hello":1}`} {
			if err := ws.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		wantViolations(t, s.Violations(), BeforeSession, ForeignMember, BeforeSession, ForeignMember, BeforeSession, MalformedEnvelope)
		s.CutSockets()
		synctest.Wait()
	})
}

func TestPalletOverTLS(t *testing.T) {
	certificate, roots := testCertificate(t)
	bubble(t, func(t *testing.T) {
		s := newStage(t, func(cfg *CloudlyConfig) { cfg.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}} })
		p, err := NewPallet(PalletConfig{URL: "https://relay.example/", TLS: &tls.Config{RootCAs: roots, Time: testTime}, Dial: s.network.Dial,
			NodeID: "node-a", Credential: s.credential("node-a"), Wall: s.clock.now})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		// Cloudly takes no node that no relay carries.
		if err := s.WaitReceived(soon(t), registerNode, 2); err != nil {
			t.Error(err)
		}
	})
}

// Both work on real sockets with nothing given but addresses.
func TestOverLoopback(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewCloudly(CloudlyConfig{Wall: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Serve(l); err != nil {
		t.Fatal(err)
	}
	p, err := NewPallet(PalletConfig{URL: "http://" + l.Addr().String(), NodeID: "node-a", Wall: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitReceived(soon(t), registerNode, 1); err != nil {
		t.Error(err)
	}
}

func TestPalletEndsWhateverItDoes(t *testing.T) {
	stuck := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	failing := func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
	for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){"dialing": stuck, "waiting": failing} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p, err := NewPallet(PalletConfig{URL: "ws://relay/", Dial: dial, NodeID: "node-a", Wall: time.Now})
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
				began := time.Now()
				p.Close()
				p.Close()
				if took := time.Since(began); took != 0 {
					t.Errorf("Close took %s", took)
				}
				if err := p.Start(); !errors.Is(err, ErrClosed) {
					t.Errorf("started again: %v", err)
				}
			})
		})
	}
}

func TestConfigurationsAreJudged(t *testing.T) {
	bad := contract.Offer{InterfacesVersion: "32.0.0", MinimumPeerVersion: "32.1.0"}
	for want, change := range map[string]func(*CloudlyConfig){
		"simulated cloudly: no wall clock is given":                                             func(c *CloudlyConfig) { c.Wall = nil },
		"simulated cloudly: own protocol offer: minimumPeerVersion: is above interfacesVersion": func(c *CloudlyConfig) { c.Offer = bad },
		"simulated cloudly: ClusterID is not a canonical identifier":                            func(c *CloudlyConfig) { c.ClusterID = ":" },
		"simulated cloudly: RuntimeNamespace is not a canonical identifier":                     func(c *CloudlyConfig) { c.RuntimeNamespace = ":" },
		"simulated cloudly: Authorization is not a relay authorization":                         func(c *CloudlyConfig) { c.Authorization = "x" },
		"simulated cloudly: Origin is not a cluster relay origin":                               func(c *CloudlyConfig) { c.Origin = "http://x" },
	} {
		cfg := CloudlyConfig{Wall: time.Now}
		change(&cfg)
		if _, err := NewCloudly(cfg); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := NewPallet(PalletConfig{}); !errors.Is(err, errNoWall) {
		t.Errorf("pallet without a clock: %v", err)
	}
	if _, err := NewPallet(PalletConfig{Wall: time.Now, Offer: bad}); err == nil {
		t.Error("pallet with a bad offer")
	}
}

// No error and no violation of these peers repeats a secret.
func TestNothingRepeatsASecret(t *testing.T) {
	const marker = "markedSecret"
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		if err := s.SetNodeCredential("node-a", NodeCredential{1, marker}); err != nil {
			t.Fatal(err)
		}
		bodies := map[string][]string{
			contract.DefaultMethodExchangeIdentity: {`{"token":"` + marker + `"}`, `{"` + marker + `":1}`},
			registerNode: {
				string(registration("node-a", NodeCredential{2, marker}, nonceA).AppendJSON(nil)),
				`{"protocol":` + string(DefaultOffer().AppendJSON(nil)) + `,"credential":{"token":"` + marker + `","` + marker + `":1}}`,
			},
			"reportRuntimeAssignmentLogs": {`{"session":{"nodeId":"` + marker + `"}}`},
		}
		for method, list := range bodies {
			for _, body := range list {
				_, err := c.ask(method, []byte(body))
				if text := explain(err).Error(); strings.Contains(text, marker) {
					t.Errorf("%s: %s", method, text)
				}
			}
		}
		if text := fmt.Sprintf("%v %+v %#v", NodeCredential{1, marker}, NodeRegistration{Credential: NodeCredential{1, marker}}, NodeCredential{1, marker}); strings.Contains(text, marker) {
			t.Error(text)
		}
		for _, v := range s.Violations() {
			if strings.Contains(v.String(), marker) {
				t.Error(v)
			}
		}
	})
	if bytes.Contains(refusedText(t, marker), []byte(marker)) {
		t.Error("a reader repeats a name")
	}
}

func refusedText(t *testing.T, marker string) []byte {
	t.Helper()
	_, err := readNodeRegistration([]byte(`{"` + marker + `":"` + marker + `"}`))
	var invalid *contract.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	return []byte(strings.Join(invalid.Reasons, "\n"))
}
