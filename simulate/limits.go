package simulate

import (
	"time"

	"serve.zone/relay/contract"
)

const (
	// DefaultRecordLimit bounds the bytes of messages that a Cloudly records: a
	// rehearsal of some hours, or a test with maximal bodies.
	DefaultRecordLimit = 64 << 20

	// DefaultNodeRecordLimit is the same for one node, of which there are many: a
	// few maximal bodies.
	DefaultNodeRecordLimit = 8 << 20

	// frameOverhead is what a recorded message costs beside its text, so that
	// empty messages are bounded as well.
	frameOverhead = 128

	// maximumViolations is enough to see what goes wrong; the rest repeats it.
	maximumViolations = 1024

	// maximumRegistrations bounds the accepted registrations that are kept: one
	// for each start and each reconnect of a relay.
	maximumRegistrations = 4096

	// maximumHistory bounds the registrations of one node that can be replayed.
	maximumHistory = 256

	// maximumCaptures bounds the log captures of one node whose place is kept,
	// as a node keeps 64 ended ones (contract §19).
	maximumCaptures = 128

	// maximumSigned bounds the signed renewals that are kept for a node: a few
	// runs of the grid.
	maximumSigned = 128

	// maximumJudgements bounds the renewals a node remembers having judged: a
	// month on the grid. It bounds the tables of an ingress as well.
	maximumJudgements = 4320

	// maximumReasons bounds the reasons of one message: the rest repeats them, and
	// a table has many routes.
	maximumReasons = 64

	// maximumBuckets bounds the buckets of an ingress, and those that a Cloudly
	// keeps of all of them: two months of a hundred hostnames.
	maximumBuckets = 1 << 13

	// maximumTrafficPages bounds one read of counters, so that pages without an end
	// are noticed: all buckets, two a page.
	maximumTrafficPages = maximumBuckets / 2
)

// cloudlyFrame bounds a message that a simulated Cloudly takes. The real bound
// is not stated; the relay's own of the other direction stands in.
const cloudlyFrame = contract.CloudlyFrameLimit

const (
	// DefaultWait bounds a wait whose context has no deadline.
	DefaultWait = time.Minute

	// DefaultIdentityLife is how long a JWT lives.
	DefaultIdentityLife = time.Hour

	// custodyGrace is how long a node's request may still be on its way when the
	// relay hears that its custody has ended: R20 gives it as long to close the
	// nodes' sockets.
	custodyGrace = time.Second

	// headerWait bounds how long a client may take for the head of its request.
	headerWait = 10 * time.Second
)

// Reconnects of a node. The first two are the defaults of the public
// TypedSocket client (contract §5.8).
const (
	DefaultFirstBackoff = time.Second
	DefaultLastBackoff  = time.Minute

	// stableAfter is how long a session must have stood for its end to count as
	// a new failure and not as one more of the same.
	stableAfter = 10 * time.Second
)

// Bounds of what an ingress serves. OWN: they keep a rehearsal on one machine in
// its bounds and let ordinary clients pass.
const (
	// maximumConnections bounds the connections of clients, and the idle ones to
	// backends.
	maximumConnections = 512

	// maximumIdleBackends bounds the idle connections to one destination.
	maximumIdleBackends = 8

	// maximumHeader bounds the head of a request and of an answer: many cookies.
	maximumHeader = 64 << 10

	// clientIdle is how long a connection of a client may stand without a byte in
	// either direction.
	clientIdle = 2 * time.Minute

	// connectWait bounds the connection to a destination.
	connectWait = 5 * time.Second

	// answerWait bounds the wait for the head of a backend's answer. It is below
	// clientIdle, so that the client is told.
	answerWait = time.Minute

	// acceptAgain is how soon a listener that failed is asked again.
	acceptAgain = 100 * time.Millisecond
)
