package contract

import "strings"

// maximumCorestoreID bounds the ids of backups and restores. The grammar of
// database-backup identifiers is not in the seeds, their length is.
const maximumCorestoreID = 256

// maximumCorestorePath bounds a path that Corestore states. OWN.
const maximumCorestorePath = 1024

// isPlainText reports whether s is 1 to limit printable ASCII characters
// without a space: the least that a text of unstated grammar has to be before
// it is compared, counted or handed on.
func isPlainText(s string, limit int) bool {
	if len(s) == 0 || len(s) > limit {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// IsCorestorePath reports whether s is a path that the relay may ask a Corestore
// for: absolute, at most 1024 characters, of segments that are not empty and no
// dots alone. It holds no escape, query or fragment, so that no reader on the
// way can take it for another path or another host. OWN (design §4, row §12).
func IsCorestorePath(s string) bool {
	if len(s) > maximumCorestorePath {
		return false
	}
	rest, absolute := strings.CutPrefix(s, "/")
	if !absolute {
		return false
	}
	for segment := range strings.SplitSeq(rest, "/") {
		if segment == "" || segment == "." || segment == ".." || !isPathSegment(segment) {
			return false
		}
	}
	return true
}

func isPathSegment(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isAlphanumeric(c), c == '-', c == '.', c == '_', c == '~', c == ':':
		default:
			return false
		}
	}
	return true
}

// corestoreID judges the id of a backup or a restore.
func (v *verdict) corestoreID(member, s string) {
	v.require(isPlainText(s, maximumCorestoreID), member, "is not 1 to 256 printable characters")
}

// opaque bounds a member that passes through the relay to or from a Corestore.
// Nothing larger than an answer of Corestore's can have come from one.
func (v *verdict) opaque(member string, r Raw) {
	v.require(len(r) <= CorestoreAnswerLimit, member, "is larger than 4 MiB")
}

// present judges an opaque member that must be there. A reader has seen that it
// is; a value that this program made is judged here.
func (v *verdict) present(member string, r Raw) {
	v.require(len(r) > 0, member, "is missing")
	v.opaque(member, r)
}
