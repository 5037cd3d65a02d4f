package cloudly

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"serve.zone/relay/contract"
)

// observer watches a machine from outside: it knows the contract's rules, not the
// machine's state.
type observer struct {
	t   *rapid.T
	now time.Duration

	socket  bool // open
	session bool // between OnRegistered and OnLost
	served  bool // requests are let through
	flight  bool // a registration is
	judged  bool // one was when this event came
	sent    int64
	used    int64         // highest number that Cloudly may have used, -1 before the first
	noOffer time.Duration // none before: a protocol refusal
	noDial  time.Duration // none before: a stale credential
	noSend  time.Duration // no registration before: another custody refusal
}

// before takes note of what an event means, as the contract says it.
func (o *observer) before(s state, e event) {
	if e.kind.ofSocket() && e.epoch != s.epoch {
		return
	}
	inFlight := o.flight
	o.judged = inFlight
	switch e.kind {
	case evAccepted, evRefused, evIncompatible, evCustody, evUnanswered, evLost:
		if !s.phase.registers() && e.kind != evLost {
			break
		}
		o.flight = false
	}
	switch e.kind {
	case evAccepted:
		if inFlight {
			o.used, o.noOffer, o.noSend = o.sent, 0, 0
		}
	case evUnanswered, evLost:
		if inFlight {
			o.used = o.sent
		}
	case evIncompatible:
		if s.phase.hasSocket() && (s.phase < registering || inFlight) {
			o.noOffer = o.now + 300*time.Second
			if e.used && inFlight {
				o.used = o.sent
			}
		}
	case evStated:
		if s.phase == refused {
			o.noSend = 0
		}
	case evCredential:
		if e.fresh {
			o.noDial, o.noSend = 0, 0
		}
	}
}

// after judges the effects of a step.
func (o *observer) after(e event, s state, effects []effect) {
	t := o.t
	ended, dropped := false, false
	for i, f := range effects {
		switch f.kind {
		case doDial:
			if o.socket {
				t.Fatal("dials with a socket open")
			}
			if o.now < o.noOffer {
				t.Fatalf("dials %v before the offer may be made again", o.noOffer-o.now)
			}
			if o.now < o.noDial {
				t.Fatalf("dials %v too early with a stale credential", o.noDial-o.now)
			}
		case doExchange:
			o.socket = true
		case doRegister:
			switch {
			case !o.socket:
				t.Fatal("registers without a socket")
			case o.flight:
				t.Fatal("two registrations in flight")
			case f.sequence <= o.used:
				t.Fatalf("sends number %d, and %d may be used", f.sequence, o.used)
			case o.now < o.noOffer:
				t.Fatal("offers again within 300 s of a protocol refusal")
			case o.now < o.noSend:
				t.Fatal("registers again within 300 s of a custody refusal")
			case f.sequence > o.used+1:
				t.Fatalf("skips from %d to %d", o.used, f.sequence)
			}
			o.flight, o.sent = true, f.sequence
		case doEnter:
			if o.session {
				t.Fatal("two sessions")
			}
			o.session, o.served = true, true
		case doConfirm, doConfigure:
			if !o.session {
				t.Fatalf("effect %v without a session", effectNames[f.kind])
			}
		case doShut:
			o.served = false
		case doEndCustody:
			ended = true
			if o.served {
				t.Fatal("custody ends while requests are served")
			}
			for _, earlier := range effects[:i] {
				if earlier.kind != doShut {
					t.Fatalf("%s before custody has ended", effectNames[earlier.kind])
				}
			}
			o.custody(e, f.name)
		case doDropFlows:
			if !ended || !o.socket {
				t.Fatal("drops flows without an end of custody, or without a socket")
			}
			dropped = true
		case doLose:
			if !o.session {
				t.Fatal("loses a session that did not stand")
			}
			o.session = false
		case doClose, doCut:
			if !o.socket || o.served || o.session {
				t.Fatalf("leaves a socket: open %v, served %v, session %v", o.socket, o.served, o.session)
			}
			if ended && f.kind != doCut {
				t.Fatal("flushes what is queued after custody has ended")
			}
			if o.flight {
				o.used, o.flight = o.sent, false
			}
			o.socket = false
		}
	}
	if ended && o.socket && !dropped {
		t.Fatal("keeps a socket with what nodes had queued")
	}
	o.plan(s)
}

// custody takes note of the end of custody by a name.
func (o *observer) custody(e event, name contract.RefusalName) {
	switch name {
	case stale:
		o.noDial = o.now + 300*time.Second
		o.noSend = 0
		if e.fresh {
			o.noDial = 0
		}
	case sequence:
		if o.judged {
			o.used = o.sent
		}
	default:
		o.noSend = o.now + 300*time.Second
	}
	if o.flight && e.kind == evHeard {
		o.used, o.flight = o.sent, false
	}
}

// plan judges what the machine waits for.
func (o *observer) plan(s state) {
	t := o.t
	if s.phase == waiting && s.wakeAt <= o.now && s.epoch > 0 {
		t.Fatalf("waits for %v, which is over", s.wakeAt)
	}
	if s.phase == waiting && s.epoch > 0 {
		bound := 60 * time.Second
		if s.wait == waitProtocol || s.wait == waitStale || s.wait == waitRecords {
			bound = 300 * time.Second
		}
		if s.wakeAt > o.now+bound {
			t.Fatalf("waits for %v, of kind %d", s.wakeAt-o.now, s.wait)
		}
	}
	if s.phase == refused && (s.wakeAt <= o.now || s.wakeAt > o.now+300*time.Second) {
		t.Fatalf("refused until %v", s.wakeAt-o.now)
	}
	if s.phase.stands() != o.session {
		t.Fatalf("in %s: a session stands: %v", s.phase, o.session)
	}
	if s.phase.hasSocket() != o.socket {
		t.Fatalf("in %s: a socket is open: %v", s.phase, o.socket)
	}
	if s.phase.registers() != o.flight {
		t.Fatalf("in %s: a registration is in flight: %v", s.phase, o.flight)
	}
}

func drawEvent(t *rapid.T, s state) event {
	names := contract.UndispatchedRefusals().Names()
	e := event{
		kind:   eventKind(rapid.IntRange(0, int(evCredential)).Draw(t, "kind")),
		epoch:  s.epoch,
		chance: rapid.Float64Range(0, 0.999).Draw(t, "chance"),
		name:   rapid.SampledFrom(names).Draw(t, "name"),
		used:   s.phase.registers() && rapid.Bool().Draw(t, "used"),
		origin: rapid.SampledFrom([]string{"https://a.example", "https://b.example"}).Draw(t, "origin"),
		fresh:  rapid.Bool().Draw(t, "fresh"),
	}
	// Most of the time things go on, so that deep phases are reached.
	if next, ok := map[phase]eventKind{
		waiting: evWake, dialing: evOpened, exchanging: evExchanged, authenticating: evAuthenticated, registering: evAccepted, renewing: evAccepted,
	}[s.phase]; ok && rapid.IntRange(0, 2).Draw(t, "go on") > 0 {
		e.kind = next
	}
	if rapid.IntRange(0, 19).Draw(t, "late") == 0 && s.epoch > 0 {
		e.epoch--
	}
	return e
}

// B028, B014, B016: the rules of contract §4 to §6 hold for every sequence of events,
// and from wherever one leads, a Cloudly that is content is registered with again: no
// event stops the trying.
func TestB028_EverySequenceOfEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s state
		o := &observer{t: t, used: -1}
		fresh := false
		for range rapid.IntRange(1, 150).Draw(t, "events") {
			o.now += time.Duration(rapid.IntRange(1, 40).Draw(t, "seconds")) * time.Second
			e := drawEvent(t, s)
			switch waits := s.phase == waiting || s.wakeAt != 0; {
			case waits && s.wakeAt <= o.now:
				e.kind = evWake // the shell wakes it then
			case waits && e.kind == evWake:
				o.now = s.wakeAt // and no sooner
			}
			if e.kind == evCredential {
				fresh = e.fresh
			}
			attempt := s.epoch
			s = apply(s, e, o, fresh)
			if s.epoch != attempt {
				fresh = false // those bytes are presented now
			}
		}
		for steps := 0; !o.session; steps++ {
			if steps > 20 {
				t.Fatalf("no session after %d steps; in %s", steps, s.phase)
			}
			e := event{epoch: s.epoch}
			switch s.phase {
			case dialing:
				e.kind = evOpened
			case exchanging:
				e.kind = evExchanged
			case authenticating:
				e.kind = evAuthenticated
			case registering:
				e.kind = evAccepted
			default:
				e.kind = evWake
				if s.wakeAt-o.now > 300*time.Second {
					t.Fatalf("sleeps for %v", s.wakeAt-o.now)
				}
				o.now = max(o.now, s.wakeAt)
			}
			s = apply(s, e, o, false)
		}
	})
}

func apply(s state, e event, o *observer, fresh bool) state {
	o.before(s, e)
	after, effects := step(s, e, o.now)
	// What the file holds decides whether a stale credential may be replaced at once.
	judged := e
	judged.fresh = fresh
	o.after(judged, after, effects)
	if after.phase != stopped && after.wakeAt != 0 && after.wakeAt <= o.now && after == s && e.kind == evWake {
		o.t.Fatalf("wakes at once again in %s", after.phase)
	}
	return after
}

// The wait is at most a minute with its jitter, grows with every failure until it
// is there, and is never shorter than half of its nominal length.
func TestBackoffIsWhatTheContractSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		failures := rapid.IntRange(-1, 1<<40).Draw(t, "failures")
		chance := rapid.Float64Range(0, 1-1e-9).Draw(t, "chance")
		// The oracle doubles in floating point and cuts at the end.
		nominal := 1.0
		for i := 1; i < min(failures, 64); i++ {
			nominal *= 2
		}
		nominal = min(nominal, 60)
		got := backoff(failures, chance).Seconds()
		if got > nominal || got < nominal/2 {
			t.Fatalf("backoff(%d, %v) = %v s, want %v to %v", failures, chance, got, nominal/2, nominal)
		}
		if got > longestDelay.Seconds() {
			t.Fatalf("backoff(%d, %v) = %v s", failures, chance, got)
		}
	})
	for failures, want := range []time.Duration{1, 1, 2, 4, 8, 16, 32, 60, 60} {
		if got := backoff(failures, 0); got != want*time.Second {
			t.Errorf("backoff(%d, 0) = %v, want %v", failures, got, want*time.Second)
		}
	}
	// The spread is as wide as promised: this is what keeps a herd apart.
	if got := backoff(7, 1-1e-9); got > 30*time.Second+time.Second {
		t.Errorf("the shortest of the longest waits is %v", got)
	}
}
