package escrow

import (
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
)

// holdOutcome is how a hold was answered, as a label.
type holdOutcome uint8

const (
	holdOther holdOutcome = iota // a mistake of this package
	holdReplaced
	holdEmptied
	holdInvalid
	holdNotCarried
	holdForeign
	holdStale
	holdUnordered
	holdCloudlyOnly
	holdOverloaded
	holdNotReady
	holdOutcomes
)

var holdNames = [holdOutcomes]contract.RefusalName{
	holdOther: "other", holdReplaced: "replaced", holdEmptied: "emptied",
	holdInvalid: contract.EscrowRunInvalid, holdNotCarried: contract.EscrowNodeNotCarried,
	holdForeign: contract.EscrowRunForeignSession, holdStale: contract.EscrowRunStale,
	holdUnordered: contract.EscrowRunUnordered, holdCloudlyOnly: contract.EscrowCloudlyOnly,
	holdOverloaded: contract.RelayOverloaded, holdNotReady: contract.RelayNotReady,
}

func (h holdOutcome) String() string { return string(holdNames[h]) }

type metrics struct {
	set    *duty.Metrics
	holds  *duty.By[holdOutcome, duty.Counter]
	pushes *duty.Counter
	ended  *duty.By[outcome, duty.Counter]
}

func (e *Escrow) newMetrics() metrics {
	m := duty.NewMetrics(Name)
	shown := func(of func(m *machine, at instant) float64) func() float64 {
		return func() float64 {
			e.mu.Lock()
			defer e.mu.Unlock()
			return of(e.machine, e.now())
		}
	}
	m.Func("relay_escrow_held_runs", "Nodes for which renewals are held.", shown(func(m *machine, _ instant) float64 {
		runs, _ := m.counts()
		return float64(runs)
	}))
	m.Func("relay_escrow_held_bytes", "Memory of the records that are held.", shown(func(m *machine, _ instant) float64 { return float64(m.held) }))
	m.Func("relay_escrow_unreachable_nodes", "Nodes for which renewals are held and that have no session here.",
		shown(func(m *machine, at instant) float64 { return float64(m.coverage(milliseconds(at.wall)).unreachable) }))
	m.Func("relay_escrow_uncovered_nodes", "Nodes that are carried and for which no renewal is held whose window has not ended.",
		shown(func(m *machine, at instant) float64 {
			c := m.coverage(milliseconds(at.wall))
			return float64(c.bare + c.ended)
		}))
	m.Func("relay_escrow_coverage_seconds", "Time until the coverage of the first node ends; 0 when none is covered.",
		shown(func(m *machine, at instant) float64 {
			first := m.coverage(milliseconds(at.wall)).first
			if first.IsZero() {
				return 0
			}
			return max(first.Sub(at.wall), 0).Seconds()
		}))
	m.Func("relay_escrow_suspect_clocks", "1 while the wall clock is not trusted, else 0.", shown(func(m *machine, _ instant) float64 {
		if m.clock.suspect {
			return 1
		}
		return 0
	}))
	return metrics{
		set: m,
		holds: duty.CounterBy(m, "relay_escrow_answered_holds_total", "Holds of Cloudly, by how they were answered: replaced, emptied or the name of the refusal.",
			"outcome", holdOutcomes),
		pushes: m.Counter("relay_escrow_pushed_renewals_total", "Pushes of renewals to nodes."),
		ended: duty.CounterBy(m, "relay_escrow_ended_pushes_total", "Pushes of renewals that have ended, by how.",
			"outcome", outcomes),
	}
}

// Metrics returns what this duty counts.
func (e *Escrow) Metrics() *duty.Metrics { return e.metrics.set }

// refusals remembers when a refusal of holds was last an event, so that it is one
// only from time to time.
type refusals [holdOutcomes]struct {
	at    time.Duration // monotonic
	told  bool
	since uint64 // refused since
}

// count counts a refusal and returns how many to tell of, 0 for not now.
func (r *refusals) count(h holdOutcome, now time.Duration) uint64 {
	x := &r[h]
	x.since++
	if x.told && now-x.at < tellEvery {
		return 0
	}
	n := x.since
	x.at, x.told, x.since = now, true, 0
	return n
}
