package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// nothingKnown stands where there is no figure.
const nothingKnown = "-"

// ageText writes how long something lasts, in one or two units: 25s, 3m, 3h58m, 12d.
func ageText(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(0, d); {
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case d < 2*day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return strconv.FormatInt(int64(d/day), 10) + "d"
}

// timeText writes a moment. Whoever reads it and the relay may be in two time zones.
func timeText(t time.Time) string {
	if t.IsZero() {
		return nothingKnown
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// sizeText writes a size: 671 B, 1.2 MiB.
func sizeText[N uint64 | float64](n N) string {
	const units = "KMGTPE"
	size := float64(n)
	if size < 1024 {
		return strconv.Itoa(int(size)) + " B"
	}
	for i := range units {
		// Not 1024.0 of one unit, but 1.0 of the next.
		if size /= 1024; size < 1023.95 || i == len(units)-1 {
			return strconv.FormatFloat(size, 'f', 1, 64) + " " + units[i:i+1] + "iB"
		}
	}
	panic("relay: no unit of size")
}

// countText writes a number in at most six characters: 99999, 107k, 18M.
func countText[N uint64 | float64](n N) string {
	const units = "kMGTPE"
	count := float64(n)
	if count < 100_000 {
		return strconv.FormatFloat(count, 'f', 0, 64)
	}
	for i := range units {
		if count /= 1000; count < 9999.5 || i == len(units)-1 {
			return strconv.FormatFloat(count, 'f', 0, 64) + units[i:i+1]
		}
	}
	panic("relay: no unit of count")
}

// things writes a number of things.
func things[N int | uint64](n N, thing string) string {
	switch {
	case n == 1:
		return "1 " + thing
	case strings.HasSuffix(thing, "x"), strings.HasSuffix(thing, "sh"):
		thing += "e"
	}
	return countText(uint64(n)) + " " + thing + "s"
}

// or returns a text, or another one for none.
func or(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// factsText writes the figures of a check, in the order in which they came:
// "attempt=7, duration=12s". What cannot be read is left out.
func factsText(facts json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(facts))
	d.UseNumber()
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return ""
	}
	var parts []string
	for d.More() {
		name, err := d.Token()
		var value any
		if err != nil || d.Decode(&value) != nil {
			break
		}
		if part := factText(fmt.Sprint(name), value); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}

// factText writes one figure. Its name says what unit it has.
func factText(name string, value any) string {
	switch value := value.(type) {
	case json.Number:
		seconds, isTime := strings.CutSuffix(name, "Seconds")
		if n, err := value.Float64(); err == nil && isTime {
			return seconds + "=" + ageText(secondsOf(n))
		}
		return name + "=" + value.String()
	case string, bool:
		return fmt.Sprintf("%s=%v", name, value)
	}
	return ""
}

// secondsOf is a number of seconds that a peer says, which may be any.
func secondsOf(n float64) time.Duration {
	const longest = 100 * 365 * 24 * 3600
	return time.Duration(min(max(n, 0), longest) * float64(time.Second))
}
