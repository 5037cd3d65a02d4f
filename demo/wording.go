package demo

import (
	"fmt"
	"strconv"
	"time"
)

// sizeText writes a size for a person, in binary units where it is even.
func sizeText(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return strconv.FormatInt(n>>20, 10) + " MiB"
	case n >= 1<<20:
		return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MiB"
	case n >= 1<<10:
		return strconv.FormatFloat(float64(n)/(1<<10), 'f', 1, 64) + " KiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// count writes a number of things.
func count[N ~int | ~int64 | ~uint64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// clockText is a time of the day as evidence shows it.
func clockText(t time.Time) string { return t.Local().Format("15:04:05.000") }

// seconds is a duration for programs, without the digits that mean nothing.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// answered says what came of a request that was to be refused.
func answered(err error) string {
	if err == nil {
		return "it was accepted"
	}
	return err.Error()
}
