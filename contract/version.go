package contract

import (
	"cmp"
	"strings"
)

// MaximumReleaseVersionLength bounds the text of a release version. OWN: the
// seeds name a maximumReleaseVersionLength without its value. Three components
// of the largest 64-bit number and two dots fit.
const MaximumReleaseVersionLength = 64

// IsReleaseVersion reports whether s is a release version: MAJOR.MINOR.PATCH,
// digits only, no leading zeros, nothing before or after (contract §2.2).
func IsReleaseVersion(s string) bool {
	_, ok := splitReleaseVersion(s)
	return ok
}

// CompareReleaseVersions orders two release versions by their numeric
// components: -1, 0 or +1. Both must satisfy IsReleaseVersion; anything else is
// a programming error and panics (contract §4).
func CompareReleaseVersions(a, b string) int {
	left, right := mustSplitReleaseVersion(a), mustSplitReleaseVersion(b)
	for i := range left {
		if c := compareDigits(left[i], right[i]); c != 0 {
			return c
		}
	}
	return 0
}

// releaseMajor returns the first component of a release version.
func releaseMajor(s string) string { return mustSplitReleaseVersion(s)[0] }

// splitReleaseVersion keeps the components as digits, so that no size of a
// component can overflow a number.
func splitReleaseVersion(s string) ([3]string, bool) {
	var parts [3]string
	if len(s) > MaximumReleaseVersionLength || strings.Count(s, ".") != 2 {
		return parts, false
	}
	parts[0], s, _ = strings.Cut(s, ".")
	parts[1], parts[2], _ = strings.Cut(s, ".")
	for _, p := range parts {
		if len(p) == 0 || len(p) > 1 && p[0] == '0' {
			return parts, false
		}
		for i := 0; i < len(p); i++ {
			if !isDigit(p[i]) {
				return parts, false
			}
		}
	}
	return parts, true
}

func mustSplitReleaseVersion(s string) [3]string {
	parts, ok := splitReleaseVersion(s)
	if !ok {
		panic("contract: compared text is not a release version")
	}
	return parts
}

// compareDigits orders two numbers without leading zeros: the longer one is the
// larger, and of equal lengths the text decides.
func compareDigits(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
