package escrow

import (
	"time"

	"serve.zone/relay/contract"
)

// Bounds of what is held. Beyond them a hold is refused relay-overloaded, which is
// not among the refusals of contract §9.3: nothing is wrong with the run.
const (
	// maximumRuns is how many nodes the design counts on in one cluster.
	maximumRuns = 256
	// maximumHeldBytes bounds the records of all runs together. It gives 256 runs
	// 128 KiB each, the most that contract §19 expects of a hold; a run on the
	// intended grid has a quarter of it.
	maximumHeldBytes = 32 << 20
	// maximumRecords bounds the nodes that are remembered with nothing but what
	// they acknowledged. Those that acknowledged longest ago are forgotten first.
	maximumRecords = 1024
	// rememberedProjections bounds the projections whose acknowledged sequence is
	// remembered for a node. An outage acknowledges at most one, since a run can
	// only be replaced under a session.
	rememberedProjections = 8
)

// Times of a release (contract §9.5).
const (
	// firstRetry is how long after a push that was not acknowledged the next one
	// follows; it doubles up to lastRetry.
	firstRetry = 5 * time.Second
	lastRetry  = 60 * time.Second
	// pushWait bounds one push, as any call on one hop.
	pushWait = contract.ForwardTimeout
)

// Times of the clocks (design §4, O36).
const (
	// suspectStep is how far the wall clock may step back before it is not trusted.
	// Less is corrected all the time where time is kept.
	suspectStep = 30 * time.Second
	// clockCheck is how often the clocks are compared while something may have to
	// be pushed: no timer tells of a wall clock that was set.
	clockCheck = time.Second
	// readingTakes is how long a reading of both clocks may take, and readings how
	// often it is taken for one that does not take longer.
	readingTakes = time.Second
	readings     = 3
	// longestSleep bounds any wait, so that times far away cannot overflow.
	longestSleep = time.Hour
)

const (
	// suspendWait is how long Suspend holds pushes back if nothing follows it. An
	// end of custody follows within a second (contract R20).
	suspendWait = 5 * time.Second
	// dropWait bounds how long DropCustody waits for pushes whose context has ended
	// and whose socket was cut.
	dropWait = time.Second
	// tellEvery is the least distance of two events about holds that were refused
	// by one name. Cloudly may ask again every few seconds, for every node.
	tellEvery = time.Minute
)
