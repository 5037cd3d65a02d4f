package listener

import (
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// Bounds of connections.
const (
	// maxSockets bounds the sockets that stand or are being upgraded (contract
	// §16). A further handshake is answered 503.
	maxSockets = contract.ListenerSockets
	// maxConnections bounds TCP connections of every kind: as many again as
	// sockets, for image pulls and handshakes under way. A further one is closed
	// at once, so that its client does not wait for nothing.
	maxConnections = 2 * contract.ListenerSockets
	// maxHeader bounds the header of a request. The largest we expect bears a
	// registry token of a few KiB; net/http adds 4 KiB.
	maxHeader = 32 << 10
)

// Deadlines of a connection that is no socket. An upgraded connection has none
// of them (B208): net/http clears its deadlines when it gives it up.
const (
	// headerWait bounds the TLS handshake, and from the first byte of a request
	// on its header.
	headerWait = 10 * time.Second
	// plainWait bounds what is left of a request that is answered here: the body
	// that net/http throws away, and the few bytes of the answer.
	plainWait = 10 * time.Second
	// bodyWait bounds the body of a request that goes to the registry. Pulls have
	// none, so only a client that stalls meets it.
	bodyWait = 30 * time.Second
	// idleWait is how long a connection may rest between two requests, as long
	// as image clients keep one between the layers of a pull.
	idleWait = 60 * time.Second
)

// Bounds of a socket whose peer has not registered.
const (
	// registrationWait is the time to the first accepted registration.
	registrationWait = contract.FirstRegistrationTimeout
	// unregisteredRequests bounds what an unbound socket has in flight: its
	// registration, and one more sent in haste. Each may hold a frame.
	unregisteredRequests = 2
	// unregisteredQueue bounds the memory of answers that an unbound peer does
	// not read. It is room for fourteen refusals; without it 1,024 peers could
	// have the carrier's bound for the largest answer queued, each (B169).
	unregisteredQueue = 64 << 10
)

// Times of a drain (design §8).
const (
	// closeSpread is the time over which sockets are closed: of the three
	// seconds of an idle drain one is left to the rest of it.
	closeSpread = 2 * time.Second
	// closeStep is the distance of two closes while there are few, and how often
	// busy sockets are looked at.
	closeStep = 10 * time.Millisecond
	// lastWords is what a plain request that has ended gets to flush its answer.
	lastWords = 250 * time.Millisecond
	// endWait bounds how long Close waits for sockets: a peer that does not
	// answer a close frame costs two seconds, a flush another two.
	endWait = 5 * time.Second
)

const (
	// retryAfter is the hint of a 503, in seconds.
	retryAfter = "5"
	// fullEvery is the least distance of two events that say a bound was met: a
	// stranger who dials in a loop must not fill the ring of events.
	fullEvery = time.Minute
)

// socketLimits are the carrier's bounds of one socket.
var socketLimits = typedsocket.Limits{
	Frame: contract.UnregisteredFrameLimit,
	Close: contract.UnregisteredFrameLimit,
	// An ingress is answered with a route table of up to 15 MiB.
	Own:    typedsocket.DefaultOwn,
	Unread: unregisteredQueue,
	// One peer has one node's bound, in however many flows.
	Flow:  typedsocket.DefaultFlow,
	Flows: typedsocket.DefaultFlow,
	// What Cloudly may have in flight to a node is what a node may have to it,
	// and the relay's own calls come beside it.
	Pending:      2 * contract.NodeRequestsInFlight,
	Serving:      contract.NodeRequestsInFlight,
	ServingBytes: contract.NodeInFlightLimit,
}
