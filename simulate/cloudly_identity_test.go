package simulate

import (
	"testing"
	"time"

	"serve.zone/relay/contract"
)

func exchangeBody(bearer string) []byte {
	return contract.IdentityExchangeRequest{Token: contract.Secret(bearer)}.AppendJSON(nil)
}

func TestExchangeJudgesTheBearer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		old := s.Authorization()
		current := s.RotateCredential()
		if old == current || !contract.IsRelayBearer(current) {
			t.Fatal("a rotation mints another bearer")
		}
		c := s.dial(nil)
		stale, staleData := named(contract.RelayCredentialGenerationStale, "the bearer is of an earlier generation")
		c.refuses(contract.DefaultMethodExchangeIdentity,
			wrong{"earlier generation", exchangeBody(old), stale, staleData},
			wrong{"unknown", exchangeBody(mintBearer()), "the token is not known", ""},
			unread(t, "line end", contract.ReadIdentityExchangeRequest, exchangeBody(current+"\n")),
			unread(t, "unknown member", contract.ReadIdentityExchangeRequest, []byte(`{"token":"`+current+`","also":1}`)),
		)
		c.must(contract.DefaultMethodExchangeIdentity, exchangeBody(current))
		given := mintBearer()
		if err := s.RotateCredentialTo(given); err != nil || s.Authorization() != given || s.Credential().Generation != 3 {
			t.Errorf("rotated to %+v, %v", s.Credential(), err)
		}
		if err := s.RotateCredentialTo("x"); err == nil {
			t.Error("rotated to no authorization")
		}
		c.must(contract.DefaultMethodExchangeIdentity, exchangeBody(given))
		wantViolations(t, s.Violations())
	})
}

func TestConfiguredExchangeMethod(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, func(cfg *CloudlyConfig) { cfg.ExchangeMethod = "swapToken" })
		c := s.dial(nil)
		c.must("swapToken", exchangeBody(s.Authorization()))
		c.refuses(contract.DefaultMethodExchangeIdentity,
			wrong{"not the configured name", exchangeBody(s.Authorization()), "the socket has no client session", ""})
		wantViolations(t, s.Violations(), BeforeSession)
	})
}

// R12: the simulated Cloudly judges the offer of a client session, then its shape, then
// its identity, and a refused one authenticates nothing.
func TestR12_ClientSessionJudgesOfferThenShapeThenIdentity(t *testing.T) {
	const method = contract.MethodRegisterCloudlyClientSession
	older := contract.Offer{InterfacesVersion: "31.9.0", MinimumPeerVersion: "31.0.0"}
	refusal := contract.ProtocolRefusal{Reason: contract.MajorMismatch, Refusing: DefaultOffer(), Refused: older}
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.dial(nil)
		c.exchange()
		body := c.session()
		whole := string(DefaultOffer().AppendJSON(nil))
		c.refuses(method,
			unread(t, "no offer", contract.ReadOffer, []byte(`{"identity":{"jwt":"x"}}`)),
			wrong{"offer of another major before everything else", swap(t, swap(t, body, whole, string(older.AppendJSON(nil))), `"identity"`, `"novel"`),
				refusal.Text(), string(refusal.AppendData(nil))},
			unread(t, "unknown member", contract.ReadClientSessionRequest, swap(t, body, `{"identity"`, `{"novel":1,"identity"`)),
			wrong{"unknown identity", swap(t, body, string(c.jwt), "sim.unknown"), "the identity is not known", ""},
		)
		if got := s.Sockets(); got[0].Authenticated {
			t.Error("a refused session authenticates the socket")
		}
		if got, want := c.must(method, body), `{"protocol":`+whole+`}`; got != want {
			t.Errorf("answer %s, want %s", got, want)
		}
		if got := s.Sockets(); !got[0].Authenticated {
			t.Error("an accepted session does not authenticate the socket")
		}
	})
}

func TestIdentityEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, func(cfg *CloudlyConfig) { cfg.IdentityLife = time.Minute })
		c := s.dial(nil)
		c.exchange()
		s.clock.step(time.Minute)
		c.refuses(contract.MethodRegisterCloudlyClientSession, wrong{"ended", c.session(), "the identity has ended", ""})
		c.exchange()
		s.clock.step(time.Minute - time.Millisecond)
		c.must(contract.MethodRegisterCloudlyClientSession, c.session())
	})
}

// R24: the simulated Cloudly refuses an identity of an earlier generation by the name
// for it.
func TestR24_IdentityOfAnEarlierGeneration(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.dial(nil)
		c.exchange()
		s.RotateCredential()
		text, data := named(contract.RelayCredentialGenerationStale, "the identity is of an earlier generation")
		c.refuses(contract.MethodRegisterCloudlyClientSession, wrong{"earlier generation", c.session(), text, data})
	})
}
