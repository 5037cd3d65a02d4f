package cloudly

import "time"

// backoff returns how long to wait after this many failures in a row: one
// second doubling to sixty, of which chance, in [0,1), takes away up to a half.
// So the wait never passes longestDelay, grows with each failure until it is
// there, and many relays that lost one Cloudly come back spread out (contract
// §5.8).
func backoff(failures int, chance float64) time.Duration {
	nominal := firstDelay
	for ; failures > 1 && nominal < longestDelay; failures-- {
		nominal *= 2
	}
	nominal = min(nominal, longestDelay)
	return nominal - time.Duration(chance*float64(nominal/2))
}
