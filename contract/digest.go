package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const digestPrefix = "sha256:"

// IsDigest reports whether s is a digest: "sha256:" and 64 lower-case hex
// digits (contract §2.2).
func IsDigest(s string) bool {
	digits, found := strings.CutPrefix(s, digestPrefix)
	return found && IsSHA256(digits)
}

// IsSHA256 reports whether s is a bare SHA-256: 64 lower-case hex digits, as
// closure descriptors and chunks carry it (contract §2.2).
func IsSHA256(s string) bool { return isLowerHexText(s, 2*sha256.Size) }

// DigestKind names a record that carries its own digest.
type DigestKind int

// The records whose digest the relay or a peer in rehearsal computes.
const (
	// DNSLeaseRenewalDigest is the digest of a DNS lease renewal (contract §9.1).
	DNSLeaseRenewalDigest DigestKind = iota
	// RelayCredentialDigest is the digest of IClusterRelayCredential (contract §5.1).
	RelayCredentialDigest
	// AcceptedRegistrationDigest is the digest of
	// IClusterRelayAcceptedRegistration (contract §5.3).
	AcceptedRegistrationDigest
)

// digestDomain says what is hashed for one kind: canonical JSON of
// { domain, <member>: record without its digest }.
type digestDomain struct {
	domain string
	member string
}

// digestDomains is the one place where digest domains are spelled (contract §3,
// O6). The seeds state the construction and other domains, but none of these
// three: all of them are this product's choice, made in the pattern of the
// stated names, and correcting one is a change of one line here and of the
// golden vectors.
var digestDomains = [...]digestDomain{
	DNSLeaseRenewalDigest:      {"serve.zone/runtime-network-dns-lease-renewal", "renewal"},
	RelayCredentialDigest:      {"serve.zone/cluster-relay-credential", "credential"},
	AcceptedRegistrationDigest: {"serve.zone/cluster-relay-accepted-registration", "registration"},
}

// digestMember is the one member of a record that does not take part in its
// own digest.
const digestMember = "digest"

// Digest returns the digest of a record, "sha256:" and 64 hex digits. The
// record is any JSON object that has a canonical form; a top-level member
// "digest" is left out, all others take part (contract §3). The error is an
// *InvalidError.
func Digest(kind DigestKind, record []byte) (string, error) {
	canonical, err := Canonical(record)
	if err != nil {
		return "", err
	}
	if canonical[0] != '{' {
		return "", &InvalidError{What: "digested record", Reasons: []string{"body: is not an object"}}
	}
	d := digestDomains[kind]
	w := beginObject(make([]byte, 0, len(canonical)+128))
	first := d.member < "domain" // the wrapper is canonical, too
	if !first {
		w.text("domain", d.domain)
	}
	w.name(d.member)
	w.dst = appendWithout(w.dst, canonical, digestMember)
	if first {
		w.text("domain", d.domain)
	}
	sum := sha256.Sum256(w.end())
	return digestPrefix + hex.EncodeToString(sum[:]), nil
}

// appendWithout copies a canonical object without one of its members.
func appendWithout(dst, object []byte, name string) []byte {
	dst = append(dst, '{')
	first := true
	for rest := object[1:]; rest[0] != '}'; {
		if rest[0] == ',' {
			rest = rest[1:]
		}
		nameEnd := stringLength(rest)
		end := nameEnd + 1 + valueLength(rest[nameEnd+1:])
		if string(rest[1:nameEnd-1]) != name {
			if !first {
				dst = append(dst, ',')
			}
			dst, first = append(dst, rest[:end]...), false
		}
		rest = rest[end:]
	}
	return append(dst, '}')
}

// valueLength returns the length of the value that s begins with, a member of
// a canonical object.
func valueLength(s []byte) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			i += stringLength(s[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(s)
}
