package cloudly

import (
	"context"
	"errors"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/failpoint"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// The cluster configuration, pushed and pulled (contract §6.3; design §4, O11).

// reception is the handler of one attempt's socket: configuration pushes are the
// session's own, everything else goes through the gate.
type reception struct {
	s *Session
	a *attempt
}

// ServeRequest is called by the socket's reader.
func (h *reception) ServeRequest(r *typedsocket.Request) {
	failpoint.Reach(failpoint.CloudlyRequestRead)
	if r.Method() != h.s.cfg.Methods.PushConfiguration {
		h.a.gate.serve(r)
		return
	}
	// A cluster document can hold keys that are none of the relay's business.
	r.Erase()
	if !h.s.post(mail{event: event{epoch: h.a.epoch}, push: r}) {
		h.s.refusePush(r, pushOverloaded)
	}
}

// pushOutcome is what became of a configuration push.
type pushOutcome uint8

const (
	pushApplied pushOutcome = iota
	notReady
	pushOverloaded
	pushUnrecognised
	numPushOutcomes
)

var pushOutcomeNames = [numPushOutcomes]string{
	pushApplied: "applied", notReady: "relay-not-ready", pushOverloaded: "relay-overloaded", pushUnrecognised: "configuration-unrecognised",
}

func (o pushOutcome) String() string { return pushOutcomeNames[o] }

var pushReasons = [numPushOutcomes]string{
	notReady:         "this socket is not authenticated, or the relay ends",
	pushOverloaded:   "earlier configurations have not been looked at",
	pushUnrecognised: "no cluster document was found in it",
}

// refusePush answers a push that changed nothing.
func (s *Session) refusePush(r *typedsocket.Request, outcome pushOutcome) {
	s.metrics.pushes.Of(outcome).Inc()
	refusal := contract.Refusal{Name: contract.RefusalName(outcome.String()), Reason: pushReasons[outcome]}
	r.Refuse(refusal.Text(), refusal.AppendData(nil))
}

// pushed reads a pushed configuration and answers when all that follows from it has
// been done. It is taken from any socket that is authenticated: the one that waits
// to be enabled is not registered.
func (s *Session) pushed(m mail) {
	if m.epoch != s.state.epoch || !s.state.phase.authenticated() {
		s.refusePush(m.push, notReady)
		return
	}
	configuration, err := contract.ReadClusterConfiguration(m.push.Body())
	if err != nil || !configuration.Recognised() {
		s.unrecognised(err)
		s.refusePush(m.push, pushUnrecognised)
		return
	}
	s.reads.Add(1)
	m.pushed = true
	s.configured(m, configuration)
	s.metrics.pushes.Of(pushApplied).Inc()
	m.push.Answer([]byte("{}"))
}

// pulledConfiguration is the answer to a pull.
type pulledConfiguration struct {
	configuration contract.ClusterConfiguration
	err           error  // the body was no strict JSON
	reads         uint64 // Session.reads when the pull began
}

// pulled looks at a pulled configuration. One that was asked for before the last
// acceptance or the last push may be older than what is known, and is asked for
// again.
func (s *Session) pulled(m mail) {
	if m.epoch != s.state.epoch || !s.state.phase.authenticated() {
		return
	}
	p := s.attempt.pulls
	if m.pulled.reads != s.reads.Load() {
		if p != nil {
			p.overtaken(0)
		}
		return
	}
	if p != nil {
		p.used(0)
	}
	if m.pulled.err != nil || !m.pulled.configuration.Recognised() {
		s.unrecognised(m.pulled.err)
		return
	}
	s.configured(m, m.pulled.configuration)
}

// unrecognised notes a body without a cluster document. It changes nothing.
func (s *Session) unrecognised(err error) {
	s.showConfiguration("document-unrecognised")
	s.publish(EventConfigurationUnrecognised, field.Error(err))
}

// configured takes a recognised configuration through the machine.
func (s *Session) configured(m mail, configuration contract.ClusterConfiguration) {
	next := mail{event: event{epoch: m.epoch, chance: m.chance, pushed: m.pushed}, config: &configuration}
	fault := ""
	if len(configuration.Faults) > 0 {
		fault = "node-endpoint-invalid"
	}
	switch configuration.Relay {
	case contract.RelayStated:
		next.kind, next.origin = evStated, configuration.Block.Origin
	case contract.RelayInvalid:
		next.kind, fault = evInvalid, "relay-block-invalid"
	default:
		next.kind = evAbsent
	}
	s.showConfiguration(fault)
	if fault != "" {
		s.publish(EventConfigurationFaulty, field.Reason(fault), field.Count(len(configuration.Faults)))
	}
	s.advance(next)
}

// pullAll has every pull run again, the configuration's with them.
func (s *Session) pullAll(a *attempt) {
	s.wantPulls(a)
	for i := range a.pulls.tasks {
		a.pulls.again(i)
	}
}

// pullConfiguration has the configuration pulled.
func (s *Session) pullConfiguration(a *attempt) {
	s.wantPulls(a)
	a.pulls.again(0)
}

// wantPulls starts the pulls of a socket, the configuration's first.
func (s *Session) wantPulls(a *attempt) {
	if a.pulls != nil {
		return
	}
	all := []pull{s.guarded(func(ctx context.Context, _ *typedsocket.Socket) error { return s.getConfiguration(ctx, a) })}
	for _, p := range s.cfg.Pulls {
		all = append(all, s.guarded(p))
	}
	a.pulls = startPulls(a.ctx, a.sock, all, func(err error, failures int) {
		s.metrics.failedPulls.Inc()
		if telling(failures) {
			s.publish(EventPullFailed, field.Method(methodOf(err)), field.Error(err), field.Attempt(failures))
		}
	})
}

// guarded makes a pull that panics one that failed, and zeroes the data of a refusal.
func (s *Session) guarded(p pull) pull {
	return func(ctx context.Context, sock *typedsocket.Socket) (err error) {
		err = errPanicked
		s.guard(func() { err = p(ctx, sock) })
		typedsocket.EraseRefusal(err)
		return err
	}
}

// getConfiguration pulls the cluster configuration and posts it.
func (s *Session) getConfiguration(ctx context.Context, a *attempt) error {
	reads := s.reads.Load()
	jwt, err := s.currentIdentity(ctx, a)
	if err != nil {
		return err
	}
	request := contract.ClusterConfigurationRequest{Identity: contract.IdentityCredential{JWT: jwt}}.AppendJSON(roomFor(jwt))
	jwt.Zero()
	defer clear(request)
	ctx, cancel := context.WithTimeout(ctx, configurationBound)
	defer cancel()
	answer, err := a.sock.Call(ctx, s.cfg.Methods.GetConfiguration, request, typedsocket.CallOptions{Timeout: configurationWait, Erase: true, Refused: s.listening(a.sock)})
	if err != nil {
		if refused := (*typedsocket.RemoteError)(nil); errors.As(err, &refused) {
			a.identity.doubt()
		}
		return err
	}
	answer.Erase()
	defer answer.Release()
	if s.reads.Load() != reads {
		return errOvertaken
	}
	p := &pulledConfiguration{reads: reads}
	p.configuration, p.err = contract.ReadClusterConfiguration(answer.Response())
	s.post(mail{event: event{epoch: a.epoch}, pulled: p})
	return nil
}

// currentIdentity returns a copy of the identity, exchanged again first when two
// thirds of its life are over. An exchange that fails leaves the old one, which
// may still do; a custody refusal is told.
func (s *Session) currentIdentity(ctx context.Context, a *attempt) (contract.Secret, error) {
	jwt, ageing, ok := a.identity.credential(s.cfg.Wall(), s.now())
	if !ok {
		return nil, typedsocket.ErrClosed
	}
	if !ageing {
		return jwt, nil
	}
	bearer, err := s.keeper.bearer(ctx, false)
	if err == nil {
		err = s.exchange(ctx, a, bearer, s.listening(a.sock))
		bearer.Zero()
	}
	if err != nil {
		s.metrics.failedRenewals.Inc()
		if _, custody := custodyName(err); custody {
			jwt.Zero()
			return nil, err
		}
		typedsocket.EraseRefusal(err)
		return jwt, nil
	}
	jwt.Zero()
	jwt, _, ok = a.identity.credential(s.cfg.Wall(), s.now())
	if !ok {
		return nil, typedsocket.ErrClosed
	}
	return jwt, nil
}
