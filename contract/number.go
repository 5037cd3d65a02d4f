package contract

// MaximumSafeInteger is the largest integer that JavaScript counts exactly,
// 2^53−1. Every number of this vocabulary lies within ±MaximumSafeInteger.
const MaximumSafeInteger = 1<<53 - 1

// IsCounter reports whether n is a counter: a safe integer of at least 1.
func IsCounter(n int64) bool { return n >= 1 && n <= MaximumSafeInteger }

// IsCount reports whether n is a count: a safe integer of at least 0.
func IsCount(n int64) bool { return n >= 0 && n <= MaximumSafeInteger }

// IsUnixMilliseconds reports whether n can be a time: a safe integer of at
// least 0, in milliseconds since 1970 (contract §2.2).
func IsUnixMilliseconds(n int64) bool { return IsCount(n) }

// IsPort reports whether n is a port that can be dialled: 1 to 65535.
func IsPort(n int64) bool { return n >= 1 && n <= 65535 }

// parseSafeInteger reads a JSON number token that is a safe integer in plain
// digits. A fraction, an exponent and negative zero are refused even where the
// value would be integral (contract §3).
func parseSafeInteger(token []byte) (int64, bool) {
	digits := token
	negative := len(token) > 0 && token[0] == '-'
	if negative {
		digits = token[1:]
	}
	// Sixteen digits hold 2^53−1 and cannot overflow an int64.
	if len(digits) == 0 || len(digits) > 16 || digits[0] == '0' && (negative || len(digits) > 1) {
		return 0, false
	}
	var n int64
	for _, c := range digits {
		if !isDigit(c) {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	if n > MaximumSafeInteger {
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, true
}
