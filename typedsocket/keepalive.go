package typedsocket

import "time"

// keepalive decides when to ping and when a peer counts as gone. Times are
// since the socket was born. It is a pure state machine; the writer asks it.
type keepalive struct {
	nextPing   time.Duration
	unanswered time.Duration // when the first ping of the present silence was written
	waiting    bool          // unanswered is set
}

// verdict is what keepalive wants done now.
type verdict struct {
	ping bool
	dead bool
	wait time.Duration // ask again after this, if nothing else happens
}

// step judges the time now, with the last byte of the peer heard at heard.
//
// A peer is dead when nothing arrived for DeadAfter although a ping has been
// out for pingGrace. The second condition only matters when pings could not
// leave for a while: then the writer was busy with a large frame, and a stalled
// write has a deadline of its own.
func (k *keepalive) step(now, heard time.Duration) verdict {
	if k.waiting && heard >= k.unanswered {
		k.waiting = false
	}
	var v verdict
	silentUntil := heard + DeadAfter
	if k.waiting {
		silentUntil = max(silentUntil, k.unanswered+pingGrace)
		if now >= silentUntil {
			v.dead = true
			return v
		}
	}
	if now >= k.nextPing {
		v.ping = true
		k.nextPing = now + PingEvery
		if !k.waiting {
			k.waiting, k.unanswered = true, now
		}
	}
	next := k.nextPing
	if k.waiting && silentUntil > now {
		next = min(next, silentUntil)
	}
	v.wait = next - now
	return v
}
