package field

import (
	"net"
	"net/netip"

	"serve.zone/relay/duty/secret"
)

// text returns a field for s if s is fit for key. An empty text says nothing.
func text(key Key, s string) Field {
	if s == "" {
		return Field{}
	}
	r := &rules[key]
	if len(s) > r.max || !r.fits(s) || !r.shaped && secret.Find(s) != secret.None {
		return Field{key: key, kind: kindWithheld}
	}
	return Field{key: key, kind: kindText, text: s}
}

// Method says a method name.
func Method[S ~string](name S) Field { return text(keyMethod, string(name)) }

// Node says a node id (contract §2.1).
func Node[S ~string](id S) Field { return text(keyNode, string(id)) }

// Role says what a socket is.
func Role[S ~string](name S) Field { return text(keyRole, string(name)) }

// Outcome says how a thing ended, by name.
func Outcome[S ~string](name S) Field { return text(keyOutcome, string(name)) }

// Refusal says the name of a refusal: a member of the contract's closed sets,
// never the text it came in.
func Refusal[S ~string](name S) Field { return text(keyRefusal, string(name)) }

// Reason says the name of a cause.
func Reason[S ~string](name S) Field { return text(keyReason, string(name)) }

// State says the name of the state that was entered.
func State[S ~string](name S) Field { return text(keyState, string(name)) }

// Duty says the name of a duty.
func Duty[S ~string](name S) Field { return text(keyDuty, string(name)) }

// Event says the type of an event.
func Event[S ~string](name S) Field { return text(keyEvent, string(name)) }

// Check says the name of a readiness check.
func Check[S ~string](name S) Field { return text(keyCheck, string(name)) }

// Source says which foreign logger a line came from.
func Source[S ~string](name S) Field { return text(keySource, string(name)) }

// Digest says a SHA-256 digest, with or without its "sha256:".
func Digest[S ~string](digest S) Field { return text(keyDigest, string(digest)) }

// PublicKey says a public key of 32 bytes in base64. A private key has the
// same form: only what is published belongs here.
func PublicKey[S ~string](key S) Field { return text(keyPublicKey, string(key)) }

// Version says a release version (contract §2.2).
func Version[S ~string](version S) Field { return text(keyVersion, string(version)) }

// Host says a host name or an address literal.
func Host[S ~string](host S) Field { return text(keyHost, string(host)) }

// Origin says scheme, host and port. An URL with more than those is withheld.
func Origin[S ~string](origin S) Field { return text(keyOrigin, string(origin)) }

// Path says the path of a file that the operator named.
func Path[S ~string](path S) Field { return text(keyPath, string(path)) }

// Address says an address with its port. A zone is left out, since it is free
// text; an invalid address says nothing.
func Address(a netip.AddrPort) Field {
	if !a.IsValid() {
		return Field{}
	}
	return text(keyAddress, netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port()).String())
}

// NetAddr says the address of a TCP or UDP endpoint, and nothing of any other.
func NetAddr(a net.Addr) Field {
	addr, _ := addrPort(a)
	return Address(addr)
}

// Prefix says a network prefix; an invalid one says nothing.
func Prefix(p netip.Prefix) Field {
	if !p.IsValid() {
		return Field{}
	}
	return text(keyPrefix, p.String())
}

// addrPort returns the address of a TCP or UDP endpoint.
func addrPort(a net.Addr) (netip.AddrPort, bool) {
	switch a := a.(type) {
	case *net.TCPAddr:
		if a != nil {
			return a.AddrPort(), true
		}
	case *net.UDPAddr:
		if a != nil {
			return a.AddrPort(), true
		}
	}
	return netip.AddrPort{}, false
}
