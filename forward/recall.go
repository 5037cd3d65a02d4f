package forward

import "time"

// recall decides when the sockets that are still bound under an earlier Cloudly
// session are closed, so that their nodes dial and register again (design §4,
// O9). Each close takes a node out of reach until it is back, so the next one
// waits for the last one's return, but never beyond its place in a schedule that
// ends in time.
type recall struct {
	total  int           // sockets to close, counted after recallSettle
	closed int           // how many have been
	last   time.Duration // when the last one was, since the session began
}

// next returns when the next socket is due, counted from the session's begin.
// back tells that the node closed last has registered again.
func (r recall) next(back bool) time.Duration {
	step := min(recallSpread/time.Duration(max(r.total, 1)), recallStep)
	due := recallSettle + time.Duration(r.closed)*step
	if r.closed > 0 && back {
		due = min(due, r.last+recallGap)
	}
	return due
}

// overdue reports whether a socket that has a registration in flight is not
// spared any longer.
func overdue(since time.Duration) bool { return since >= recallSettle+recallSpread-recallRetry }
