package hub

import "time"

// switcher decides whether a member's newest connection takes the place of the one
// that stands (design §5.1). The newest wins, until it looks like two ends with one
// key: then one connection stands for changesHeldTo at least. It belongs to a
// membership; times are monotonic.
type switcher struct {
	changed   bool
	last      time.Duration // of the last change, once changed
	alternate bool          // two ends alternate
}

// attempt decides about a connection that was confirmed while another stands.
// duplicate tells that two ends alternate from now on.
func (w *switcher) attempt(now time.Duration) (takes, duplicate bool) {
	recent := w.changed && now-w.last <= changesWithin
	if !recent {
		w.alternate = false
	}
	if w.alternate && now-w.last < changesHeldTo {
		return false, false
	}
	duplicate = recent && !w.alternate
	w.alternate = recent
	w.changed, w.last = true, now
	return true, duplicate
}
