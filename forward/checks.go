package forward

import (
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// Checks returns what an operator may want to know; nothing of it makes the
// relay not ready (design §9).
func (f *Forward) Checks(now time.Time) []duty.Check {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.judgeSessions(now)
	return []duty.Check{f.sessions, f.overload.check(now, f.total.bytes)}
}

// tableChanged is called at whatever changes the table, so that the age of a check
// is that of the change. The caller holds mu.
func (f *Forward) tableChanged() { f.judgeSessions(f.cfg.Wall()) }

// judgeSessions judges node-sessions anew. The caller holds mu.
func (f *Forward) judgeSessions(now time.Time) {
	c := duty.Check{Name: "node-sessions", Advice: true, State: duty.OK, Since: now}
	if n := f.table.unconfirmed(); n > 0 {
		c.State, c.Reason = duty.Pending, "nodes-returning"
		c.Hint = "Nodes register again after a return of Cloudly; this takes up to 15 seconds."
		if !f.table.attached {
			c.Reason = "cloudly-away"
			c.Hint = "Nodes cannot register while there is no session to Cloudly."
		}
		c.Facts = field.List{field.Count(n)}
	}
	f.sessions = c.After(f.sessions)
}

// overload is when requests were refused for load. It lasts overloadedFor beyond
// the last of them.
type overload struct {
	began time.Time // the one that lasts or lasted; the start of the room before any
	last  time.Time // when a request was last refused; zero before any
	told  time.Time // when that was last an event
}

// lasts reports whether an overload lasts. A wall clock that was set ends it.
func (o *overload) lasts(now time.Time) bool {
	return !o.last.IsZero() && now.Sub(o.last).Abs() < overloadedFor
}

// note notes a refusal, and reports whether an event is due.
func (o *overload) note(now time.Time) (tell bool) {
	if !o.lasts(now) {
		o.began = now
	}
	o.last = now
	if tell = now.Sub(o.told).Abs() >= overloadedFor; tell {
		o.told = now
	}
	return tell
}

func (o *overload) check(now time.Time, held int) duty.Check {
	c := duty.Check{Name: "node-load", Advice: true, State: duty.OK, Since: o.began}
	switch {
	case o.lasts(now):
		c.State, c.Reason = duty.Failing, "relay-overloaded"
		c.Hint = "Requests were refused because too much waits for an answer; look who fills the socket in the status."
		c.Facts = field.List{field.Bytes(held), field.Limit(allBytes)}
	case !o.last.IsZero():
		c.Since = o.last.Add(overloadedFor)
	}
	return c
}
