package forward

import "serve.zone/relay/contract"

// load is what one socket has in flight.
type load struct {
	count [directions]int
	bytes int // memory, both directions
}

// idle reports whether nothing is in flight.
func (l *load) idle() bool { return l.count[up] == 0 && l.count[down] == 0 }

// total is what all sockets have in flight.
type total struct {
	load
	strangers int // memory of registrations of sockets that are not bound
}

// cost is one request in flight, as it was admitted.
type cost struct {
	direction direction
	bytes     int
	stranger  bool // its socket was not bound
}

// admit enters a request, or returns the refusal of one that would pass a bound.
func (t *total) admit(l *load, c cost) *contract.Refusal {
	requests := requestsInFlight
	if c.stranger {
		requests = strangerRequests
	}
	switch {
	case l.count[c.direction] >= requests:
		return refusal(contract.RelayOverloaded, "too many requests of this node wait for an answer")
	case l.bytes+c.bytes > nodeBytes:
		return refusal(contract.RelayOverloaded, "the requests of this node that wait for an answer hold too much")
	case c.stranger && t.strangers+c.bytes > strangerBytes:
		return refusal(contract.RelayOverloaded, "the registrations that wait for an answer hold too much")
	case t.bytes+c.bytes > allBytes:
		return refusal(contract.RelayOverloaded, "all requests that wait for an answer hold too much")
	}
	t.move(l, c, 1)
	return nil
}

// release takes a request out that was admitted.
func (t *total) release(l *load, c cost) { t.move(l, c, -1) }

func (t *total) move(l *load, c cost, sign int) {
	for _, sum := range []*load{l, &t.load} {
		sum.count[c.direction] += sign
		sum.bytes += sign * c.bytes
	}
	if c.stranger {
		t.strangers += sign * c.bytes
	}
}
