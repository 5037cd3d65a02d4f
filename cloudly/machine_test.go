package cloudly

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/contract"
)

// The table in the comment of machine.go is the table of the program.
func TestTheTableInTheCommentIsTheTable(t *testing.T) {
	source, err := os.ReadFile("machine.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(source), "//\tevent ")
	if !found {
		t.Fatal("no table in the comment")
	}
	rows := strings.Split(rest, "\n")
	if got := strings.Fields(rows[0]); !slices.Equal(got, phaseNames[:]) {
		t.Fatalf("columns %v, want %v", got, phaseNames)
	}
	for kind := eventKind(0); kind < numEvents; kind++ {
		want := []string{"//", kind.String()}
		for p := phase(0); p < numPhases; p++ {
			want = append(want, table[kind][p].name)
		}
		if got := strings.Fields(rows[1+int(kind)]); !slices.Equal(got, want) {
			t.Errorf("row %v\n\tof the program %v", got, want)
		}
	}
	if rows[1+int(numEvents)] != "//" {
		t.Errorf("the comment's table goes on with %q", rows[1+int(numEvents)])
	}
}

var effectNames = map[effectKind]string{
	doDial: "dial", doExchange: "exchange", doAuthenticate: "authenticate", doRegister: "register", doEnter: "enter",
	doConfirm: "confirm", doPull: "pull", doPullConfiguration: "pull-configuration", doConfigure: "configure", doShut: "shut",
	doEndCustody: "end-custody", doDropFlows: "drop-flows", doLose: "lose", doClose: "close", doCut: "cut", doLookAtCredential: "look",
}

// testNow is the time of the cells below.
const testNow = 1000 * time.Second

// standing is a state in the midst of life: two registrations accepted, the last
// session young, three failures before it.
func standing(p phase) state {
	s := state{phase: p, epoch: 7, failures: 3, next: 5, accepted: 2, document: "https://a.example"}
	switch p {
	case waiting:
		s.wait, s.wakeAt = waitPlain, testNow
	case refused:
		s.hold = testNow + 100*time.Second
		s.wakeAt = s.hold
	case registered, renewing:
		s.stoodFrom = testNow - 10*time.Second
	}
	return s
}

// told says what a step did: the phase, when it wakes, the effects, and every
// other member that is not as it was.
func told(before, after state, effects []effect) string {
	var b strings.Builder
	b.WriteString(after.phase.String())
	if after.wakeAt != 0 {
		fmt.Fprintf(&b, " +%v", after.wakeAt-testNow)
	}
	b.WriteString(":")
	for _, e := range effects {
		b.WriteString(" " + effectNames[e.kind])
		switch e.kind {
		case doRegister:
			fmt.Fprintf(&b, "(%d)", e.sequence)
		case doEndCustody:
			fmt.Fprintf(&b, "(%s)", strings.TrimPrefix(string(e.name), "relay-"))
		}
	}
	changed := func(name string, was, is any) {
		if was != is {
			fmt.Fprintf(&b, " %s=%v", name, is)
		}
	}
	changed("epoch", before.epoch, after.epoch)
	changed("wait", before.wait, after.wait)
	changed("failures", before.failures, after.failures)
	changed("postponed", before.postponed, after.postponed)
	changed("next", before.next, after.next)
	changed("accepted", before.accepted, after.accepted)
	changed("stood", before.stoodFrom, after.stoodFrom)
	changed("hold", before.hold, after.hold)
	changed("offer", before.offerAt, after.offerAt)
	changed("due", before.due, after.due)
	changed("absent", before.absent, after.absent)
	changed("fresh", before.fresh, after.fresh)
	changed("document", before.document, after.document)
	return b.String()
}

const (
	stale     = contract.RelayCredentialGenerationStale
	sequence  = contract.RelaySequenceNotAdvancing
	notOn     = contract.RelayClusterNotEnabled
	foreign   = contract.RelayNodeForeign
	unknownID = contract.RelayNodeUnknown
)

// cell is one cell of the table for one representative event.
type cell struct {
	kind eventKind
	in   phase
	with func(*event) // nil leaves it plain
	was  func(*state) // nil leaves it as standing made it
	want string
}

func named(name contract.RefusalName) func(*event) { return func(e *event) { e.name = name } }
func origin(o string) func(*event)                 { return func(e *event) { e.origin = o } }
func pushed(o string) func(*event)                 { return func(e *event) { e.origin, e.pushed = o, true } }
func fresh(e *event)                               { e.fresh = true }

// cells are written by hand from the contract, not from the code. A cell that is
// not here must change nothing and do nothing.
var cells = []cell{
	{evWake, waiting, nil, nil, "dialing: dial epoch=8 wait=0"},
	{evWake, refused, nil, nil, "registering: register(5)"},
	{evWake, registered, nil, func(s *state) { s.due = true }, "renewing: register(5) due=false"},
	{evUnusable, dialing, nil, nil, "waiting +8s: wait=2 failures=4"},
	{evOpened, dialing, nil, nil, "exchanging: exchange"},
	{evExchanged, exchanging, nil, nil, "authenticating: authenticate"},
	{evAuthenticated, authenticating, nil, nil, "registering: register(5)"},
	{evAuthenticated, authenticating, nil, func(s *state) { s.hold = testNow + time.Second }, "refused +1s: pull-configuration"},
	{evAuthenticated, authenticating, nil, func(s *state) { s.hold = testNow }, "registering: register(5)"},
	{evAccepted, registering, nil, nil, "registered: enter pull next=6 accepted=3 stood=16m40s"},
	{evAccepted, registering, nil, func(s *state) { s.due, s.absent, s.hold = true, true, 1 },
		"renewing: enter pull register(6) next=6 accepted=3 stood=16m40s hold=0s due=false absent=false"},
	{evAccepted, renewing, nil, nil, "registered: confirm pull next=6 accepted=3"},
	{evAccepted, renewing, nil, func(s *state) { s.due = true }, "renewing: confirm pull register(6) next=6 accepted=3 due=false"},

	// No answer: the number counts as used when a registration was in flight.
	{evUnanswered, dialing, nil, nil, "waiting +8s: wait=1 failures=4"},
	{evUnanswered, exchanging, nil, nil, "waiting +8s: shut close wait=1 failures=4"},
	{evUnanswered, authenticating, nil, nil, "waiting +8s: shut close wait=1 failures=4"},
	{evUnanswered, registering, nil, nil, "waiting +8s: shut close wait=1 failures=4 next=6"},
	{evUnanswered, renewing, nil, nil, "waiting +8s: shut lose close wait=1 failures=4 next=6"},
	{evLost, exchanging, nil, nil, "waiting +8s: shut close wait=1 failures=4"},
	{evLost, authenticating, nil, nil, "waiting +8s: shut close wait=1 failures=4"},
	{evLost, registering, nil, nil, "waiting +8s: shut close wait=1 failures=4 next=6"},
	{evLost, refused, nil, nil, "waiting +8s: shut close wait=1 failures=4"},
	{evLost, registered, nil, nil, "waiting +8s: shut lose close wait=1 failures=4"},
	{evLost, registered, nil, func(s *state) { s.stoodFrom = testNow - standsAfter }, "waiting +1s: shut lose close wait=1 failures=1"},
	{evLost, renewing, nil, nil, "waiting +8s: shut lose close wait=1 failures=4 next=6"},
	// A push without relay block that nothing has overtaken counts.
	{evLost, renewing, nil, func(s *state) { s.absent = true },
		"waiting +8s: shut end-custody(cluster-not-enabled) lose cut wait=1 failures=4 next=6 hold=21m40s absent=false document="},
	{evUnanswered, registering, nil, func(s *state) { s.absent = true },
		"waiting +8s: shut end-custody(cluster-not-enabled) cut wait=1 failures=4 next=6 hold=21m40s absent=false document="},
	{evLost, registering, nil, func(s *state) { s.absent, s.accepted = true, 0 }, "waiting +8s: shut close wait=1 failures=4 next=6 absent=false"},

	// Refused without a name: the number is not used and custody stays.
	{evRefused, exchanging, nil, nil, "waiting +8s: shut close wait=1 failures=4"},
	{evRefused, authenticating, nil, nil, "waiting +8s: shut close wait=1 failures=4"},
	{evRefused, registering, nil, nil, "waiting +8s: shut close wait=1 failures=4"},
	{evRefused, registering, nil, func(s *state) { s.absent = true },
		"refused +5m0s: shut end-custody(cluster-not-enabled) drop-flows hold=21m40s absent=false document="},
	{evRefused, renewing, nil, nil, "registered +1s: postponed=1 due=true"},
	{evRefused, renewing, nil, func(s *state) { s.postponed = 9 }, "registered +1m0s: postponed=10 due=true"},
	{evRefused, renewing, nil, func(s *state) { s.absent = true },
		"refused +5m0s: shut end-custody(cluster-not-enabled) lose drop-flows hold=21m40s absent=false document="},

	// Refused by protocol: exactly 300 s, and custody stays.
	{evIncompatible, exchanging, nil, nil, "waiting +5m0s: shut close wait=3 offer=21m40s"},
	{evIncompatible, authenticating, nil, nil, "waiting +5m0s: shut close wait=3 offer=21m40s"},
	{evIncompatible, registering, nil, nil, "waiting +5m0s: shut close wait=3 offer=21m40s"},
	{evIncompatible, registering, func(e *event) { e.used = true }, nil, "waiting +5m0s: shut close wait=3 next=6 offer=21m40s"},
	{evIncompatible, registering, nil, func(s *state) { s.absent = true },
		"waiting +5m0s: shut end-custody(cluster-not-enabled) cut wait=3 offer=21m40s absent=false document="},
	{evIncompatible, renewing, nil, nil, "registered +5m0s: offer=21m40s due=true"},
	{evIncompatible, renewing, func(e *event) { e.used = true }, nil, "registered +5m0s: next=6 offer=21m40s due=true"},
	{evIncompatible, renewing, nil, func(s *state) { s.absent = true },
		"waiting +5m0s: shut end-custody(cluster-not-enabled) lose cut wait=3 offer=21m40s absent=false document="},
	{evLost, registered, nil, func(s *state) { s.offerAt, s.due, s.wakeAt = testNow+time.Minute, true, testNow+time.Minute },
		"waiting +1m0s: shut lose close wait=3 failures=4 due=false"},

	// The five names.
	{evCustody, exchanging, named(notOn), nil, "waiting +5m0s: shut end-custody(cluster-not-enabled) cut wait=4 hold=21m40s document="},
	{evCustody, authenticating, named(foreign), nil, "waiting +5m0s: shut end-custody(node-foreign) cut wait=4 hold=21m40s document="},
	{evCustody, registering, named(notOn), nil, "refused +5m0s: shut end-custody(cluster-not-enabled) drop-flows hold=21m40s document="},
	{evCustody, registering, named(unknownID), nil, "refused +5m0s: shut end-custody(node-unknown) drop-flows hold=21m40s document="},
	{evCustody, registering, named(sequence), nil, "waiting +8s: shut end-custody(sequence-not-advancing) cut wait=1 failures=4 next=6 document="},
	{evCustody, registering, named(stale), nil, "waiting +5m0s: shut end-custody(credential-generation-stale) cut look wait=5 document="},
	{evCustody, registering, named(stale), func(s *state) { s.fresh = true },
		"dialing: shut end-custody(credential-generation-stale) cut dial epoch=8 fresh=false document="},
	{evCustody, exchanging, named(stale), nil, "waiting +5m0s: shut end-custody(credential-generation-stale) cut look wait=5 document="},
	{evCustody, renewing, named(notOn), nil, "refused +5m0s: shut end-custody(cluster-not-enabled) lose drop-flows hold=21m40s document="},
	{evCustody, renewing, named(foreign), nil, "refused +5m0s: shut end-custody(node-foreign) lose drop-flows hold=21m40s document="},
	{evCustody, renewing, named(sequence), nil, "waiting +8s: shut end-custody(sequence-not-advancing) lose cut wait=1 failures=4 next=6 document="},
	{evCustody, renewing, named(stale), nil, "waiting +5m0s: shut end-custody(credential-generation-stale) lose cut look wait=5 document="},
	{evHeard, exchanging, named(stale), nil, "waiting +5m0s: shut end-custody(credential-generation-stale) cut look wait=5 document="},
	{evHeard, authenticating, named(unknownID), nil, "waiting +5m0s: shut end-custody(node-unknown) cut wait=4 hold=21m40s document="},
	{evHeard, refused, named(stale), nil, "waiting +5m0s: shut end-custody(credential-generation-stale) cut look wait=5 hold=0s document="},
	{evHeard, refused, named(foreign), nil, "refused +5m0s: shut end-custody(node-foreign) drop-flows hold=21m40s document="},
	{evHeard, registered, named(stale), nil, "waiting +5m0s: shut end-custody(credential-generation-stale) lose cut look wait=5 document="},
	{evHeard, registered, named(notOn), nil, "refused +5m0s: shut end-custody(cluster-not-enabled) lose drop-flows hold=21m40s document="},
	{evHeard, registered, named(sequence), nil, "waiting +8s: shut end-custody(sequence-not-advancing) lose cut wait=1 failures=4 document="},
	// On a socket that has ended meanwhile.
	{evHeard, waiting, named(stale), nil, "waiting +5m0s: end-custody(credential-generation-stale) look wait=5 document="},
	{evHeard, waiting, named(stale), func(s *state) { s.fresh = true }, "dialing: end-custody(credential-generation-stale) dial epoch=8 wait=0 fresh=false document="},
	{evHeard, waiting, named(stale), func(s *state) {
		s.wait, s.offerAt, s.wakeAt = waitProtocol, testNow+400*time.Second, testNow+400*time.Second
	},
		"waiting +6m40s: end-custody(credential-generation-stale) look wait=5 document="},
	{evHeard, waiting, named(foreign), func(s *state) { s.wakeAt = testNow + time.Second }, "waiting +1s: end-custody(node-foreign) hold=21m40s document="},
	{evHeard, waiting, named(sequence), func(s *state) { s.wakeAt = testNow + time.Second }, "waiting +1s: end-custody(sequence-not-advancing) document="},
	// With a registration in flight its answer must not revive what has ended.
	{evHeard, registering, named(notOn), nil, "waiting +8s: shut end-custody(cluster-not-enabled) cut wait=1 failures=4 next=6 hold=21m40s document="},
	{evHeard, registering, named(stale), nil, "waiting +5m0s: shut end-custody(credential-generation-stale) cut look wait=5 next=6 document="},
	{evHeard, registering, named(sequence), nil, "waiting +8s: shut end-custody(sequence-not-advancing) cut wait=1 failures=4 next=6 document="},
	{evHeard, renewing, named(foreign), nil, "waiting +8s: shut end-custody(node-foreign) lose cut wait=1 failures=4 next=6 hold=21m40s document="},
	{evHeard, renewing, named(stale), nil, "waiting +5m0s: shut end-custody(credential-generation-stale) lose cut look wait=5 next=6 document="},

	// Configurations.
	{evStated, registering, origin("https://a.example"), nil, "registering:"},
	{evStated, registering, origin("https://b.example"), nil, "registering: due=true document=https://b.example"},
	{evStated, refused, origin("https://b.example"), nil, "refused +1m40s: document=https://b.example"},
	{evStated, refused, origin("https://b.example"), func(s *state) { s.heldBy = contract.RelayNodeForeign }, "refused +1m40s: document=https://b.example"},
	{evStated, refused, origin("https://b.example"), func(s *state) { s.heldBy = contract.RelayClusterNotEnabled }, "registering: register(5) hold=0s document=https://b.example"},
	{evStated, refused, pushed("https://b.example"), func(s *state) { s.heldBy = contract.RelayNodeForeign }, "registering: register(5) hold=0s document=https://b.example"},
	{evStated, refused, pushed("https://b.example"), func(s *state) { s.offerAt = testNow + time.Second },
		"refused +1s: hold=0s document=https://b.example"},
	{evStated, registered, origin("https://a.example"), nil, "registered: configure"},
	{evStated, registered, origin("https://b.example"), nil, "renewing: configure register(5) document=https://b.example"},
	{evStated, registered, origin("https://b.example"), func(s *state) { s.document = "" }, "registered: configure document=https://b.example"},
	{evStated, registered, origin("https://b.example"), func(s *state) { s.due, s.wakeAt = true, testNow+time.Second },
		"registered +1s: configure document=https://b.example"},
	{evStated, renewing, origin("https://b.example"), nil, "renewing: configure due=true document=https://b.example"},
	{evAbsent, registering, nil, nil, "registering: absent=true"},
	{evAbsent, registered, nil, nil, "refused +5m0s: shut end-custody(cluster-not-enabled) lose drop-flows hold=21m40s document="},
	{evAbsent, renewing, nil, nil, "renewing: absent=true"},
	{evInvalid, registered, nil, nil, "registered: configure"},
	{evInvalid, renewing, nil, nil, "renewing: configure"},

	// Wishes.
	{evFacts, registering, nil, nil, "registering: due=true"},
	{evFacts, registered, nil, nil, "renewing: register(5)"},
	{evFacts, registered, nil, func(s *state) { s.due, s.wakeAt = true, testNow+time.Second }, "registered +1s:"},
	{evFacts, renewing, nil, nil, "renewing: due=true"},
	{evKick, waiting, nil, nil, "dialing: dial epoch=8 wait=0"},
	{evKick, waiting, nil, func(s *state) { s.wait = waitCredential }, "dialing: dial epoch=8 wait=0"},
	{evKick, waiting, nil, func(s *state) { s.wait = waitProtocol }, "waiting +0s:"},
	{evKick, waiting, nil, func(s *state) { s.wait = waitStale }, "waiting +0s:"},
	{evKick, waiting, nil, func(s *state) { s.wait = waitRecords }, "waiting +0s:"},
	{evCredential, waiting, nil, nil, "waiting +0s:"},
	{evCredential, waiting, fresh, nil, "dialing: dial epoch=8 wait=0"},
	{evCredential, waiting, fresh, func(s *state) { s.wait = waitStale }, "dialing: dial epoch=8 wait=0"},
	{evCredential, waiting, fresh, func(s *state) { s.wait, s.hold = waitRecords, testNow+1 }, "dialing: dial epoch=8 wait=0 hold=0s"},
	{evCredential, waiting, fresh, func(s *state) { s.wait = waitProtocol }, "waiting +0s: fresh=true"},
	{evCredential, dialing, fresh, nil, "dialing: fresh=true"},
	{evCredential, exchanging, fresh, nil, "exchanging: fresh=true"},
	{evCredential, authenticating, fresh, nil, "authenticating: fresh=true"},
	{evCredential, registering, fresh, nil, "registering: fresh=true"},
	{evCredential, refused, nil, nil, "refused +1m40s:"},
	{evCredential, refused, fresh, nil, "dialing: shut close dial epoch=8 hold=0s"},
	{evCredential, refused, fresh, func(s *state) { s.offerAt = testNow + time.Second }, "waiting +1s: shut close wait=3 hold=0s fresh=true"},
	{evCredential, registered, fresh, nil, "registered: fresh=true"},
	{evCredential, renewing, fresh, nil, "renewing: fresh=true"},

	{evStop, waiting, nil, nil, "stopped: wait=0"},
	{evStop, dialing, nil, nil, "stopped:"},
	{evStop, exchanging, nil, nil, "stopped: shut close"},
	{evStop, authenticating, nil, nil, "stopped: shut close"},
	{evStop, registering, nil, nil, "stopped: shut close"},
	{evStop, refused, nil, nil, "stopped: shut close"},
	{evStop, registered, nil, nil, "stopped: shut lose close"},
	{evStop, renewing, nil, nil, "stopped: shut lose close"},
}

func TestEveryPhaseTimesEveryEvent(t *testing.T) {
	type place struct {
		kind eventKind
		in   phase
	}
	written := map[place]bool{}
	for _, c := range cells {
		written[place{c.kind, c.in}] = true
		before := standing(c.in)
		if c.was != nil {
			c.was(&before)
		}
		e := event{kind: c.kind, epoch: 7}
		if c.with != nil {
			c.with(&e)
		}
		after, effects := step(before, e, testNow)
		if got := told(before, after, effects); got != c.want {
			t.Errorf("%s in %s:\n\tgot  %s\n\twant %s", c.kind, c.in, got, c.want)
		}
	}
	for kind := eventKind(0); kind < numEvents; kind++ {
		for p := phase(0); p < numPhases; p++ {
			means := table[kind][p].name != "-"
			if means != written[place{kind, p}] {
				t.Errorf("%s in %s: has a transition: %v, has an expectation: %v", kind, p, means, !means)
			}
			if means {
				continue
			}
			before := standing(p)
			after, effects := step(before, event{kind: kind, epoch: 7, name: stale, fresh: true, origin: "https://b.example", used: true}, testNow)
			if after != before || len(effects) > 0 {
				t.Errorf("%s in %s: %s; want nothing", kind, p, told(before, after, effects))
			}
		}
	}
}

// What comes of an attempt that is over means nothing.
func TestEventsOfAnEarlierAttemptMeanNothing(t *testing.T) {
	for kind := eventKind(0); kind < numEvents; kind++ {
		if !kind.ofSocket() {
			continue
		}
		for p := phase(0); p < numPhases; p++ {
			for _, epoch := range []uint64{6, 8} {
				before := standing(p)
				after, effects := step(before, event{kind: kind, epoch: epoch, name: notOn}, testNow)
				if after != before || len(effects) > 0 {
					t.Errorf("%s of attempt %d in %s of attempt 7: %s", kind, epoch, p, told(before, after, effects))
				}
			}
		}
	}
}
