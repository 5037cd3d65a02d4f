package operator

import "time"

// Bounds of what is under way at once. What is refused for them is counted.
const (
	// maxConnections bounds the connections on which everything is answered: a
	// scraper, a dashboard, some watching command lines, probes.
	maxConnections = 64
	// reserve is how many more are taken on which only the probes are answered,
	// once each: a crowd of readers must not make an orchestrator restart a relay
	// that is well. Any further connection is closed at once.
	reserve = 16
	// maxAnswers bounds the large answers (status, events, metrics) that are made
	// or written at once. Each may take a few MiB.
	maxAnswers = 16
	// maxPolls bounds the requests that wait for an event. They hold a connection
	// and no memory to speak of; a quarter of the connections may do that.
	maxPolls = 16
	// maxProfiles bounds profiles over time, of which the runtime has one a kind;
	// maxDumps bounds those of a moment, which stop the world for it.
	maxProfiles = 1
	maxDumps    = 1
)

// Deadlines.
const (
	// headerWait bounds a request's header, on a new connection from its start.
	headerWait = 5 * time.Second
	// idleWait is how long a connection may rest between two requests: longer
	// than the usual interval of a scrape, one minute.
	idleWait = 90 * time.Second
	// answerWait bounds the making and the writing of an answer. It is
	// Prometheus' own default for a whole scrape.
	answerWait = 10 * time.Second
	// askWait bounds a question to all duties. They promise not to block, so only
	// a mistake meets it; a probe with its usual few seconds should still be told.
	askWait = 2 * time.Second
	// lastWords is what an answered request gets to flush its answer in a drain.
	lastWords = 250 * time.Millisecond
	// endWait bounds how long Close waits for requests: their connections are
	// closed by then, so only a duty that hangs takes the time of the two
	// questions that a status is made of.
	endWait = 2*askWait + time.Second
)

// Bounds of a request.
const (
	// maxHeader bounds a request's header; net/http adds 4 KiB. Browsers send
	// below 2 KiB.
	maxHeader = 8 << 10
	// defaultPage and maxPage bound the events of one answer: at some 400 bytes
	// each 0.4 and 1.6 MiB. A reader asks on from Page.Next.
	defaultPage = 1000
	maxPage     = 4096
	// maxPollSeconds bounds how long a request waits for an event. Middleboxes
	// cut connections that rest for a minute.
	maxPollSeconds = 30
	// A CPU profile samples 100 times a second and a minute of it is plenty; an
	// execution trace may grow by megabytes a second.
	defaultProfileSeconds = 30
	maxProfileSeconds     = 60
	defaultTraceSeconds   = 1
	maxTraceSeconds       = 10
	// maxSequence is the largest whole number that JSON carries exactly
	// everywhere (contract §2.2).
	maxSequence = 1<<53 - 1
)

// retryAfter is the hint of a 503 that says "too much at once", in seconds.
const retryAfter = "1"
