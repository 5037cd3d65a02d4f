package cloudly

import (
	"time"

	"serve.zone/relay/contract"
)

// step is the upstream session as a pure function. What it returns as effects is to
// be carried out in that order before the next event is looked at.
//
// Rows are events, columns phases, cells the transition that the event makes; "-" is
// an event that means nothing in that phase. The transitions stand in machine_attempt.go (from a wait to
// an authenticated socket), machine_registration.go and machine_custody.go.
//
//	event         waiting dialing  exchanging   authenticating registering refused  registered renewing stopped
//	wake          dial    -        -            -              -           register renew      -        -
//	unusable      -       fail     -            -              -           -        -          -        -
//	opened        -       exchange -            -              -           -        -          -        -
//	exchanged     -       -        authenticate -              -           -        -          -        -
//	authenticated -       -        -            admit          -           -        -          -        -
//	accepted      -       -        -            -              enter       -        -          confirm  -
//	unanswered    -       fail     fail         fail           lose        -        -          lose     -
//	refused       -       -        fail         fail           decline     -        -          postpone -
//	incompatible  -       -        pause        pause          pause       -        -          defer    -
//	custody       -       -        end          end            end         -        -          end      -
//	heard         late    -        end          end            cutoff      end      end        cutoff   -
//	lost          -       -        fail         fail           lose        fail     fail       lose     -
//	stated        -       -        -            -              remember    enable   compare    compare  -
//	absent        -       -        -            -              suspect     -        disable    suspect  -
//	invalid       -       -        -            -              -           -        take       take     -
//	facts         -       -        -            -              want        -        again      want     -
//	kick          hurry   -        -            -              -           -        -          -        -
//	credential    hurry   note     note         note           note        replace  note       note     -
//	stop          stop    stop     stop         stop           stop        stop     stop       stop     -
//
// A wait ends with the event wake, at state.wakeAt. Waits are:
//
//	after a plain loss or failure    1 s doubling to 60 s, less up to a half at random
//	after a protocol refusal         exactly 300 s; nothing shortens it
//	after a stale credential         300 s; at once when the file holds other bytes
//	after another custody refusal    300 s; at once when the configuration states a
//	                                 relay block, or the file holds other bytes
//	after relay-sequence-not-advancing  as after a plain loss
//
// In phase refused the socket is authenticated and open, so that a configuration
// push can enable the relay at once (design §4, O19). When it is lost, the next one
// is authenticated and waits in phase refused for the rest of the 300 s.
func step(s state, e event, now time.Duration) (state, []effect) {
	if e.kind.ofSocket() && e.epoch != s.epoch {
		return s, nil
	}
	m := move{state: s, event: e, now: now}
	table[e.kind][s.phase].apply(&m)
	return m.state, m.effects
}

// phase is where the session stands.
type phase uint8

const (
	waiting        phase = iota // no socket; the next attempt begins at wakeAt
	dialing                     // the bearer is read and the socket opened
	exchanging                  // the bearer is exchanged for an identity
	authenticating              // registerCloudlyClientSession is in flight
	registering                 // the first registerClusterRelay on this socket is in flight
	refused                     // authenticated; custody has ended; registers at wakeAt
	registered                  // the session stands
	renewing                    // the session stands, another registration is in flight
	stopped                     // nothing happens any more
	numPhases
)

var phaseNames = [numPhases]string{
	"waiting", "dialing", "exchanging", "authenticating", "registering", "refused", "registered", "renewing", "stopped",
}

func (p phase) String() string { return phaseNames[p] }

// stands reports whether Cloudly has a registration of this relay on a live
// socket.
func (p phase) stands() bool { return p == registered || p == renewing }

// hasSocket reports whether there is an open socket in this phase.
func (p phase) hasSocket() bool { return p >= exchanging && p <= renewing }

// authenticated reports whether the socket in this phase is one that Cloudly
// knows the cluster of.
func (p phase) authenticated() bool { return p >= registering && p <= renewing }

// registers reports whether a registration is in flight in this phase.
func (p phase) registers() bool { return p == registering || p == renewing }

// eventKind is what can happen.
type eventKind uint8

const (
	evWake          eventKind = iota // wakeAt has come
	evUnusable                       // there is no usable credential to dial with
	evOpened                         // the socket is open
	evExchanged                      // the identity is there
	evAuthenticated                  // registerCloudlyClientSession was accepted
	evAccepted                       // registerClusterRelay was accepted and its answer holds
	evUnanswered                     // the step in flight ended without an answer that can be read
	evRefused                        // it was refused without a name that ends anything
	evIncompatible                   // it was refused by protocol, or we refuse the offer in its answer
	evCustody                        // it was refused by one of the five names
	evHeard                          // another call on this socket was
	evLost                           // the socket has ended
	evStated                         // a configuration states a relay block
	evAbsent                         // a configuration states that there is none
	evInvalid                        // a configuration's relay block is not valid
	evFacts                          // a fact differs from what was last sent
	evKick                           // somebody asks for an attempt at once
	evCredential                     // whether the file holds other bytes than were presented
	evStop                           // the relay ends
	numEvents
)

var eventNames = [numEvents]string{
	"wake", "unusable", "opened", "exchanged", "authenticated", "accepted", "unanswered", "refused", "incompatible", "custody",
	"heard", "lost", "stated", "absent", "invalid", "facts", "kick", "credential", "stop",
}

func (k eventKind) String() string { return eventNames[k] }

// ofSocket reports whether an event belongs to one attempt and its socket, and
// means nothing once a later one has begun.
func (k eventKind) ofSocket() bool { return k >= evUnusable && k <= evInvalid }

// event is one thing that happened.
type event struct {
	kind   eventKind
	epoch  uint64  // the attempt it belongs to, for kinds that are of a socket
	chance float64 // in [0,1), drawn for this event: what a wait is spread by

	name   contract.RefusalName // evCustody, evHeard: one of the five
	used   bool                 // evIncompatible: Cloudly accepted, so the number is used
	origin string               // evStated: of the relay block
	pushed bool                 // evStated: Cloudly sent the configuration of its own accord
	fresh  bool                 // evCredential: the file holds other bytes, and they are usable
}

// waitKind is why phase waiting waits.
type waitKind uint8

const (
	waitStart      waitKind = iota // nothing was tried yet
	waitPlain                      // something failed or was lost
	waitCredential                 // the credential cannot be used
	waitProtocol                   // the offers do not go together
	waitRecords                    // Cloudly's records do not admit this relay
	waitStale                      // the credential's generation is over
)

// state is all that the machine knows. The zero state begins the first attempt
// at the first wake.
type state struct {
	phase     phase
	epoch     uint64               // numbers the attempts
	wakeAt    time.Duration        // when evWake is due; 0 means at once in phase waiting, never elsewhere
	wait      waitKind             // of phase waiting
	failures  int                  // attempts in a row that came to no session that stood
	postponed int                  // failures in a row of a registration repeated on a standing session
	next      int64                // registrationSequence of the next registration
	accepted  uint64               // registrations accepted since the start
	stoodFrom time.Duration        // when the session on this socket was accepted first
	hold      time.Duration        // no registration before: what a custody refusal leaves behind
	heldBy    contract.RefusalName // that refusal
	offerAt   time.Duration        // no offer before: what a protocol refusal leaves behind
	due       bool                 // another registration is wanted
	absent    bool                 // a configuration without relay block came while a registration was in flight
	fresh     bool                 // the credential file holds other bytes than were presented
	document  string               // origin in the last configuration that was read
}

// effectKind is what the shell is told to do.
type effectKind uint8

const (
	doDial              effectKind = iota // read the bearer, open a socket
	doExchange                            // exchange the bearer
	doAuthenticate                        // send registerCloudlyClientSession
	doRegister                            // send registerClusterRelay with sequence
	doEnter                               // call OnRegistered with first, then serve Cloudly's requests
	doConfirm                             // call OnRegistered without first
	doPull                                // run all pulls again
	doPullConfiguration                   // pull the configuration alone
	doConfigure                           // hand the configuration over
	doShut                                // serve no request any more, end all pulls
	doEndCustody                          // call OnCustodyEnded with name
	doDropFlows                           // drop what nodes have queued on a socket that stays
	doLose                                // call OnLost
	doClose                               // close the socket
	doCut                                 // close it so that nothing queued leaves
	doLookAtCredential                    // read the credential file now
)

// effect is one thing for the shell to do.
type effect struct {
	kind     effectKind
	sequence int64                // doRegister
	name     contract.RefusalName // doEndCustody
}

// move is one application of a transition.
type move struct {
	state
	event   event
	now     time.Duration // since the start of the session, monotonic
	effects []effect
}

// transition is one cell of the table.
type transition struct {
	name  string
	apply func(*move)
}

func (m *move) do(kinds ...effectKind) {
	for _, kind := range kinds {
		m.effects = append(m.effects, effect{kind: kind})
	}
}

// none is the cell of an event that means nothing.
var none = transition{"-", func(*move) {}}

var table = [numEvents][numPhases]transition{
	evWake:          {dial, none, none, none, none, register, renew, none, none},
	evUnusable:      {none, fail, none, none, none, none, none, none, none},
	evOpened:        {none, exchange, none, none, none, none, none, none, none},
	evExchanged:     {none, none, authenticate, none, none, none, none, none, none},
	evAuthenticated: {none, none, none, admit, none, none, none, none, none},
	evAccepted:      {none, none, none, none, enter, none, none, confirm, none},
	evUnanswered:    {none, fail, fail, fail, lose, none, none, lose, none},
	evRefused:       {none, none, fail, fail, decline, none, none, postpone, none},
	evIncompatible:  {none, none, pause, pause, pause, none, none, postponeOffer, none},
	evCustody:       {none, none, end, end, end, none, none, end, none},
	evHeard:         {late, none, end, end, cutoff, end, end, cutoff, none},
	evLost:          {none, none, fail, fail, lose, fail, fail, lose, none},
	evStated:        {none, none, none, none, remember, enable, compare, compare, none},
	evAbsent:        {none, none, none, none, suspect, none, disable, suspect, none},
	evInvalid:       {none, none, none, none, none, none, take, take, none},
	evFacts:         {none, none, none, none, want, none, again, want, none},
	evKick:          {hurry, none, none, none, none, none, none, none, none},
	evCredential:    {hurry, note, note, note, note, replace, note, note, none},
	evStop:          {stop, stop, stop, stop, stop, stop, stop, stop, none},
}
