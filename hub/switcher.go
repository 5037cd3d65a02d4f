package hub

import "time"

// switcher decides whether a member's newest connection takes the place of the one that
// stands (design §5.1). The newest wins, until it looks like two ends with one key: then the
// one that stands is asked, and if it answers the key is named, and the change is held. One
// that does not answer has nobody behind it any more: a node that was killed and started
// again, however often, or lost its way, is never taken for two.
//
// Named is a key at whose second change within changesWithin or third within changesOver the
// older end lived. From then on one connection stands for changesHeldTo at least. It does
// not stand for longer: who dials first says nothing about whose the key is, and an end that
// stole it is more in haste. It belongs to a membership; times are monotonic.
type switcher struct {
	changes  [mostChanges]time.Duration // the last ones, oldest first, after which the older end may have lived
	count    int
	named    bool
	attempts time.Duration // while named: the last that two ends made
}

// forget forgets what was too long ago.
func (w *switcher) forget(now time.Duration) {
	for w.count > 0 && now-w.changes[0] > changesOver {
		copy(w.changes[:], w.changes[1:])
		w.count--
	}
	if w.named && now-w.attempts > changesOver {
		w.named = false
	}
}

// suspects reports whether the end that stands has to be asked whether it lives, before a
// newer one that was confirmed takes its place.
func (w *switcher) suspects(now time.Duration) bool {
	w.forget(now)
	return w.named || w.count >= mostChanges-1 || w.recent(now)
}

func (w *switcher) recent(now time.Duration) bool {
	return w.count > 0 && now-w.changes[w.count-1] <= changesWithin
}

// attempt decides about a connection that was confirmed while another stands, of which lives
// tells whether it has answered, if it had to be asked. duplicate tells that the key is named
// from now on.
func (w *switcher) attempt(now time.Duration, lives bool) (takes, duplicate bool) {
	switch {
	case !w.suspects(now):
	case !lives:
		return true, false
	default:
		held := w.named && w.count > 0 && now-w.changes[w.count-1] < changesHeldTo
		duplicate, w.named = !w.named, true
		w.attempts = now
		if held {
			return false, duplicate
		}
	}
	if w.count == mostChanges {
		copy(w.changes[:], w.changes[1:])
		w.count--
	}
	w.changes[w.count] = now
	w.count++
	return true, duplicate
}

// alternate reports whether two ends use the key.
func (w *switcher) alternate(now time.Duration) bool {
	w.forget(now)
	return w.named
}
