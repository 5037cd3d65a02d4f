package ingress

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket"
)

// R20–R24: an end of custody leaves nothing: the table is gone, roles are gone, sockets
// are cut, nothing is in flight, and the next custody starts empty.
func TestR20_AnEndOfCustodyLeavesNothing(t *testing.T) {
	for _, name := range contract.UndispatchedRefusals().Names() {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			cloud := r.cloudly()
			p, silent, waiting := r.ingress(cloud, "node-a"), r.node(), r.node()
			r.register(cloud, silent, "node-b")
			r.push(cloud, tableOf(5, "k"))
			hint := silent.next(hintMethod)
			traffic := cloud.start(trafficMethod, questionOf(nil))
			p.next(trafficMethod).Drop()
			declined := waiting.start(registerMethod, registrationOf("node-c", "b"))
			cloud.next(registerMethod).Refuse("x", []byte(ownData(contract.IngressConflict)))
			<-declined
			registration := waiting.start(registerMethod, registrationOf("node-c", "b"))
			cloud.next(registerMethod).Drop()

			r.Suspend(cloud.relay)
			r.DropCustody(string(name))
			if s := r.status(); s.Attached || s.Table != nil || len(s.Ingresses) != 0 || s.InFlight != (InFlight{}) || s.LastRefusal != nil {
				t.Errorf("%+v", s)
			}
			if got := r.known(); got != 0 {
				t.Errorf("%d sockets are known", got)
			}
			for _, p := range []*remote{p, silent, waiting} {
				if end, _ := p.relay.Err().(*typedsocket.EndError); end == nil || end.Code != typedsocket.CloseCustodyEnded {
					t.Errorf("a socket: %v", p.relay.Err())
				}
			}
			refusedWith(t, <-traffic, contract.RelayNotReady)
			if a := <-registration; a.err == nil {
				t.Errorf("the registration was answered %s", a.body)
			}
			hint.Drop()
			if got := fmt.Sprint(r.told(IngressesDropped, IngressLeft)); got != "[ingresses-dropped count=2 revision=5 reason="+string(name)+"]" {
				t.Error(got)
			}
			refusedWith(t, cloud.ask(pushMethod, pushOf(tableOf(9, "k"))), contract.RelayNotReady)

			r.SessionRegistered(cloud.relay)
			p = r.ingress(cloud, "node-a")
			if a := p.ask(tableMethod, `{"knownRevision":null}`); a.body != `{"table":null}` {
				t.Errorf("%.300s, %v", a.body, a.err)
			}
			if got := r.push(cloud, tableOf(1, "k")); got != 1 {
				t.Errorf("the first table of the new custody is answered %d", got)
			}
		})
	}
}

// R25: losses, registrations and suspensions without a drop keep table and roles, and
// the ingress still pulls.
func TestR25_WhatIsNoEndOfCustodyKeepsAll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		p := r.ingress(cloud, "node-a")
		r.push(cloud, tableOf(5, "k"))
		for _, step := range []func(){
			r.SessionLost, func() { r.SessionRegistered(cloud.relay) }, func() { r.SessionRegistered(cloud.relay) },
			func() { r.Suspend(p.relay) }, // of another socket
			func() { r.Suspend(cloud.relay); r.SessionLost() },
			func() { cloud = r.cloudly() },
			func() { r.Suspend(cloud.relay); r.SessionRegistered(cloud.relay) },
		} {
			step()
			if s := r.status(); s.Table == nil || len(s.Ingresses) != 1 {
				t.Fatalf("%+v", s)
			}
			if a := p.ask(tableMethod, `{"knownRevision":null}`); a.err != nil {
				t.Fatal(a.err)
			}
		}
	})
}

// TestSuspendBeginsNothingMore: between the refusal and the drop no table, hint,
// registration or counter leaves.
func TestSuspendBeginsNothingMore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, q := r.cloudly(), r.node()
		p := r.ingress(cloud, "node-a")
		r.register(cloud, q, "node-b")
		r.push(cloud, tableOf(1, "k"))
		first := q.next(hintMethod)
		r.push(cloud, tableOf(2, "k")) // to be told when the first was answered
		traffic := cloud.start(trafficMethod, questionOf(nil))
		page := p.next(trafficMethod)

		r.Suspend(cloud.relay)
		refusedWith(t, p.ask(tableMethod, `{"knownRevision":null}`), contract.RelayNotReady)
		declinedWith(t, p.ask(registerMethod, registrationOf("node-a", "b")), ownData(contract.IngressNotReady))
		refusedWith(t, cloud.ask(pushMethod, pushOf(tableOf(3, "k"))), contract.RelayNotReady)
		refusedWith(t, cloud.ask(trafficMethod, questionOf(nil)), contract.RelayNotReady)
		first.Answer([]byte("{}"))
		page.Answer([]byte(`{"statistics":[` + bucket("node-a", "2026-11-30") + `]}`))
		refusedWith(t, <-traffic, contract.RelayNotReady)
		if err := r.pull(cloud, pushOf(tableOf(4, "k"))); !errors.Is(err, errOver) {
			t.Errorf("a pull: %v", err)
		}
		if got := len(q.hints()); got != 1 {
			t.Errorf("%d hints", got)
		}
		if got := len(p.got(trafficMethod)); got != 1 {
			t.Errorf("it was asked for %d pages", got)
		}
		r.DropCustody("relay-node-unknown")
	})
}

// R20: in an outage a name that ends custody is read on a socket of which nothing was
// told yet. The table is kept back as long as a drop takes to follow, and no longer.
func TestR20_SuspendInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		p := r.ingress(cloud, "node-a")
		r.push(cloud, tableOf(5, "k"))
		r.SessionLost()
		r.Suspend(nil)
		refusedWith(t, p.ask(tableMethod, `{"knownRevision":null}`), contract.RelayNotReady)
		time.Sleep(suspendWait - 1)
		refusedWith(t, p.ask(tableMethod, `{"knownRevision":null}`), contract.RelayNotReady)
		time.Sleep(time.Nanosecond)
		if a := p.ask(tableMethod, `{"knownRevision":null}`); a.err != nil {
			t.Errorf("no drop followed: %v", a.err)
		}
	})
}

// TestARegistrationThatIsQueuedIsTakenBack: when DropCustody has returned, what
// waits to be written to Cloudly is not.
func TestARegistrationThatIsQueuedIsTakenBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		p := r.node()
		// A socket to Cloudly that is not read: what is queued behind the first
		// frame stays queued.
		cloud, dead := r.stuck()
		r.SessionRegistered(cloud)
		filler := make(chan error, 1)
		go func() {
			_, err := cloud.Call(context.Background(), "filler", []byte(`{"x":"`+strings.Repeat("x", 1<<20)+`"}`), typedsocket.CallOptions{Timeout: time.Hour})
			filler <- err
		}()
		synctest.Wait()
		c := p.start(registerMethod, registrationOf("node-a", "b"))
		synctest.Wait()
		if got := cloud.Stats().QueuedFlow; got == 0 {
			t.Fatal("nothing is queued")
		}
		r.DropCustody("relay-node-unknown")
		if got := cloud.Stats(); got.QueuedFlow != 0 || got.Dropped != 1 {
			t.Errorf("queued %d, dropped %d", got.QueuedFlow, got.Dropped)
		}
		if a := <-c; a.err == nil {
			t.Errorf("answered %s", a.body)
		}
		dead()
		<-filler
	})
}

// R20: a page of counters that waits to be written to Cloudly when custody ends is
// taken back, though Cloudly's socket stays. Cloudly is told that it has none.
func TestR20_CountersThatAreQueuedAreTakenBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		p := r.ingress(cloud, "node-a")
		p.on(trafficMethod, func(q *typedsocket.Request) {
			q.Answer([]byte(`{"statistics":[` + bucket("node-a", "2026-11-30") + `]}`))
		})
		// Cloudly does not read until it is let: the first large frame is half
		// written, and the page waits behind it.
		block := make(chan struct{})
		cloud.on("filler", func(q *typedsocket.Request) { <-block; q.Drop() })
		for range 2 {
			go cloud.relay.Call(context.Background(), "filler", []byte(`{"x":"`+strings.Repeat("x", 1<<20)+`"}`), typedsocket.CallOptions{Timeout: time.Hour})
			synctest.Wait()
		}
		asked := cloud.start(trafficMethod, questionOf(nil))
		synctest.Wait()
		if got := cloud.relay.Stats().QueuedFlow; got == 0 {
			t.Error("nothing is queued")
		}
		r.DropCustody("relay-node-unknown")
		close(block)
		if a := <-asked; a.err == nil {
			t.Errorf("the counters left: %s", a.body)
		}
	})
}

// stuck connects a Cloudly that never reads, and returns the relay's end of it.
func (r *rig) stuck() (relay *typedsocket.Socket, end func()) {
	r.t.Helper()
	cloud := r.dial(r.far, r.ups)
	block := make(chan struct{})
	cloud.on("filler", func(q *typedsocket.Request) { <-block; q.Drop() })
	go cloud.relay.Call(context.Background(), "filler", nil, typedsocket.CallOptions{})
	synctest.Wait()
	return cloud.relay, func() { close(block); cloud.own.Cut(typedsocket.CloseNormal, ""); <-cloud.relay.Done() }
}

// TestATableThatIsQueuedIsNotSent: an ingress that does not read its table has got
// no byte more of it when DropCustody has returned.
func TestATableThatIsQueuedIsNotSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		p := r.ingress(cloud, "node-a")
		block := make(chan struct{})
		p.on(hintMethod, func(q *typedsocket.Request) { <-block; q.Drop() })
		r.push(cloud, tableOf(5, strings.Repeat("k", 1<<20)))
		synctest.Wait()
		a := p.start(tableMethod, `{"knownRevision":null}`)
		synctest.Wait()
		r.DropCustody("relay-node-unknown")
		close(block)
		if got := <-a; got.err == nil {
			t.Errorf("%d bytes came", len(got.body))
		}
	})
}

// TestBoundOfPushes: tables do not pile up while one is judged.
func TestBoundOfPushes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		r.Ingress.mu.Lock()
		r.judging = true // somebody judges, and takes his time
		r.Ingress.mu.Unlock()
		var waiting []<-chan answered
		for n := range maxPushes {
			waiting = append(waiting, cloud.start(pushMethod, pushOf(tableOf(int64(n+1), "k"))))
			synctest.Wait()
		}
		if got := r.status().InFlight.Tables; got != maxPushes+1 {
			t.Errorf("%d tables", got)
		}
		refusedWith(t, cloud.ask(pushMethod, pushOf(tableOf(9, "k"))), contract.RelayOverloaded)
		r.judgePushes()
		for n, c := range waiting {
			if a := <-c; a.body != fmt.Sprintf(`{"appliedRevision":%d}`, n+1) {
				t.Errorf("%s, %v", a.body, a.err)
			}
		}
		r.push(cloud, tableOf(9, "k"))
	})
}

// TestAPushOfAnEarlierCustodyIsNotTaken, although it was waiting.
func TestAPushOfAnEarlierCustodyIsNotTaken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		r.Ingress.mu.Lock()
		r.judging = true
		r.Ingress.mu.Unlock()
		c := cloud.start(pushMethod, pushOf(tableOf(3, "k")))
		synctest.Wait()
		r.DropCustody("relay-node-unknown")
		refusedWith(t, <-c, contract.RelayNotReady) // at once
		r.SessionRegistered(cloud.relay)

		c = cloud.start(pushMethod, pushOf(tableOf(3, "k")))
		synctest.Wait()
		r.Ingress.mu.Lock()
		x := r.pushes[0]
		r.pushes = nil
		r.Ingress.mu.Unlock()
		r.DropCustody("relay-node-unknown")
		r.SessionRegistered(cloud.relay)
		r.judgePush(x) // which was begun before
		refusedWith(t, <-c, contract.RelayNotReady)
		if r.status().Table != nil {
			t.Error("a table is held")
		}
		r.judgePushes()
	})
}

// TestAnIngressThatDoesNotReadKeepsItsSocket: it is refused a table as long as there
// would be no room for one, instead of losing the socket for it.
func TestAnIngressThatDoesNotReadKeepsItsSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		p := r.ingress(cloud, "node-a")
		r.push(cloud, tableOf(5, strings.Repeat("k", 3<<20))) // 6 MiB
		block := make(chan struct{})
		p.on(tableMethod, func(q *typedsocket.Request) { <-block; q.Drop() })
		go p.relay.Call(context.Background(), tableMethod, nil, typedsocket.CallOptions{})
		synctest.Wait()
		var waiting []<-chan answered
		for range 6 {
			waiting = append(waiting, p.start(tableMethod, `{"knownRevision":null}`))
			synctest.Wait()
		}
		if p.relay.Err() != nil || r.metrics.served.Of(servedOverloaded).Value() == 0 {
			t.Errorf("%v, %d refused", p.relay.Err(), r.metrics.served.Of(servedOverloaded).Value())
		}
		close(block)
		served := 0
		for _, c := range waiting {
			a := <-c
			if a.err == nil {
				served++
				continue
			}
			if got := refusedWith(t, a, contract.RelayOverloaded); got != "answers before this one were not read" {
				t.Error(got)
			}
		}
		if served == 0 || uint64(served) != r.metrics.served.Of(servedTable).Value() {
			t.Errorf("%d served", served)
		}
		if a := p.ask(tableMethod, `{"knownRevision":null}`); a.err != nil {
			t.Error(a.err)
		}
	})
}

// TestDrain waits for what is in flight, and gives hints up.
func TestDrain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, p := r.cloudly(), r.node()
		r.register(cloud, p, "node-a")
		r.push(cloud, tableOf(1, "k"))
		p.next(hintMethod).Drop()
		registration := p.start(registerMethod, registrationOf("node-a", "b"))
		q := cloud.next(registerMethod)
		drained := make(chan error, 1)
		begun := time.Now()
		go func() { drained <- r.Drain(t.Context()) }()
		synctest.Wait()
		refusedWith(t, p.ask(tableMethod, `{"knownRevision":null}`), contract.RelayNotReady)
		refusedWith(t, cloud.ask(trafficMethod, questionOf(nil)), contract.RelayNotReady)
		refusedWith(t, cloud.ask(pushMethod, pushOf(tableOf(2, "k"))), contract.RelayNotReady)
		time.Sleep(time.Second)
		select {
		case err := <-drained:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		q.Answer([]byte(acceptedText))
		if err := <-drained; err != nil || time.Since(begun) != time.Second {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
		if a := <-registration; a.err != nil {
			t.Error(a.err)
		}
		if s := r.status(); !s.Draining || s.Table != nil || s.InFlight != (InFlight{}) {
			t.Errorf("%+v", s)
		}
		if err := r.Drain(t.Context()); err != nil {
			t.Errorf("a second drain: %v", err)
		}
	})
}

// TestDrainThatIsCutShort gives what is in flight up.
func TestDrainThatIsCutShort(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		p := r.ingress(cloud, "node-a")
		traffic := cloud.start(trafficMethod, questionOf(nil))
		p.next(trafficMethod).Drop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		if err := r.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if got := r.status(); got.InFlight != (InFlight{}) || got.Table != nil {
			t.Errorf("%+v", got)
		}
		if a := <-traffic; a.err == nil || time.Since(begun) != time.Second {
			t.Errorf("%s, %v after %s", a.body, a.err, time.Since(begun))
		}
	})
}

// TestAnEndOfCustodyWaitsForNobody: neither for Cloudly nor for an ingress, even if
// the end of its socket is told late.
func TestAnEndOfCustodyWaitsForNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		p, q := r.ingress(cloud, "node-a"), r.node()
		r.conn(p.relay).deaf, r.conn(q.relay).deaf = true, true
		traffic := cloud.start(trafficMethod, questionOf(nil))
		p.next(trafficMethod).Drop()
		registration := q.start(registerMethod, registrationOf("node-b", "b"))
		cloud.next(registerMethod).Drop()
		begun := time.Now()
		r.DropCustody("relay-node-unknown")
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("it took %s", waited)
		}
		if got := r.status().InFlight; got != (InFlight{}) {
			t.Errorf("%+v", got)
		}
		<-traffic
		<-registration
	})
}

// TestAnEndOfCustodyWaitsForAnAnswerThatIsBeingMade, and no longer.
func TestAnEndOfCustodyWaitsForAnAnswerThatIsBeingMade(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.push(r.cloudly(), tableOf(1, "k"))
		r.Ingress.mu.Lock()
		h := r.use()
		r.Ingress.mu.Unlock()
		dropped := make(chan struct{})
		go func() { defer close(dropped); r.DropCustody("relay-node-unknown") }()
		synctest.Wait()
		select {
		case <-dropped:
			t.Error("it did not wait")
		default:
		}
		if h.answer[0] != '{' {
			t.Error("the answer was zeroed while it was made")
		}
		r.done(h)
		<-dropped
		if h.answer[0] != 0 {
			t.Error("the answer was not zeroed")
		}
	})
}

// TestNoWaitIsLonger than what is said, for peers that ask for retries.
func TestNoWaitIsLonger(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, p := r.cloudly(), r.node()
		r.register(cloud, p, "node-a")
		later := func(after time.Duration) func(*typedsocket.Request) {
			return func(q *typedsocket.Request) { q.Retry(after, "x") }
		}
		took := func(what string, want time.Duration, do func()) {
			t.Helper()
			begun := time.Now()
			do()
			if got := time.Since(begun); got != want {
				t.Errorf("%s took %s, want %s", what, got, want)
			}
		}
		p.on(trafficMethod, later(trafficWait-time.Second))
		took("counters", trafficWait, func() { refusedWith(t, cloud.ask(trafficMethod, questionOf(nil)), IngressUnanswered) })
		cloud.on(registerMethod, later(contract.ForwardTimeout-time.Second))
		took("a registration", contract.ForwardTimeout, func() { unnamed(t, p.ask(registerMethod, registrationOf("node-a", "b"))) })
		cloud.on(pullMethod, later(pullBound-time.Second))
		took("a pull", pullBound, func() {
			if err := r.Pull(t.Context(), cloud.relay); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		p.on(hintMethod, later(hintWait-time.Second))
		r.push(cloud, tableOf(1, "k"))
		synctest.Wait()
		p.on(hintMethod, func(q *typedsocket.Request) { q.Answer([]byte("{}")) })
		r.push(cloud, tableOf(2, "k"))
		time.Sleep(hintWait - 2*time.Second)
		p.on(hintMethod, later(hintWait-time.Second))
		time.Sleep(2 * time.Second)
		if got := fmt.Sprint(p.hints()); got != `[{"revision":1} {"revision":1} {"revision":2}]` {
			t.Errorf("hints %s", got)
		}
	})
}

// TestWhatIsShown: checks, status and metrics of an empty and of a busy room.
func TestWhatIsShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		began := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
		wall := began
		r := newRig(t, func(c *Config) { c.Wall = func() time.Time { return wall } })
		checks := func() string {
			var out []string
			for _, c := range r.Checks(wall) {
				if !c.Advice {
					t.Errorf("%s is no advice", c.Name)
				}
				facts := []string{}
				for _, f := range c.Facts {
					facts = append(facts, f.Key().String()+"="+f.String())
				}
				out = append(out, fmt.Sprintf("%s %s %s %v %s", c.Name, c.State, c.Reason, facts, c.Since.Sub(began)))
			}
			return strings.Join(out, ", ")
		}
		want := "route-table pending no-table [] 0s, ingress-registered pending no-ingress [] 0s"
		if got := checks(); got != want {
			t.Error(got)
		}
		cloud, p := r.cloudly(), r.node()
		c := p.start(registerMethod, registrationOf("node-a", "b"))
		cloud.next(registerMethod).Refuse("x", []byte(ownData(contract.IngressNotDesignated)))
		<-c
		wall = wall.Add(time.Minute)
		want = "route-table pending no-table [] 0s, ingress-registered pending no-ingress [node=node-a refusal=ingress-not-designated] 0s"
		if got := checks(); got != want {
			t.Error(got)
		}
		p.on(hintMethod, func(q *typedsocket.Request) { q.Answer([]byte("{}")) })
		r.register(cloud, p, "node-a")
		r.push(cloud, tableOf(5, "k"))
		synctest.Wait()
		p.ask(tableMethod, `{"knownRevision":null}`)
		want = "route-table ok  [revision=5 count=2] 1m0s, ingress-registered ok  [count=1] 1m0s"
		if got := checks(); got != want {
			t.Error(got)
		}
		s := r.status()
		if *s.Table != (Table{Revision: 5, IssuedAt: time.UnixMilli(1767225600000).UTC(), AppliedAt: wall, Origin: "pushed", Routes: 1, PortRoutes: 1, Bytes: len(tableOf(5, "k"))}) {
			t.Errorf("%+v", s.Table)
		}
		if len(s.Ingresses) != 1 || s.Ingresses[0] != (Speaker{Node: "node-a", Since: wall, Registrations: 1, Hinted: 5, Acknowledged: 5, AckedAt: wall, Pulls: 1, Pulled: 5, PulledAt: wall}) {
			t.Errorf("%+v", s.Ingresses)
		}
		if *s.LastRefusal != (Refusal{Node: "node-a", Reason: "ingress-not-designated", RetryAfterMs: 5000, At: began}) {
			t.Errorf("%+v", s.LastRefusal)
		}
		metrics := map[string]float64{}
		for _, f := range r.Metrics().Snapshot() {
			for _, sample := range f.Samples {
				metrics[f.Name+fmt.Sprint(sample.Labels)] = sample.Value
			}
		}
		for name, want := range map[string]float64{
			"relay_ingress_registered_ingresses[]": 1, "relay_ingress_table_revision[]": 5,
			"relay_ingress_table_bytes[]": float64(len(tableOf(5, "k"))),
			"relay_ingress_declined_registrations_total[{reason ingress-not-designated}]": 1,
			"relay_ingress_ended_registrations_total[{outcome accepted}]":                 1,
			"relay_ingress_served_tables_total[{outcome table}]":                          1,
			"relay_ingress_sent_hints_total[{outcome answered}]":                          1,
		} {
			if got, ok := metrics[name]; !ok || got != want {
				t.Errorf("%s is %v (%t), want %v; of %v", name, got, ok, want, metrics)
			}
		}
		if _, err := duty.Assemble(r.Ingress); err != nil {
			t.Error(err)
		}
		var _ duty.Duty = r.Ingress
	})
}
