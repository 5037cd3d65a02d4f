package cloudly

import (
	"errors"
	"log/slog"
	"math/bits"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// The types of the session's events.
const (
	EventRegistered                duty.EventType = "cloudly-registered"
	EventSessionLost               duty.EventType = "cloudly-session-lost"
	EventAttemptFailed             duty.EventType = "cloudly-attempt-failed"
	EventRegistrationRefused       duty.EventType = "cloudly-registration-refused"
	EventProtocolRefused           duty.EventType = "cloudly-protocol-refused"
	EventCustodyEnded              duty.EventType = "cloudly-custody-ended"
	EventCredentialUnusable        duty.EventType = "cloudly-credential-unusable"
	EventCredentialChanged         duty.EventType = "cloudly-credential-changed"
	EventOriginChanged             duty.EventType = "cloudly-origin-changed"
	EventConfigurationUnrecognised duty.EventType = "cloudly-configuration-unrecognised"
	EventConfigurationFaulty       duty.EventType = "cloudly-configuration-faulty"
	EventPullFailed                duty.EventType = "cloudly-pull-failed"
	EventPullStuck                 duty.EventType = "cloudly-pull-stuck"
)

// EventKinds is the table of the session's events.
var EventKinds = []duty.EventKind{
	{Type: EventRegistered, Duty: Name, Level: slog.LevelInfo, Says: "Cloudly accepted a registration of this relay."},
	{Type: EventSessionLost, Duty: Name, Level: slog.LevelWarn, Says: "The registered session ended; the relay comes back by itself."},
	{Type: EventAttemptFailed, Duty: Name, Level: slog.LevelWarn, Says: "An attempt to have a session came to nothing; nextSeconds is the wait until the next. Published for the first failure of a row, for every other reason, and then for the 2nd, 4th, 8th and so on."},
	{Type: EventRegistrationRefused, Duty: Name, Level: slog.LevelWarn, Says: "A registration repeated on the standing session was refused or could not be sent; the session stays and the registration is tried again."},
	{Type: EventProtocolRefused, Duty: Name, Level: slog.LevelError, Says: "The two sides' releases do not go together. Upgrade one of them; the relay offers again every 300 seconds."},
	{Type: EventCustodyEnded, Duty: Name, Level: slog.LevelError, Says: "Cloudly does not dispatch to this relay, and everything held for its nodes was dropped. The refusal names what to put right."},
	{Type: EventCredentialUnusable, Duty: Name, Level: slog.LevelError, Says: "The credential file cannot be used. It must be a regular file of mode 0600 that holds exactly the exported bearer, without a line end."},
	{Type: EventCredentialChanged, Duty: Name, Level: slog.LevelInfo, Says: "The credential file holds another bearer than was presented."},
	{Type: EventOriginChanged, Duty: Name, Level: slog.LevelInfo, Says: "The cluster configuration states another relay origin than before; the relay registers anew."},
	{Type: EventConfigurationUnrecognised, Duty: Name, Level: slog.LevelWarn, Says: "A cluster configuration held no cluster document. It changed nothing."},
	{Type: EventConfigurationFaulty, Duty: Name, Level: slog.LevelWarn, Says: "Parts of a cluster configuration are not valid. An invalid relay block changed nothing; an invalid node endpoint counts as none."},
	{Type: EventPullFailed, Duty: Name, Level: slog.LevelWarn, Says: "A pull after a registration failed; it is tried again while the session stands."},
	{Type: EventPullStuck, Duty: Name, Level: slog.LevelError, Says: "A pull did not end when it was told to: a mistake in the relay."},
}

func (s *Session) publish(t duty.EventType, fields ...field.Field) {
	if s.cfg.Events != nil {
		s.cfg.Events.Publish(t, fields...)
	}
}

// telling reports whether the nth failure in a row is worth an event. An outage of
// a day has some 1,500 of them, which say no more than a dozen.
func telling(n int) bool { return bits.OnesCount(uint(n)) == 1 }

// narrate publishes what an event came to, where its effects have not.
func (s *Session) narrate(before state, m *mail) {
	after := s.state
	switch {
	case m.kind == evAccepted && after.accepted != before.accepted:
		s.publish(EventRegistered, field.Origin(m.answer.Origin), field.Sequence(m.answer.sequence),
			field.Generation(m.answer.Credential.Generation))
	case m.kind == evCredential:
		s.narrateCredential(m)
	case m.kind == evStated && before.document != "" && before.document != after.document:
		s.publish(EventOriginChanged, field.Origin(after.document))
	case before == after:
	case m.kind == evIncompatible:
		s.publish(EventProtocolRefused, field.Reason(m.refusal.Reason), field.Version(m.refusal.Refusing.InterfacesVersion))
	case after.phase == registered && after.postponed > before.postponed:
		if telling(after.postponed) {
			s.publish(EventRegistrationRefused, field.Reason(m.trouble.String()), field.Attempt(after.postponed))
		}
	case after.failures > before.failures:
		if telling(after.failures) || s.otherTrouble(m.trouble) {
			s.publish(EventAttemptFailed, field.Reason(m.trouble.String()), field.Error(m.err), closeCodeOf(m.err),
				field.Attempt(after.failures), field.Next(after.wakeAt-s.now()))
		}
	}
	if after.failures > before.failures {
		s.told = m.trouble
	}
}

func (s *Session) otherTrouble(t trouble) bool { return s.told != t }

func (s *Session) narrateCredential(m *mail) {
	switch {
	case m.unusual != nil:
		s.publish(EventCredentialUnusable, field.Error(m.unusual))
	case m.fresh && s.state.accepted > 0:
		s.publish(EventCredentialChanged)
	}
}

// closeCodeOf says the close code of a socket that ended.
func closeCodeOf(err error) field.Field {
	var end *typedsocket.EndError
	if !errors.As(err, &end) {
		return field.Field{}
	}
	return field.CloseCode(end.Code)
}

// methodOf returns the method of a call that failed, as the relay calls it.
func methodOf(err error) string {
	if refused := (*typedsocket.RemoteError)(nil); errors.As(err, &refused) {
		return refused.Method
	}
	if late := (*typedsocket.TimeoutError)(nil); errors.As(err, &late) {
		return late.Method
	}
	if invalid := (*typedsocket.AnswerError)(nil); errors.As(err, &invalid) {
		return invalid.Method
	}
	return ""
}
