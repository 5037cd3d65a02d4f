package contract

import "encoding/base64"

// NoiseKey is an X25519 public key as the tunnel uses it.
type NoiseKey [32]byte

// noiseKeyLength is what base64 makes of 32 bytes, one '=' included.
const noiseKeyLength = 44

// ParseNoiseKey reads the one canonical base64 encoding of exactly 32 bytes:
// 44 characters, one '=', and re-encoding reproduces the text (contract §2.2).
func ParseNoiseKey(s string) (NoiseKey, bool) {
	var key NoiseKey
	if len(s) != noiseKeyLength {
		return key, false
	}
	// 44 characters can decode to 33 bytes, and the decoder passes over line
	// ends, so only the comparison at the end decides.
	decoded, err := base64.StdEncoding.AppendDecode(make([]byte, 0, 33), []byte(s))
	if err != nil || len(decoded) != len(key) {
		return key, false
	}
	copy(key[:], decoded)
	return key, key.String() == s
}

// IsNoiseKey reports whether s is a canonical Noise public key.
func IsNoiseKey(s string) bool {
	_, ok := ParseNoiseKey(s)
	return ok
}

// String returns the canonical base64 encoding.
func (k NoiseKey) String() string { return base64.StdEncoding.EncodeToString(k[:]) }
