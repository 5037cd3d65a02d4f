package forward

import (
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
)

// outcome is how a request ended that was forwarded.
type outcome uint8

const (
	outcomeAnswered    outcome = iota // an answer without an error went back
	outcomeDeclined                   // an answer with an error, or one that asks for a retry
	outcomeTimedOut                   // no answer came in time
	outcomeLost                       // the socket it went out on ended first
	outcomeAbandoned                  // the socket it came on ended first
	outcomeWithheld                   // the answer was not one that may go back
	outcomeUndelivered                // the answer could not go back
	outcomes
)

func (o outcome) String() string {
	return [outcomes]string{
		outcomeAnswered: "answered", outcomeDeclined: "declined", outcomeTimedOut: "timed-out",
		outcomeLost: "lost", outcomeAbandoned: "abandoned", outcomeWithheld: "withheld", outcomeUndelivered: "undelivered",
	}[o]
}

// refusalName is a name this duty refuses with, as a label.
type refusalName uint8

const (
	refusedOther refusalName = iota // a mistake of this package
	refusedNotReady
	refusedNotCarried
	refusedNotCurrent
	refusedNotForwarded
	refusedCloudlyOnly
	refusedEscrowCloudlyOnly
	refusedOverloaded
	refusalNames
)

var refusalTexts = [refusalNames]contract.RefusalName{
	refusedOther:             "other",
	refusedNotReady:          contract.RelayNotReady,
	refusedNotCarried:        contract.RelayNodeNotCarried,
	refusedNotCurrent:        contract.RelayNodeSessionNotCurrent,
	refusedNotForwarded:      contract.RelayMethodNotForwarded,
	refusedCloudlyOnly:       contract.RelayCloudlyOnly,
	refusedEscrowCloudlyOnly: contract.EscrowCloudlyOnly,
	refusedOverloaded:        contract.RelayOverloaded,
}

func (r refusalName) String() string { return string(refusalTexts[r]) }

// labelOf returns the label of a name.
func labelOf(name contract.RefusalName) refusalName {
	for i, text := range refusalTexts {
		if text == name {
			return refusalName(i)
		}
	}
	return refusedOther
}

// departure is why a node lost its binding.
type departure uint8

const (
	departedItself   departure = iota // its socket ended
	departedMismatch                  // it registered again, and the answer was not one to hold
	departedRecalled                  // it has to register again since Cloudly's session is new
	departedCustody
	departedDrained
	departures
)

func (d departure) String() string {
	return [departures]string{
		departedItself: "socket-ended", departedMismatch: "answer-not-acceptable", departedRecalled: "recalled",
		departedCustody: "custody-ended", departedDrained: "drained",
	}[d]
}

type metrics struct {
	set       *duty.Metrics
	ended     *duty.By2[direction, outcome, duty.Counter]
	refused   *duty.By2[direction, refusalName, duty.Counter]
	bytes     *duty.By[direction, duty.Counter]
	waited    *duty.By[direction, duty.Seconds]
	accepted  *duty.By[acceptance, duty.Counter]
	unbound   *duty.By[departure, duty.Counter]
	inFlight  *duty.By[direction, duty.Gauge]
	heldBytes *duty.Gauge

	// Of the histogram of what frames spend inside, bound once: a method value
	// for each request would be an allocation on the forwarding path.
	requestInside, answerInside func(time.Duration)
}

// message is what travels, as a label.
type message uint8

const (
	aRequest message = iota
	anAnswer
	messages
)

func (k message) String() string { return [messages]string{"request", "answer"}[k] }

func (f *Forward) newMetrics() metrics {
	m := duty.NewMetrics(Name)
	count := func(of func() int) func() float64 {
		return func() float64 {
			f.mu.Lock()
			defer f.mu.Unlock()
			return float64(of())
		}
	}
	m.Func("relay_forward_bound_nodes", "Nodes that have a session here.", count(func() int { return len(f.table.bindings) }))
	m.Func("relay_forward_unconfirmed_nodes", "Nodes whose session is older than the one to Cloudly.", count(func() int { return f.table.unconfirmed() }))
	inside := duty.HistogramBy(m, "relay_forward_inside_seconds",
		"Time that a forwarded message spends inside the relay, from its last byte read to its frame written.", "message", messages)
	return metrics{
		set: m, requestInside: inside.Of(aRequest).Observe, answerInside: inside.Of(anAnswer).Observe,
		ended: duty.CounterBy2(m, "relay_forward_carried_requests_total", "Forwarded requests that have ended, by how.",
			"direction", directions, "outcome", outcomes),
		refused: duty.CounterBy2(m, "relay_forward_refused_requests_total", "Requests that did not pass, by the name of the refusal.",
			"direction", directions, "refusal", refusalNames),
		bytes: duty.CounterBy(m, "relay_forward_carried_bytes_total", "Bytes of forwarded requests and answers, by the direction they went.",
			"direction", directions),
		waited: duty.SecondsBy(m, "relay_forward_waited_seconds_total", "Time from forwarding a request to its end.",
			"direction", directions),
		accepted: duty.CounterBy(m, "relay_forward_accepted_registrations_total", "Registrations that Cloudly accepted, by what they changed.",
			"outcome", numAcceptances),
		unbound: duty.CounterBy(m, "relay_forward_unbound_nodes_total", "Nodes that lost their session here, by why.",
			"reason", departures),
		inFlight: duty.GaugeBy(m, "relay_forward_inflight_requests", "Forwarded requests that wait for an answer.",
			"direction", directions),
		heldBytes: m.Gauge("relay_forward_inflight_bytes", "Memory of the requests that wait for an answer, as it was when they were forwarded."),
	}
}

// Metrics returns what this duty counts.
func (f *Forward) Metrics() *duty.Metrics { return f.metrics.set }
