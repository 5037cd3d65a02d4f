package operator

// places bounds how much of something is under way at once. Nobody waits for a
// place: who gets none is refused.
type places chan struct{}

func newPlaces(n int) places { return make(places, n) }

// take takes a place, if there is one; give gives it back.
func (p places) take() bool {
	select {
	case p <- struct{}{}:
		return true
	default:
		return false
	}
}

func (p places) give() { <-p }

// level is how many are taken.
func (p places) level() Level { return Level{Open: len(p), Limit: cap(p)} }
