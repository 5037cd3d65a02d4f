package cloudly

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/failpoint"
	"serve.zone/relay/typedsocket"
)

// The steps of a handshake. Each runs in a goroutine of its own and returns what
// came of it.

// dial reads the bearer and opens the socket (contract §5.6, steps 4 and 5).
func (s *Session) dial(a *attempt, before *typedsocket.Socket) mail {
	if before != nil {
		timer := time.NewTimer(socketWait)
		defer timer.Stop()
		select {
		case <-before.Done():
		case <-timer.C:
		case <-a.ctx.Done():
		}
	}
	bearer, err := s.keeper.bearer(a.ctx, true)
	if err != nil {
		return mail{event: event{kind: evUnusable}, trouble: credentialUnusable, err: err}
	}
	sock, err := typedsocket.Connect(a.ctx, typedsocket.Dial{
		URL: s.cfg.URL + s.cfg.SocketPath,
		Net: failpoint.Dial(failpoint.CloudlyConnection, s.cfg.Dial),
		TLS: s.secured(),
		Config: typedsocket.Config{
			Peer:          Name,
			Limits:        socketLimits,
			Handler:       &reception{s, a},
			Streams:       true,
			KeepMalformed: true,
			OverloadName:  string(contract.RelayOverloaded),
			Panicked:      func(value any, _ []byte) { s.cfg.Log.Recovered(value) },
		},
	})
	if err != nil {
		bearer.Zero()
		return mail{event: event{kind: evUnanswered}, trouble: dialTrouble(err), err: err}
	}
	return mail{event: event{kind: evOpened}, sock: sock, bearer: bearer}
}

// exchangeBearer turns the bearer into the identity of this socket.
func (s *Session) exchangeBearer(a *attempt, bearer contract.Secret) mail {
	defer bearer.Zero()
	if err := s.exchange(a.ctx, a, bearer, s.barring(a.sock)); err != nil {
		return failed(err, exchangeRefused, exchangeUnanswered)
	}
	return mail{event: event{kind: evExchanged}}
}

// secured returns the TLS configuration of the next attempt.
func (s *Session) secured() *tls.Config {
	if s.cfg.TLS == nil {
		return nil
	}
	return s.cfg.TLS()
}

// exchange asks for an identity. A failure changes nothing that is held.
func (s *Session) exchange(ctx context.Context, a *attempt, bearer contract.Secret, hear func(*typedsocket.RemoteError)) error {
	request := contract.IdentityExchangeRequest{Token: bearer}.AppendJSON(roomFor(bearer))
	defer clear(request)
	obtained, since := s.cfg.Wall(), s.now()
	answer, err := s.call(ctx, a, s.cfg.Methods.ExchangeIdentity, request, hear)
	if err != nil {
		return err
	}
	answer.Erase()
	defer answer.Release()
	read, err := contract.ReadIdentityExchangeAnswer(answer.Response())
	if err != nil {
		read.Identity.JWT.Zero()
		return err
	}
	a.identity.set(read.Identity.JWT, newLifetime(read.Identity.ExpiresAt, obtained, since))
	return nil
}

// authenticateSocket puts the identity on the socket (contract §5.2).
func (s *Session) authenticateSocket(a *attempt) mail {
	jwt, _, ok := a.identity.credential(s.cfg.Wall(), s.now())
	if !ok {
		return mail{event: event{kind: evUnanswered}, trouble: sessionUnanswered, err: typedsocket.ErrClosed}
	}
	request := contract.ClientSessionRequest{
		Identity: contract.IdentityCredential{JWT: jwt},
		Protocol: s.cfg.Offer,
	}.AppendJSON(roomFor(jwt))
	jwt.Zero()
	defer clear(request)
	answer, err := s.call(a.ctx, a, contract.MethodRegisterCloudlyClientSession, request, s.barring(a.sock))
	if err != nil {
		return failed(err, sessionRefused, sessionUnanswered)
	}
	answer.Erase()
	defer answer.Release()
	if m := judged(s.cfg.Offer, answer.Response(), sessionUnanswered); m != nil {
		return *m
	}
	read, err := contract.ReadClientSessionAnswer(answer.Response())
	if err != nil {
		return mail{event: event{kind: evUnanswered}, trouble: sessionUnanswered, err: err}
	}
	return mail{event: event{kind: evAuthenticated}, offer: read.Protocol}
}

// registerRelay states what was bound (contract §5.3). The facts are those of the
// moment; facts that do not hold are not sent, and use no number.
func (s *Session) registerRelay(a *attempt, sequence int64) {
	facts := s.cfg.Facts()
	s.sent = sentFacts{facts, true}
	request := contract.RelayRegistrationRequest{Protocol: s.cfg.Offer, Relay: facts, RegistrationSequence: sequence}
	judge := request.Validate
	if s.cfg.AllowLoopback {
		judge = request.ValidateLoopback
	}
	reasons := judge()
	a.gate.hold()
	s.task(a, func() mail {
		if len(reasons) > 0 {
			err := &contract.InvalidError{What: "registerClusterRelay request", Reasons: reasons}
			return mail{event: event{kind: evRefused}, trouble: factsInvalid, err: err}
		}
		return s.sendRegistration(a, request)
	})
}

func (s *Session) sendRegistration(a *attempt, request contract.RelayRegistrationRequest) mail {
	answer, err := s.call(a.ctx, a, contract.MethodRegisterClusterRelay, request.AppendJSON(nil), s.barring(a.sock))
	if err != nil {
		return failed(err, registrationRefused, registrationUnanswered)
	}
	defer answer.Release()
	failpoint.Reach(failpoint.RegistrationAnswered)
	if m := judged(s.cfg.Offer, answer.Response(), registrationUnanswered); m != nil {
		// Cloudly has accepted, whatever we think of its offer.
		m.used = true
		return *m
	}
	read := contract.ReadRelayRegistrationAnswer
	if s.cfg.StrictAnswers {
		read = contract.ReadStrictRelayRegistrationAnswer
	}
	accepted, err := read(answer.Response())
	if err != nil {
		return mail{event: event{kind: evUnanswered}, trouble: registrationUnanswered, err: err}
	}
	return mail{event: event{kind: evAccepted}, answer: registrationAnswer{request.RegistrationSequence, accepted}}
}

// call calls on the socket of an attempt, with a bound for the whole call. hear is
// told of a refusal where it is read.
func (s *Session) call(ctx context.Context, a *attempt, method string, request []byte, hear func(*typedsocket.RemoteError)) (*typedsocket.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callBound)
	defer cancel()
	answer, err := a.sock.Call(ctx, method, request, typedsocket.CallOptions{Timeout: callWait, Erase: true, Refused: hear})
	if err != nil {
		return nil, fmt.Errorf("cloudly: %w", err)
	}
	return answer, nil
}

// roomFor is memory for a request around a secret, so large that writing it leaves
// no copy behind.
func roomFor(secret contract.Secret) []byte { return make([]byte, 0, 2*len(secret)+512) }

// sentFacts are the facts of the last registration that was sent.
type sentFacts struct {
	facts contract.RelayFacts
	any   bool
}

// are reports whether the facts were sent as they are now.
func (f sentFacts) are(now contract.RelayFacts) bool {
	then := f.facts
	if !f.any || (then.VPNHub == nil) != (now.VPNHub == nil) {
		return false
	}
	if then.VPNHub != nil && *then.VPNHub != *now.VPNHub {
		return false
	}
	then.VPNHub, now.VPNHub = nil, nil
	return then == now
}
