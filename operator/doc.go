// Package operator is the operator endpoint: liveness, readiness, status,
// events, metrics and profiles over plain HTTP on an address of its own
// (contract §17; design §9). It is itself a duty.
//
// # What it promises
//
// It answers GET and HEAD alone:
//
//	/livez, /healthz   200 while the process lives
//	/readyz            200 when every required check is OK, else 503 with one
//	                   line for each that is not; ?verbose lists all checks,
//	                   ?format=json or Accept: application/json as JSON
//	/status            one JSON document, see SchemaVersion
//	/events            a duty.Page; ?fromSeq=N&limit=N&wait=SECONDS
//	/metrics           what the duties count, Go runtime and process included,
//	                   in the formats of Prometheus
//	/explain           an Explanation: which rule of the hub's network admits or
//	                   drops a packet ?from=ADDRESS&to=ADDRESS, for peers with a
//	                   loopback address only; 404 and no-hub where there is none
//	/debug/pprof/      profiles, for peers with a loopback address only
//	/                  this list
//
// Each check has an age: the duty's own, or, where the duty does not tell one,
// since when it has been seen as it is, which is the start for one that was never
// seen otherwise.
//
// A duty that panics when it is asked, or does not answer in time, costs its own
// part of an answer and nothing else: it shows as a failing check named
// "panicked" or "unresponsive", whose reason is the question it failed at.
//
// The probes (/livez, /healthz, /readyz) are answered as long as a connection can
// be had; everything else is refused with 503 when too much of it is under way.
// Nothing here makes a duty wait: duties are only read.
//
// # What it never does
//
// It shows nothing of contract §18. Of a request only its path, a few parameters
// and headers are read; nothing of it is repeated in an answer, a log line, an
// event or a label, but that /explain says which addresses it speaks of. There is no access log. A body is never read: a request with
// one is refused and its connection ends.
//
// It serves no name: a Host header that is neither an address nor localhost is
// refused with 421, so that a web page cannot reach the endpoint through a name
// that it made point here (DNS rebinding). There is no http.ServeMux: it answers
// with redirects that repeat the path.
//
// The goroutine profile with debug=2 is refused, since it prints arguments of
// functions, and the command line is not shown.
//
// # Trust
//
// Who reaches the address reads the relay's state; there is no login. Profiles and
// explanations are bound to the address of the connection, so a proxy on the same
// machine must not hand on /debug/ and /explain.
//
// # Goroutines
//
// Serve runs in its caller's. Each connection has one of net/http's, which Drain
// and Close end. A question to a duty runs on a goroutine of its own, never more
// than one at a time inside one duty; one that hangs stays until the duty lets go.
//
// # Lock order
//
// Operator.mu, subject.mu and ages.mu are never held together, nor while a duty, a
// hook or a network call runs.
//
// # Limits
//
// They stand in limits.go, each with its reason.
package operator
