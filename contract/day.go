package contract

import "time"

// IsUTCDay reports whether s is a real day written YYYY-MM-DD that round-trips
// through JavaScript's Date.UTC (contract §2.2). That function reads the years
// 0 to 99 as 1900 to 1999, so those do not round-trip.
func IsUTCDay(s string) bool {
	if len(s) != len(time.DateOnly) || s < "0100" {
		return false
	}
	day, err := time.Parse(time.DateOnly, s)
	return err == nil && day.Format(time.DateOnly) == s
}
