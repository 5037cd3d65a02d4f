package ingress

import (
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// Bounds of what is in flight.
const (
	// maxRegistrations bounds the registrations that wait for Cloudly. Anybody who
	// reaches the listener can cause one; each holds at most 64 KiB twice.
	maxRegistrations = 64
	// maxRegistrationsOfOne bounds those of one socket: its registration, and one
	// more sent in haste.
	maxRegistrationsOfOne = 2
	// maxPushes bounds the pushed tables that wait to be judged, each at most a
	// frame. Cloudly sends a whole table each time, so that two in a row are rare.
	maxPushes = 4
	// maxTraffic bounds the questions for counters that wait for an ingress, each
	// with a page of at most 1 MiB. Cloudly asks for one page after the other.
	maxTraffic = 8
)

// requestLimit bounds a request that is read here, route tables apart (contract
// §19).
const requestLimit = contract.IngressRequestLimit

// maxUnread is how much may wait to be read by an ingress that asks for the table:
// beside it there must be room for one more largest table. Without this bound an
// ingress that asks three times before it reads would lose its socket.
const maxUnread = typedsocket.DefaultOwn - contract.RouteTableLimit - 1<<20

// Waits.
const (
	// ownRetry is how long an ingress waits that the relay itself refused. Nothing
	// of it reaches Cloudly, so that it can be short (contract §11.2).
	ownRetry = 5 * time.Second
	// hintWait bounds the wait for the answer to a hint. One that was not answered
	// keeps the next newer one back for as long.
	hintWait = 5 * time.Second
	// trafficWait bounds the wait for one ingress's page. It is below what Cloudly
	// waits itself (contract O38), so that Cloudly is told which ingress it was.
	trafficWait = 20 * time.Second
	// suspendWait is how long Suspend keeps everything back if nothing follows it. An
	// end of custody follows within a second (contract R20).
	suspendWait = 5 * time.Second
	// pullWait bounds one answer to the pull, pullBound the pull as a whole: a peer
	// may ask for retries, each after a time of its own choosing.
	pullWait  = contract.ForwardTimeout
	pullBound = 4 * pullWait
)
