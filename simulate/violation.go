package simulate

import (
	"fmt"
	"sync"
	"time"
)

// Rule names something that the contract forbids a relay and that its peer
// would not refuse, or not notice.
type Rule string

// The rules that a simulated Cloudly watches.
const (
	// BeforeSession is a call on a socket before registerCloudlyClientSession
	// was accepted there, the exchange of the bearer excepted (contract §5.2).
	BeforeSession Rule = "call-before-client-session"
	// BeforeRegistration is a call on a socket before registerClusterRelay was
	// accepted there (contract §5.6).
	BeforeRegistration Rule = "call-before-registration"
	// OlderSocket is a call on a socket after the relay registered on a newer one.
	OlderSocket Rule = "call-on-an-older-socket"
	// TwoRegistrations is a second registerClusterRelay before the first was
	// answered (contract §5.5).
	TwoRegistrations Rule = "two-registrations-in-flight"
	// AfterCustody is a node's request that came more than custodyGrace after an
	// undispatched refusal on its socket (contract §6.1).
	AfterCustody Rule = "node-request-after-custody-ended"
	// NotForCloudly is a method that never travels to Cloudly (contract §8).
	NotForCloudly Rule = "method-does-not-go-to-cloudly"
	// UnconfirmedSession is a node's request under a session that was not
	// registered over the socket it came on (design §4, O9).
	UnconfirmedSession Rule = "session-not-registered-on-this-socket"
	// LogGap is a log batch that does not follow the one before it in its
	// capture (contract §7.2, order).
	LogGap Rule = "log-batch-out-of-order"
)

// The rules that a simulated Pallet watches.
const (
	// NotForNode is a method that never travels to a node (contract §8).
	NotForNode Rule = "method-does-not-go-to-a-node"
	// WithoutSession is a push without a session (contract §7.3).
	WithoutSession Rule = "push-without-session"
	// ForeignSession is a push under a session that is not the node's on this
	// socket (contract §7.3).
	ForeignSession Rule = "push-under-a-foreign-session"
	// RegistrationAnswer is an accepted registration whose answer does not bind
	// to the request (contract §7.1).
	RegistrationAnswer Rule = "registration-answer-not-bound"
	// ReplayAnswer is a replay that was not answered with the exact historical
	// binding (contract §7.1).
	ReplayAnswer Rule = "replay-answered-with-another-binding"
	// AnswerNotBound is an accepted answer to another request of the node that
	// does not bind to it.
	AnswerNotBound Rule = "answer-not-bound"
)

// The rules that both watch.
const (
	// ForeignMember is an envelope with a member that never crosses a relay,
	// such as authInfo or localData (design §3.1).
	ForeignMember Rule = "envelope-with-a-foreign-member"
	// MalformedEnvelope is a text message that is no envelope.
	MalformedEnvelope Rule = "message-is-no-envelope"
)

// Violation is one breach of a rule. It quotes nothing of a message.
type Violation struct {
	Rule   Rule
	Socket int    // number of the socket, 0 when none was involved
	Method string // of the catalogue, or "other"
	At     time.Time
}

// String returns one line for a person.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s on socket %d", v.Rule, v.Method, v.Socket)
}

// violations keeps the first breaches and counts the rest.
type violations struct {
	mu   sync.Mutex
	list []Violation
	more int
}

func (l *violations) add(v Violation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) >= maximumViolations {
		l.more++
		return
	}
	l.list = append(l.list, v)
}

func (l *violations) all() []Violation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Violation(nil), l.list...)
}
