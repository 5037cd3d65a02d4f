package ingress

import (
	"context"
	"errors"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket"
)

// registrationEnd is how a registration ended.
type registrationEnd uint8

const (
	registrationAccepted     registrationEnd = iota
	registrationDeclined                     // Cloudly answered with an error
	registrationPostponed                    // Cloudly asked for a later one
	registrationUnanswered                   // no answer came in time
	registrationMisanswered                  // what came was no answer to a registration
	registrationVoid                         // it was accepted too late to hold anything
	registrationAbandoned                    // its socket ended before the answer
	registrationNotReady                     // there was no session to Cloudly
	registrationOverloaded                   // too many were in flight
	registrationInvalid                      // its body broke a rule
	registrationIncompatible                 // its offer did not go with the relay's
	registrationForeign                      // its socket has another role
	registrationEnds                         // how many there are
)

var registrationEndNames = [registrationEnds]string{
	registrationAccepted: "accepted", registrationDeclined: "declined", registrationPostponed: "postponed",
	registrationUnanswered: "unanswered", registrationMisanswered: "misanswered", registrationVoid: "void",
	registrationAbandoned: "abandoned", registrationNotReady: "not-ready", registrationOverloaded: "overloaded",
	registrationInvalid: "invalid", registrationIncompatible: "incompatible", registrationForeign: "foreign",
}

// String returns the name of the end.
func (e registrationEnd) String() string { return registrationEndNames[e] }

// reason is the name by which Cloudly refused a registration, as a label.
type reason uint8

const (
	reasonUnnamed reason = iota // no refusal that the contract knows
	reasonIncompatible
	reasonFirst // the reasons of the contract, in judging order
	reasons     = reasonFirst + 8
)

var reasonTexts = func() (texts [reasons]contract.RefusalName) {
	texts[reasonUnnamed] = "unnamed"
	texts[reasonIncompatible] = contract.RefusalName(contract.ProtocolRefusal{}.LogName())
	copy(texts[reasonFirst:], contract.IngressRegistrationReasons().Names())
	return texts
}()

// String returns the name.
func (r reason) String() string { return string(reasonTexts[r]) }

// reasonNamed returns the label of a name.
func reasonNamed(name contract.RefusalName) reason {
	for r, text := range reasonTexts {
		if text == name {
			return reason(r)
		}
	}
	return reasonUnnamed
}

// tableEnd is what became of a table that was pushed or pulled.
type tableEnd uint8

const (
	tableApplied    tableEnd = iota
	tableStale               // its revision was not greater than the one held
	tableNull                // Cloudly has computed none yet
	tableInvalid             // it broke a rule
	tableNotReady            // custody had ended, or it came over another socket than the session's
	tableOverloaded          // too many waited to be judged
	tableUnanswered          // the pull was not answered with one
	tableEnds                // how many there are
)

var tableEndNames = [tableEnds]string{
	tableApplied: "applied", tableStale: "stale", tableNull: "null", tableInvalid: "invalid",
	tableNotReady: "not-ready", tableOverloaded: "overloaded", tableUnanswered: "unanswered",
}

// String returns the name of the end.
func (e tableEnd) String() string { return tableEndNames[e] }

// servedEnd is what an ingress that asked for the table was answered.
type servedEnd uint8

const (
	servedTable      servedEnd = iota
	servedNone                 // that there is none yet
	servedForeign              // that its socket is no registered ingress
	servedNotReady             // that custody ends, or the relay stops
	servedInvalid              // that its request broke a rule
	servedOverloaded           // that it has to read earlier answers first
	servedEnds                 // how many there are
)

var servedEndNames = [servedEnds]string{
	servedTable: "table", servedNone: "none", servedForeign: "foreign", servedNotReady: "not-ready",
	servedInvalid: "invalid", servedOverloaded: "overloaded",
}

// String returns the name of the answer.
func (e servedEnd) String() string { return servedEndNames[e] }

// hintEnd is what became of a hint.
type hintEnd uint8

const (
	hintAnswered hintEnd = iota
	hintRefused
	hintUnanswered
	hintLost // its socket ended
	hintEnds // how many there are
)

var hintEndNames = [hintEnds]string{
	hintAnswered: "answered", hintRefused: "refused", hintUnanswered: "unanswered", hintLost: "lost",
}

// String returns the name of the end.
func (e hintEnd) String() string { return hintEndNames[e] }

// hintEndOf tells how a hint ended.
func hintEndOf(err error) hintEnd {
	var refused *typedsocket.RemoteError
	switch {
	case err == nil:
		return hintAnswered
	case errors.As(err, &refused):
		return hintRefused
	case errors.Is(err, typedsocket.ErrClosed), errors.Is(err, context.Canceled):
		return hintLost
	}
	return hintUnanswered
}

// trafficEnd is what Cloudly was answered that asked for counters.
type trafficEnd uint8

const (
	trafficAnswered    trafficEnd = iota
	trafficInvalid                // that its request broke a rule
	trafficNotReady               // that custody ends, or the relay stops
	trafficNone                   // that no ingress is registered
	trafficOverloaded             // that too many questions wait
	trafficPageInvalid            // that an ingress's page broke a rule
	trafficDeclined               // the error of an ingress
	trafficUnanswered             // that an ingress gave no answer
	trafficLeft                   // that an ingress left while it was asked
	trafficEnds                   // how many there are
)

var trafficEndNames = [trafficEnds]string{
	trafficAnswered: "answered", trafficInvalid: "invalid", trafficNotReady: "not-ready", trafficNone: "no-ingress",
	trafficOverloaded: "overloaded", trafficPageInvalid: "page-invalid", trafficDeclined: "declined",
	trafficUnanswered: "unanswered", trafficLeft: "ingress-left",
}

// String returns the name of the answer.
func (e trafficEnd) String() string { return trafficEndNames[e] }

type metrics struct {
	set           *duty.Metrics
	registrations *duty.By[registrationEnd, duty.Counter]
	accepted      *duty.By[acceptance, duty.Counter]
	declined      *duty.By[reason, duty.Counter]
	tables        *duty.By2[origin, tableEnd, duty.Counter]
	served        *duty.By[servedEnd, duty.Counter]
	servedBytes   *duty.Counter
	hints         *duty.By[hintEnd, duty.Counter]
	traffic       *duty.By[trafficEnd, duty.Counter]
}

func (i *Ingress) newMetrics() metrics {
	m := duty.NewMetrics(Name)
	locked := func(read func() float64) func() float64 {
		return func() float64 {
			i.mu.Lock()
			defer i.mu.Unlock()
			return read()
		}
	}
	m.Func("relay_ingress_registered_ingresses", "Ingresses that are registered.",
		locked(func() float64 { return float64(len(i.roles.holders)) }))
	m.Func("relay_ingress_table_revision", "Revision of the route table that is held, 0 for none.",
		locked(func() float64 { return float64(revisionOf(i.table)) }))
	m.Func("relay_ingress_table_bytes", "Size of the route table that is held, encoded.",
		locked(func() float64 { return float64(i.table.bytes()) }))
	return metrics{
		set: m,
		registrations: duty.CounterBy(m, "relay_ingress_ended_registrations_total", "Registrations of ingresses, by how they ended.",
			"outcome", registrationEnds),
		accepted: duty.CounterBy(m, "relay_ingress_accepted_registrations_total", "Accepted registrations, by what they changed.",
			"outcome", acceptances),
		declined: duty.CounterBy(m, "relay_ingress_declined_registrations_total", "Registrations that Cloudly refused, by its reason.",
			"reason", reasons),
		tables: duty.CounterBy2(m, "relay_ingress_received_tables_total", "Route tables that Cloudly pushed or was asked for, by what became of them.",
			"origin", origins, "outcome", tableEnds),
		served: duty.CounterBy(m, "relay_ingress_served_tables_total", "Requests for the route table, by what they were answered.",
			"outcome", servedEnds),
		servedBytes: m.Counter("relay_ingress_served_bytes_total", "Bytes of route tables that were answered."),
		hints:       duty.CounterBy(m, "relay_ingress_sent_hints_total", "Hints of a newer table, by how they ended.", "outcome", hintEnds),
		traffic: duty.CounterBy(m, "relay_ingress_traffic_requests_total", "Requests of Cloudly for traffic counters, by what they were answered.",
			"outcome", trafficEnds),
	}
}

// Metrics returns what this duty counts.
func (i *Ingress) Metrics() *duty.Metrics { return i.metrics.set }
