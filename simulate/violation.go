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
	// AfterCustody is a request of a node or an ingress that came more than
	// custodyGrace after an undispatched refusal on its socket (contract §6.1).
	AfterCustody Rule = "node-request-after-custody-ended"
	// NotForCloudly is a method that never travels to Cloudly (contract §8).
	NotForCloudly Rule = "method-does-not-go-to-cloudly"
	// UnconfirmedSession is a node's request under a session that was not
	// registered over the socket it came on (design §4, O9).
	UnconfirmedSession Rule = "session-not-registered-on-this-socket"
	// TrafficPageRule is a page of counters that breaks what the relay judges
	// itself: its shape, its days, its node, its length (contract §11.4).
	TrafficPageRule Rule = "traffic-page-not-as-asked"
	// TrafficOrder is a read of pages that does not go forward: a node before the
	// one of the page before, a bucket that comes twice, a cursor that comes again
	// (contract §11.4, O17).
	TrafficOrder Rule = "traffic-pages-out-of-order"
	// TrafficContent is a bucket that cannot be read, for reasons that a relay does
	// not look into: its ingress's mistake, or bytes that were changed on the way.
	TrafficContent Rule = "traffic-bucket-cannot-be-read"
	// TrafficWentBack is a bucket with less in it than at an earlier read, or a day
	// that has changed after it was read when it had closed (contract §11.4).
	TrafficWentBack Rule = "traffic-went-back"
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

// The rules that a simulated ingress watches; RegistrationAnswer is one of them.
const (
	// NotForIngress is a method that never travels to an ingress (contract §8).
	NotForIngress Rule = "method-does-not-go-to-an-ingress"
	// BeforeAcceptance is a request on a socket on which no registration of the
	// ingress was accepted (contract §11.3).
	BeforeAcceptance Rule = "ingress-request-before-its-acceptance"
	// RefusalNotWhole is a refusal that bears a name of the contract and not its
	// shape (contract §11.2).
	RefusalNotWhole Rule = "refusal-is-not-whole"
	// HintBody is a hint that is anything but a revision (contract §11.1).
	HintBody Rule = "hint-is-not-a-revision-alone"
	// TableAnswer is an answer to a pull that breaks what the contract states, and
	// that a relay judges itself (contract §11.1).
	TableAnswer Rule = "table-answer-invalid"
	// TableContent is a table that cannot be served, for reasons that a relay
	// does not look into: Cloudly's mistake, or bytes that were changed on the way.
	TableContent Rule = "table-cannot-be-served"
	// TableBehindHint is an answer to a pull that is older than a hint which came
	// before the pull on the same socket (contract §11.1).
	TableBehindHint Rule = "table-older-than-its-hint"
	// TableWentBack is an answer that is older than an earlier one on the same
	// socket (contract §11.1).
	TableWentBack Rule = "table-went-back"
	// TableChanged is a table with another content than the one that was answered
	// before under its revision (contract §11.1).
	TableChanged Rule = "table-changed-under-its-revision"
	// TrafficQuestion is a question for counters that the relay had to refuse
	// itself (contract §11.4).
	TrafficQuestion Rule = "traffic-question-invalid"
	// ForeignCursor is a cursor that the ingress did not give for these days
	// (contract §11.4).
	ForeignCursor Rule = "traffic-cursor-not-given"
)

// The rules that all watch.
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
