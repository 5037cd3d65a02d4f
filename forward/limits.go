package forward

import (
	"time"

	"serve.zone/relay/contract"
)

// Bounds of what is in flight (contract §16, §19). Memory is counted, not text:
// it is memory that has to hold out.
const (
	// requestsInFlight bounds what waits for an answer for one node in each
	// direction. They are counted apart, so that a node that floods Cloudly can
	// still be told something by it.
	requestsInFlight = contract.NodeRequestsInFlight
	// nodeBytes bounds the memory of one node's requests in flight, both
	// directions together.
	nodeBytes = contract.NodeInFlightLimit
	// allBytes bounds the memory of all requests in flight.
	allBytes = contract.InFlightLimit

	// strangerRequests bounds the registrations in flight of a socket that is
	// not bound yet. A node sends one at a time; two are one that it gave up on.
	strangerRequests = 4
	// strangerBytes bounds the memory of registrations in flight of all sockets
	// that are not bound. Anybody can open those and name any node, so they get
	// an eighth: the nodes that are known keep the rest. What of it has not left
	// for Cloudly shares one flow, whose bound is the carrier's.
	strangerBytes = allBytes / 8
)

// maximumSession bounds the session of a binding, in bytes. It has some hundred;
// 256 nodes hold one each, and a request's is compared with it as a value only
// up to this size, so that comparing stays cheap whatever a node sends.
const maximumSession = 16 << 10

// Times of the return of Cloudly (design §4, O9).
const (
	// recallSettle is how long a new session must have stood before the first
	// socket is closed.
	recallSettle = 2 * time.Second
	// recallSpread bounds the time from the first to the last.
	recallSpread = 10 * time.Second
	// recallStep is how long one is waited for before the next is closed, when
	// there are few: a client's first wait before it dials again is a second.
	recallStep = 2 * time.Second
	// recallGap is the least distance of two, when each comes back at once. 256
	// nodes take five seconds then.
	recallGap = 20 * time.Millisecond
	// recallRetry is how soon a socket is looked at again that was left alone
	// because a registration is in flight on it.
	recallRetry = 100 * time.Millisecond
)

// Times of a drain (design §8).
const (
	// drainSpread bounds the time over which idle sockets are closed. The design
	// allows 3 s, within which an idle drain must be over: a second is left for
	// the closing handshakes.
	drainSpread = 2 * time.Second
	// drainGap is the distance of two when there are few.
	drainGap = 50 * time.Millisecond
	// drainLinger is how long Drain waits for the peers' half of the closing
	// handshakes after the last close.
	drainLinger = time.Second
)

// overloadedFor is how long an overload is shown by a check after it happened.
const overloadedFor = time.Minute
