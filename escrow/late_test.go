package escrow

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/typedsocket"
)

// R53, R54: an acknowledgement counts whatever has happened since the push, but for an
// end of custody: the slot is not pushed again. It counts for what was pushed alone.
func TestR53_R54_ALateAcknowledgementCounts(t *testing.T) {
	again := func(change spec) func(m *machine, t *testing.T) {
		return func(m *machine, t *testing.T) {
			m.registered(after(0))
			m.takes(t, change, 0)
		}
	}
	for name, row := range map[string]struct {
		meanwhile func(m *machine, t *testing.T) // between push and answer
		how       outcome
		before    func(m *machine, t *testing.T) // between answer and the next outage
		next      int64                          // what that begins with, 0 for nothing
	}{
		"Cloudly is back":                {again(spec{}), outcomeAcknowledged, nil, 0},
		"Cloudly is back and away":       {func(m *machine, _ *testing.T) { m.registered(after(0)); m.lost(after(0)) }, outcomeAcknowledged, nil, 0},
		"custody may be about to end":    {func(m *machine, _ *testing.T) { m.suspend(after(0)) }, outcomeAcknowledged, nil, 0},
		"the clock is not to be trusted": {func(m *machine, _ *testing.T) { m.tick(instant{begin.Add(-time.Hour), time.Second}) }, outcomeAcknowledged, nil, 0},
		"the node has no session": {func(m *machine, _ *testing.T) { m.unbound(after(0), "node-a") }, outcomeAcknowledged,
			again(spec{}), 0},
		"its run was emptied": {func(m *machine, t *testing.T) {
			m.registered(after(0))
			m.hold(after(0), grid(spec{}, begin, 0), nil)
		}, outcomeAcknowledged, again(spec{}), 0},

		"the run has gone on":              {again(spec{sequence: 2}), outcomeAcknowledged, nil, 2},
		"the run is of another projection": {again(spec{projection: projection("projection:1", 5)}), outcomeAcknowledged, nil, 1},
		"it answers another renewal":       {again(spec{}), outcomeForeign, nil, 1},
		"it refuses":                       {again(spec{}), outcomeRefused, nil, 1},
		"no answer comes":                  {again(spec{}), outcomeFailed, nil, 1},
		"custody has ended":                {func(m *machine, _ *testing.T) { m.drop(after(0), "relay-node-unknown") }, outcomeAcknowledged, again(spec{}), 1},
		"custody has ended and began anew": {func(m *machine, t *testing.T) { m.drop(after(0), "relay-node-unknown"); again(spec{})(m, t) }, outcomeAcknowledged, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := holding(t)
			m.lost(after(0))
			p := m.one(t, 0)
			row.meanwhile(m, t)
			m.ended(after(time.Second), p, row.how)
			if row.before != nil {
				row.before(m, t)
			}
			// The retry of one that was not taken is due by then.
			const then = time.Minute
			m.registered(after(then))
			m.lost(after(then))
			due := m.tick(after(then))
			got := int64(0)
			if len(due) == 1 {
				got = due[0].target.renewal.Sequence
			}
			if got != row.next || len(due) > 1 {
				t.Errorf("the next outage begins with %d, want %d", got, row.next)
			}
		})
	}
}

// R53, R54: on the way of a push, too, what the node acknowledges counts when Cloudly is
// back, lost again, or was meanwhile; but not behind the time that an answer has (contract
// O38), nor when custody has ended.
func TestR53_R54_AnAnswerIsWaitedForBehindTheReturn(t *testing.T) {
	for name, row := range map[string]struct {
		answer    func(context.Context, pushed) ([]byte, error)
		meanwhile func(r *rig)
		counts    bool
	}{
		"back":                  {late(3 * time.Second), func(r *rig) { r.SessionRegistered() }, true},
		"back and lost again":   {late(3 * time.Second), func(r *rig) { r.SessionRegistered(); time.Sleep(time.Second); r.SessionLost() }, true},
		"suspended for nothing": {late(10 * time.Second), func(r *rig) { r.Suspend() }, true},
		"just in time":          {late(pushWait - time.Millisecond), func(r *rig) { r.SessionRegistered() }, true},
		"too late":              {late(pushWait + time.Millisecond), func(r *rig) { r.SessionRegistered() }, false},
		"custody has ended":     {late(3 * time.Second), func(r *rig) { r.DropCustody("relay-node-unknown") }, false},
		"an answer bound to another": {func(ctx context.Context, p pushed) ([]byte, error) {
			p.renewal.Digest = markerDigest
			return late(3*time.Second)(ctx, p)
		}, func(r *rig) { r.SessionRegistered() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				r.attached("node-a")
				r.must(grid(spec{}, begin, 1))
				r.answering(row.answer)
				r.SessionLost()
				r.wantTaken("node-a 1 @00:00:00.000")
				time.Sleep(time.Second)
				row.meanwhile(r)
				time.Sleep(pushWait)
				r.wantTaken()
				r.answering(nil)
				r.SessionRegistered()
				r.Bound(bindingOf("node-a", 1))
				r.must(grid(spec{}, begin, 1))
				if got := r.node("node-a").Acknowledged; (got != nil) != row.counts {
					t.Errorf("the status shows %+v", r.node("node-a"))
				}
				time.Sleep(firstRetry)
				r.SessionLost()
				if row.counts {
					r.wantTaken()
				} else if n := len(r.taken()); n != 1 {
					t.Errorf("%d pushes follow", n)
				}
			})
		})
	}
}

// R51: a push that was recalled stands in the way of none. When another one is due, its
// answer is not waited for any more.
func TestR51_ARecalledPushStandsInNoWay(t *testing.T) {
	for name, row := range map[string]struct {
		change func(r *rig)
		want   string
	}{
		"the node has another session": {func(r *rig) { r.Bound(bindingOf("node-a", 2)) }, "node-a 1 @00:09:53.000"},
		"another projection":           {func(r *rig) { r.must(grid(spec{projection: projection("projection:1", 5)}, begin, 2)) }, "node-a 1 @00:09:53.000"},
		"the next slot":                {func(*rig) { time.Sleep(10 * time.Second) }, "node-a 2 @00:10:03.000"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				r.attached("node-a")
				r.must(grid(spec{}, begin, 2))
				r.answering(silent)
				time.Sleep(slotEvery - 9*time.Second)
				r.SessionLost()
				r.wantTaken("node-a 1 @00:09:51.000")
				time.Sleep(time.Second)
				r.SessionRegistered()
				r.Bound(bindingOf("node-a", 1)) // the answer to the registration, on the same socket
				r.must(grid(spec{}, begin, 2))
				r.answering(nil)
				time.Sleep(time.Second)
				row.change(r)
				r.SessionLost()
				r.wantTaken(row.want)
				if n := r.metrics.ended.Of(outcomeWithdrawn).Value(); n != 1 {
					t.Errorf("%d were withdrawn", n)
				}
			})
		})
	}
}

// R97: a drain does not wait for the answer of a push that was recalled.
func TestR97_ADrainDoesNotWaitForARecalledPush(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a")
		r.must(grid(spec{}, begin, 1))
		r.answering(silent)
		r.SessionLost()
		synctest.Wait()
		r.SessionRegistered()
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
		defer cancel()
		if err := r.Drain(ctx); err != nil || time.Since(start) != 0 {
			t.Errorf("drained after %s: %v", time.Since(start), err)
		}
	})
}

// R53, R54: on the wire an answer that comes behind Cloudly's return is told, shown and
// counted, and nothing leaves again; one that comes behind the end of custody is nothing. A
// late refusal is no news: nothing follows from it.
func TestR53_R54_ALateAnswerOnTheWire(t *testing.T) {
	acknowledges := acknowledgeRequest
	refuses := func(q *typedsocket.Request) { q.Refuse("renewal-sequence-lower", nil) }
	for name, test := range map[string]struct {
		answer  func(q *typedsocket.Request)
		dropped bool
		events  int
	}{
		"back":                       {acknowledges, false, 3},
		"custody has ended":          {acknowledges, true, 2},
		"refused, back":              {refuses, false, 2},
		"refused, custody has ended": {refuses, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, n := newWireRig(t)
				node := n.dial()
				node.serving(func(q *typedsocket.Request) { time.AfterFunc(3*time.Second, func() { test.answer(q) }) })
				r.attached()
				r.bind("node-a", node, 1)
				r.must(grid(spec{}, begin, 1))
				r.SessionLost()
				time.Sleep(time.Second)
				r.SessionRegistered()
				if test.dropped {
					r.DropCustody("relay-node-unknown")
				}
				time.Sleep(time.Minute)
				want := []string{"renewal-released node=node-a sequence=1 expiresAt=2000-01-01T00:15:00.000Z",
					"renewals-release-ended count=0 durationSeconds=1", "renewal-acknowledged node=node-a sequence=1 attempt=1"}[:test.events]
				if got := r.eventsOf(RenewalReleased, ReleaseEnded, RenewalAcknowledged, RenewalNotTaken); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("events %q, want %q", got, want)
				}
				if n := r.metrics.ended.Of(outcomeAcknowledged).Value(); (n == 1) != (test.events == 3) {
					t.Errorf("%d are counted as acknowledged", n)
				}
				if test.events < 3 {
					return
				}
				r.SessionLost()
				if n := len(node.requests()); n != 1 {
					t.Errorf("%d pushes reached the node", n)
				}
			})
		})
	}
}
