package ingress

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// TestManyAtOnce: ingresses that come, ask and go, tables, counters, losses and ends
// of custody all at once; whoever is answered a table was registered in the custody
// that the table came in, and at the end nothing is left.
func TestManyAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		cloud.on(registerMethod, func(q *typedsocket.Request) {
			switch rand.IntN(4) {
			case 0:
				q.Refuse("x", []byte(ownData(contract.IngressConflict)))
			default:
				q.Answer([]byte(acceptedText))
			}
		})
		// Revisions tell custodies apart: a thousand belong to each.
		var mu sync.Mutex
		custody, revision := 1, 0
		next := func() int64 { mu.Lock(); defer mu.Unlock(); revision++; return int64(custody*1000 + revision) }
		now := func() int64 { mu.Lock(); defer mu.Unlock(); return int64(custody) }
		cloud.on(pullMethod, func(q *typedsocket.Request) { q.Answer([]byte(pushOf(tableOf(next(), "k")))) })
		stop := make(chan struct{})
		var all sync.WaitGroup
		often := func(every time.Duration, do func()) {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Duration(rand.Int64N(int64(every)))):
						do()
					}
				}
			})
		}
		for n := range 6 {
			node := fmt.Sprintf("node-%d", n%4)
			often(4*time.Millisecond, func() {
				p := r.node()
				p.on(hintMethod, func(q *typedsocket.Request) { q.Answer([]byte("{}")) })
				p.pages(node, 3)
				since := now()
				if a := p.ask(registerMethod, registrationOf(node, "b")); a.err == nil {
					for range 3 {
						time.Sleep(time.Millisecond)
						a := p.ask(tableMethod, `{"knownRevision":null}`)
						if a.err != nil {
							continue
						}
						read, err := contract.ReadRouteTableAnswer(tableMethod, []byte(a.body))
						if err != nil {
							t.Error(err)
						} else if got := revisionIn(read); got != 0 && got/1000 < since {
							t.Errorf("registered in custody %d, answered the table %d", since, got)
						}
					}
				}
				p.own.Cut(typedsocket.CloseNormal, "")
			})
		}
		often(2*time.Millisecond, func() { cloud.ask(pushMethod, pushOf(tableOf(next(), "k"))) })
		often(5*time.Millisecond, func() { r.Pull(t.Context(), cloud.relay) })
		often(5*time.Millisecond, func() { cloud.ask(trafficMethod, questionOf(nil)) })
		often(15*time.Millisecond, func() {
			switch rand.IntN(3) {
			case 0:
				r.SessionLost()
			case 1:
				r.Suspend(cloud.relay)
				r.SessionLost()
			default:
				r.Suspend(cloud.relay)
				mu.Lock()
				custody, revision = custody+1, 0
				mu.Unlock()
				r.DropCustody("relay-node-unknown")
			}
			time.Sleep(time.Millisecond)
			r.SessionRegistered(cloud.relay)
		})
		often(3*time.Millisecond, func() { r.shown() })
		time.Sleep(200 * time.Millisecond)
		close(stop)
		all.Wait()
		synctest.Wait()
		if s := r.status(); len(s.Ingresses) != 0 || s.InFlight != (InFlight{}) || r.known() != 0 {
			t.Errorf("%+v, %d sockets", s, r.known())
		}
		if m := r.metrics; m.served.Of(servedTable).Value() == 0 || m.traffic.Of(trafficAnswered).Value() == 0 || m.hints.Of(hintAnswered).Value() == 0 {
			t.Errorf("%d tables served, %d pages, %d hints", m.served.Of(servedTable).Value(), m.traffic.Of(trafficAnswered).Value(), m.hints.Of(hintAnswered).Value())
		}
		r.DropCustody("relay-node-unknown")
		if r.status().Table != nil || r.serving != 0 {
			t.Errorf("%+v", r.status())
		}
	})
}
