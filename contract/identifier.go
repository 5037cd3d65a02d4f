package contract

// Lengths of the identifier vocabularies (contract §2.1).
const (
	maximumIdentifierLength = 200
	maximumNodeIDLength     = 128
)

// IsIdentifier reports whether s is a canonical identifier:
// ^[A-Za-z0-9][A-Za-z0-9:._-]{0,199}$ (contract §2.1).
func IsIdentifier(s string) bool {
	if len(s) == 0 || len(s) > maximumIdentifierLength || !isAlphanumeric(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case isAlphanumeric(c), c == ':', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// IsNodeID reports whether s is a node id: ^[A-Za-z0-9_-]{1,128}$. It is not
// the canonical rule: a leading '-' or '_' is legal, '.' and ':' are not
// (contract §2.1).
func IsNodeID(s string) bool {
	if len(s) == 0 || len(s) > maximumNodeIDLength {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; !isAlphanumeric(c) && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// IsInstanceNonce reports whether s is a canonical lower-case UUID, the form of
// nodeInstanceNonce (contract §2.2). Version and variant are not judged.
func IsInstanceNonce(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !isLowerHex(s[i]) {
				return false
			}
		}
	}
	return true
}

// maximumPolicyDomainLength bounds a workload policy domain. OWN: the seeds
// state no text form (contract O24).
const maximumPolicyDomainLength = 256

// IsPolicyDomain reports whether s can name a workload policy domain: 1 to 256
// printable ASCII characters, opaque and compared exactly (contract O24).
func IsPolicyDomain(s string) bool {
	if len(s) == 0 || len(s) > maximumPolicyDomainLength {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLowerHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' }

// isLowerHexText reports whether s is exactly n lower-case hex digits.
func isLowerHexText(s string, n int) bool {
	if len(s) != n {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !isLowerHex(s[i]) {
			return false
		}
	}
	return true
}
