package simulate

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
	"serve.zone/relay/typedsocket/carriertest"
)

// R12, contract §5.2, §5.6: the simulated Cloudly judges the order of frames on a new
// socket.
func TestR12_OrderOnANewSocket(t *testing.T) {
	pull := contract.MethodGetVPNNetwork
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.dial(nil)
		c.exchange()
		wantViolations(t, s.Violations())
		unauthenticated := wrong{"before the session", []byte("{}"), "the socket has no client session", ""}
		c.refuses(pull, unauthenticated)
		unauthenticated.body = facts(0).AppendJSON(nil)
		c.refuses(register, unauthenticated)
		wantViolations(t, s.Violations(), BeforeSession, BeforeSession)
		c.must(contract.MethodRegisterCloudlyClientSession, c.session())
		c.must(pull, []byte("{}"))
		wantViolations(t, s.Violations(), BeforeSession, BeforeSession, BeforeRegistration)
		c.refuses(contract.MethodRegisterPalletRuntimeSession, wrong{"a node before the relay",
			registration("node-a", s.credential("node-a"), nonceA).AppendJSON(nil), "no relay is verified on this socket", ""})
		c.must(register, facts(0).AppendJSON(nil))
		c.must(pull, []byte("{}"))
		want := []Violation{
			{BeforeSession, 1, pull, time.Now()}, {BeforeSession, 1, register, time.Now()},
			{BeforeRegistration, 1, pull, time.Now()}, {BeforeRegistration, 1, contract.MethodRegisterPalletRuntimeSession, time.Now()},
		}
		if diff := cmp.Diff(want, s.Violations()); diff != "" {
			t.Errorf("violations (-want +got):\n%s", diff)
		}
	})
}

// R20, contract §6.1: the simulated Cloudly notes a node's request long after an
// undispatched refusal, judged or scripted: the relay did not drop what it holds.
func TestR20_NodeRequestsAfterCustody(t *testing.T) {
	const report = "reportRuntimeNetworkProtection"
	for _, test := range []struct {
		name string
		end  func(*stage, *client)
		want []Rule
	}{
		{"judged", func(s *stage, c *client) { c.ask(register, facts(0).AppendJSON(nil)) }, []Rule{AfterCustody}},
		{"scripted", func(s *stage, c *client) {
			s.Script(register, RefuseNamed(contract.RelayNodeUnknown, ""))
			c.ask(register, facts(1).AppendJSON(nil))
		}, []Rule{AfterCustody}},
		{"generation fenced on a pull", func(s *stage, c *client) {
			s.RotateCredential()
			c.ask(contract.MethodGetRouteTable, []byte("{}"))
		}, []Rule{AfterCustody}},
		{"another refusal", func(s *stage, c *client) {
			s.Script(register, Refuse("cannot verify", nil))
			c.ask(register, facts(1).AppendJSON(nil))
		}, []Rule{}},
		{"refusal that was lost", func(s *stage, c *client) {
			s.Script(register, Step{Text: string(contract.RelayNodeUnknown), Silent: true})
			c.ask(register, facts(1).AppendJSON(nil))
		}, []Rule{}},
		{"registered again", func(s *stage, c *client) {
			c.ask(register, facts(0).AppendJSON(nil))
			c.must(register, facts(1).AppendJSON(nil))
		}, []Rule{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newStage(t, nil)
				c := s.relay(nil)
				session := c.node("node-a", s.credential("node-a"), nonceA)
				test.end(s, c)
				ended := len(test.want) > 0
				if _, registered := s.Registered(); registered == ended {
					t.Errorf("registered: %v", registered)
				}
				s.clock.step(custodyGrace)
				c.ask(report, under(session, "{}"))
				wantViolations(t, s.Violations())
				s.clock.step(time.Millisecond)
				if _, err := c.ask(report, under(session, "{}")); (err != nil) != ended {
					t.Errorf("the report: %v", err)
				}
				wantViolations(t, s.Violations(), test.want...)
			})
		})
	}
}

func TestNewerSocketSupersedes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		older, newer := s.relay(nil), s.relay(nil)
		newer.must(contract.MethodGetRouteTable, []byte("{}"))
		wantViolations(t, s.Violations())
		older.refuses("reportRuntimeNetworkProtection", wrong{"older", []byte(`{"nodeId":"node-a"}`), "no relay is verified on this socket", ""})
		older.must(contract.MethodGetRouteTable, []byte("{}"))
		wantViolations(t, s.Violations(), OlderSocket, OlderSocket)
		want := []SocketState{{1, true, false}, {2, true, true}}
		if diff := cmp.Diff(want, s.Sockets()); diff != "" {
			t.Errorf("sockets (-want +got):\n%s", diff)
		}
		newer.socket.Close(typedsocket.CloseNormal, "over")
		<-newer.socket.Done()
		synctest.Wait()
		if _, ok := s.Registered(); ok || s.Opened() != 2 {
			t.Errorf("a relay is registered after its socket ended, or %d sockets were opened", s.Opened())
		}
	})
}

func TestTwoRegistrationsInFlight(t *testing.T) {
	for _, test := range []struct {
		name string
		step Step
		want []Rule
	}{
		{"answered", Step{}, []Rule{}},
		{"refused", Refuse("not now", nil), []Rule{}},
		{"late", Late(time.Second), []Rule{TwoRegistrations}},
		{"lost answer", Swallow(), []Rule{TwoRegistrations}},
		{"lost request", Ignore(), []Rule{TwoRegistrations}},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newStage(t, nil)
				c := s.dial(nil)
				c.authenticate()
				s.Script(register, test.step)
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				answer, err := c.socket.Call(ctx, register, facts(0).AppendJSON(nil), typedsocket.CallOptions{})
				if err == nil {
					answer.Release()
				}
				c.must(register, facts(1).AppendJSON(nil))
				time.Sleep(2 * time.Second)
				c.must(register, facts(2).AppendJSON(nil))
				got := rulesOf(s.Violations())
				if test.name == "lost answer" || test.name == "lost request" {
					got = got[:1] // an unanswered one stays in flight
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("violations (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestReachability(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		status := func() int {
			_, err := s.tryDial(nil)
			var upgrade *typedsocket.UpgradeError
			if !errors.As(err, &upgrade) {
				return -1
			}
			return upgrade.Status
		}
		s.SetReachability(Unavailable)
		if got := status(); got != http.StatusServiceUnavailable {
			t.Errorf("unavailable: status %d", got)
		}
		s.SetReachability(Unreachable)
		if _, err := s.tryDial(nil); err == nil {
			t.Error("unreachable, and yet a socket")
		}
		s.SetReachability(Hanging)
		began := time.Now()
		if _, err := s.tryDial(nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) < 10*time.Second {
			t.Errorf("hanging: %v after %s", err, time.Since(began))
		}
		s.SetReachability(Dying)
		dying := s.dial(nil)
		<-dying.socket.Done()
		var end *typedsocket.EndError
		if err := dying.socket.Err(); !errors.As(err, &end) || end.Code != typedsocket.CloseGoingAway || !end.Remote {
			t.Errorf("dying: %v", err)
		}
		s.SetReachability(Mute)
		mute := s.dial(nil)
		var timeout *typedsocket.TimeoutError
		if _, err := mute.ask(contract.DefaultMethodExchangeIdentity, exchangeBody(s.Authorization())); !errors.As(err, &timeout) {
			t.Errorf("mute: %v", err)
		}
		if got := len(s.Frames().Received(contract.DefaultMethodExchangeIdentity)); got != 1 {
			t.Errorf("a mute cloudly recorded %d requests", got)
		}
		s.Return()
		s.dial(nil).authenticate()
	})
}

func TestOutageCutsAndReturns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		s.Outage()
		<-c.socket.Done()
		synctest.Wait()
		if _, ok := s.Registered(); ok || len(s.Sockets()) != 0 {
			t.Error("a socket outlives an outage")
		}
		s.Return()
		s.relay(nil)
		if number, err := s.WaitRegistered(soon(t), 1); err != nil || number != s.Opened() {
			t.Errorf("registered on socket %d of %d: %v", number, s.Opened(), err)
		}
	})
}

func TestCloseSockets(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		s.CloseSockets(typedsocket.CloseRestart)
		<-c.socket.Done()
		var end *typedsocket.EndError
		if err := c.socket.Err(); !errors.As(err, &end) || end.Code != typedsocket.CloseRestart {
			t.Errorf("ended with %v", err)
		}
	})
}

// What a stopped reader does not take is served when it goes on.
func TestStopReading(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		s.StopReading()
		done := make(chan time.Time)
		go func() { c.must(contract.MethodGetVPNNetwork, []byte("{}")); done <- time.Now() }()
		began := time.Now()
		time.Sleep(20 * time.Second)
		s.ResumeReading()
		if took := (<-done).Sub(began); took != 20*time.Second {
			t.Errorf("answered after %s", took)
		}
	})
}

func TestStoppedReaderLosesItsSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		s.StopReading()
		select {
		case <-c.socket.Done():
		case <-time.After(5 * time.Minute):
			t.Fatal("a peer that reads nothing keeps its socket")
		}
	})
}

func TestServesTLS(t *testing.T) {
	certificate, roots := testCertificate(t)
	bubble(t, func(t *testing.T) {
		s := newStage(t, func(cfg *CloudlyConfig) { cfg.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}} })
		socket, err := typedsocket.Connect(t.Context(), typedsocket.Dial{URL: "wss://cloudly.example/", Net: s.network.Dial,
			TLS: &tls.Config{RootCAs: roots, Time: testTime}, Config: typedsocket.Config{Peer: "cloudly"}})
		if err != nil {
			t.Fatal(err)
		}
		c := &client{t: t, stage: s, socket: socket}
		c.authenticate()
		s.CutSockets()
		<-socket.Done()
	})
}

func TestHTTPTransportIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		transport := &http.Transport{DialContext: s.network.Dial}
		defer transport.CloseIdleConnections()
		response, err := (&http.Client{Transport: transport}).Post("http://cloudly/", "application/json",
			strings.NewReader(`{"method":"registerCloudlyClientSession"}`))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusUpgradeRequired || len(s.Frames().All()) != 0 {
			t.Errorf("status %d, %d frames", response.StatusCode, len(s.Frames().All()))
		}
	})
}

func TestClosedCloudly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		s.Close()
		s.Close()
		<-c.socket.Done()
		if err := s.Serve(carriertest.NewNetwork()); !errors.Is(err, ErrClosed) {
			t.Errorf("a closed cloudly serves: %v", err)
		}
		if err := s.KeepRenewed(); !errors.Is(err, ErrClosed) {
			t.Errorf("a closed cloudly renews: %v", err)
		}
	})
}
