package cloudly

import (
	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket"
)

// metrics are what the session counts.
type metrics struct {
	set            *duty.Metrics
	attempts       *duty.Counter
	failures       *duty.By[trouble, duty.Counter]
	accepted       *duty.Counter
	lost           *duty.Counter
	custody        *duty.By[custodyLabel, duty.Counter]
	pushes         *duty.By[pushOutcome, duty.Counter]
	turnedAway     *duty.By[turned, duty.Counter]
	failedPulls    *duty.Counter
	stuckPulls     *duty.Counter
	failedRenewals *duty.Counter
}

// custodyLabel is one of the five names as a label.
type custodyLabel uint8

const numCustodyLabels = 5

func (l custodyLabel) String() string { return string(contract.UndispatchedRefusals().Names()[l]) }

func custodyLabelOf(name contract.RefusalName) custodyLabel {
	for i, known := range contract.UndispatchedRefusals().Names() {
		if known == name {
			return custodyLabel(i)
		}
	}
	return 0
}

// turned is why a request of Cloudly was not served.
type turned uint8

const (
	turnedNotReady turned = iota
	turnedOverloaded
	numTurned
)

var turnedNames = [numTurned]contract.RefusalName{turnedNotReady: contract.RelayNotReady, turnedOverloaded: contract.RelayOverloaded}

func (t turned) String() string { return string(turnedNames[t]) }

func (s *Session) newMetrics() metrics {
	m := duty.NewMetrics(Name)
	m.Func("relay_cloudly_registered_sessions", "Sessions that stand: 1 or 0.", func() float64 {
		if s.peek().phase.stands() {
			return 1
		}
		return 0
	})
	m.Func("relay_cloudly_state_age_seconds", "How long the session has been registered, or has not been.", func() float64 {
		return s.cfg.Wall().Sub(s.peek().turned).Seconds()
	})
	m.Func("relay_cloudly_next_attempt_seconds", "Time until the next attempt or registration; 0 when none is awaited.", func() float64 {
		return s.untilNext(s.peek()).Seconds()
	})
	duty.FuncBy(m, "relay_cloudly_carrier_events_total", "What the carrier met on sockets to Cloudly, those that have ended among them.",
		"event", typedsocket.Counts, func(c typedsocket.Count) float64 { return float64(s.count(c)) })
	return metrics{
		set:            m,
		attempts:       m.Counter("relay_cloudly_attempts_started_total", "Attempts to have a session."),
		failures:       duty.CounterBy(m, "relay_cloudly_attempts_failed_total", "Attempts and registrations that came to nothing, and sessions that were lost.", "reason", numTroubles),
		accepted:       m.Counter("relay_cloudly_registrations_accepted_total", "Accepted registrations."),
		lost:           m.Counter("relay_cloudly_sessions_lost_total", "Registered sessions that ended."),
		custody:        duty.CounterBy(m, "relay_cloudly_custody_ended_total", "Ends of custody.", "refusal", custodyLabel(numCustodyLabels)),
		pushes:         duty.CounterBy(m, "relay_cloudly_configuration_pushes_total", "Configuration pushes of Cloudly.", "outcome", numPushOutcomes),
		turnedAway:     duty.CounterBy(m, "relay_cloudly_requests_refused_total", "Requests of Cloudly that came when no session stood, or too many before one did.", "refusal", numTurned),
		failedPulls:    m.Counter("relay_cloudly_pulls_failed_total", "Pulls that failed and are tried again."),
		stuckPulls:     m.Counter("relay_cloudly_pulls_stuck_total", "Pulls that did not end when they were told to."),
		failedRenewals: m.Counter("relay_cloudly_identity_exchanges_failed_total", "Exchanges of an ageing identity that failed."),
	}
}

// Metrics returns what the session counts.
func (s *Session) Metrics() *duty.Metrics { return s.metrics.set }
