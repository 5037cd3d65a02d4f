package contract

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	bearerPrefix    = "clusterRelayToken_"
	bearerHexLength = 64
)

// IsRelayBearer reports whether s is a relay authorization:
// "clusterRelayToken_", the credential id, "_" and 64 lower-case hex digits,
// byte for byte and without a line end (contract §5.1).
func IsRelayBearer(s string) bool {
	_, ok := RelayBearerCredentialID(s)
	return ok
}

// RelayBearerCredentialID returns the credential id that a relay authorization
// names. The id may itself contain "_", so the text is read from the right. The
// id is public; the authorization is not and must not be shown.
func RelayBearerCredentialID(s string) (string, bool) {
	rest, found := strings.CutPrefix(s, bearerPrefix)
	cut := len(rest) - bearerHexLength - 1
	if !found || cut < 1 || rest[cut] != '_' || !isLowerHexText(rest[cut+1:], bearerHexLength) {
		return "", false
	}
	return rest[:cut], IsIdentifier(rest[:cut])
}

// Bounds of a Corestore control token in UTF-8 bytes (contract §13).
const (
	MinimumControlTokenBytes = 32
	MaximumControlTokenBytes = 4096
)

// IsControlToken reports whether s is a Corestore control token: 32 to 4096
// bytes of UTF-8 without whitespace (contract §13). Whitespace is what either
// JavaScript or Go counts as such.
func IsControlToken(s []byte) bool {
	if len(s) < MinimumControlTokenBytes || len(s) > MaximumControlTokenBytes || !utf8.Valid(s) {
		return false
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRune(s[i:])
		if unicode.IsSpace(r) || r == '\uFEFF' {
			return false
		}
		i += n
	}
	return true
}
