package cloudly

import (
	"context"
	"crypto/tls"
	"errors"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// custodyName returns the custody refusal that one of the relay's own calls was
// answered with: the leading token of the text, else data.code (design §4, O10).
func custodyName(err error) (contract.RefusalName, bool) {
	var refused *typedsocket.RemoteError
	if !errors.As(err, &refused) {
		return "", false
	}
	return contract.FindRefusal(refused.Text, refused.Data, contract.UndispatchedRefusals())
}

// failed is the mail about a step whose call failed. A refusal that is none of the
// five names and no whole protocol refusal changes nothing held, and neither does
// anything else. The refusal's data is zeroed.
func failed(err error, refused, unanswered trouble) mail {
	m := mail{event: event{kind: evUnanswered}, trouble: unanswered, err: err}
	defer typedsocket.EraseRefusal(err)
	var remote *typedsocket.RemoteError
	if !errors.As(err, &remote) {
		if errors.Is(err, typedsocket.ErrClosed) {
			m.trouble = socketLost
		}
		return m
	}
	if name, ok := custodyName(err); ok {
		m.kind, m.name = evCustody, name
		return m
	}
	if refusal, ok := contract.ReadProtocolRefusal(remote.Data); ok {
		m.kind, m.refusal, m.trouble = evIncompatible, refusal, offerIncompatible
		return m
	}
	m.kind, m.trouble = evRefused, refused
	return m
}

// judged is the mail about an accepted answer whose offer was judged from our side
// (contract §4): nil goes on, a refusal of ours makes the hop a refused one, and
// an answer without a readable offer is none.
func judged(local contract.Offer, answer []byte, unanswered trouble) *mail {
	err := contract.JudgeAnsweredOffer(local, answer)
	if err == nil {
		return nil
	}
	m := mail{event: event{kind: evUnanswered}, trouble: unanswered, err: err}
	if refusal, ok := errors.AsType[contract.ProtocolRefusal](err); ok {
		m.kind, m.refusal, m.trouble = evIncompatible, refusal, offerIncompatible
	}
	return &m
}

// dialTrouble tells a server that answers from one that does not, and from one that
// is not the one it should be.
func dialTrouble(err error) trouble {
	var upgrade *typedsocket.UpgradeError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &upgrade):
		return upgradeRefused
	case errors.As(err, &certificate):
		return certificateRefused
	}
	return dialFailed
}

// Call calls Cloudly on a socket that OnRegistered gave, and hears what the answer
// says about custody. It is how duties call Cloudly. The data of a refusal is heard here
// and zeroed: the error that is returned has none.
func (s *Session) Call(ctx context.Context, sock *typedsocket.Socket, method string, request []byte, o typedsocket.CallOptions) (*typedsocket.Answer, error) {
	o.Refused = s.listening(sock)
	answer, err := sock.Call(ctx, method, request, o)
	typedsocket.EraseRefusal(err)
	return answer, err
}

// listening returns what hears the errors of a call on sock, where they are read:
// whoever waits for the answer may have given up at that moment.
func (s *Session) listening(sock *typedsocket.Socket) func(*typedsocket.RemoteError) {
	return func(refused *typedsocket.RemoteError) {
		if name, ok := custodyName(refused); ok {
			s.heard(sock, name)
		}
	}
}

// barring is listening for the steps of a handshake, whose outcome tells the loop.
func (s *Session) barring(sock *typedsocket.Socket) func(*typedsocket.RemoteError) {
	return func(refused *typedsocket.RemoteError) {
		if _, ok := custodyName(refused); ok {
			s.bar(sock)
		}
	}
}

// bar keeps anything more of the old custody from being served or forwarded, before
// the loop ends it (contract §6.2). It returns the attempt that the socket belongs
// to, false for a socket of an earlier one.
func (s *Session) bar(sock *typedsocket.Socket) (epoch uint64, ok bool) {
	s.mu.Lock()
	a := s.live
	s.mu.Unlock()
	if a == nil || a.sock != sock {
		return 0, false
	}
	a.gate.bar()
	if hook := s.cfg.Hooks.OnCustodyHeard; hook != nil {
		s.guard(func() { hook(sock) })
	}
	return a.epoch, true
}

// HeardForwarded tells the session the member error.data of an answer that goes on
// to a node. Of it only relay-credential-generation-stale counts, and only as
// code; the answer is forwarded all the same (design §4, O10). It does not block.
func (s *Session) HeardForwarded(sock *typedsocket.Socket, data []byte) {
	if contract.IsForwardedCustodyRefusal(data) {
		s.heard(sock, contract.RelayCredentialGenerationStale)
	}
}

func (s *Session) heard(sock *typedsocket.Socket, name contract.RefusalName) {
	if epoch, ok := s.bar(sock); ok {
		s.post(mail{event: event{kind: evHeard, epoch: epoch, name: name}})
	}
}
