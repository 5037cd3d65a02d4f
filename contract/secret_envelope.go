package contract

import "encoding/base64"

// Measures of a sealed envelope in bytes, before base64. OWN (contract O13).
const (
	sealedEnvelopeVersion = 1
	envelopeNonceBytes    = 12 // AES-256-GCM
	envelopeTagBytes      = 16 // AES-256-GCM, part of the ciphertext
	// maximumSealedBytes holds a control token of MaximumControlTokenBytes of
	// which every byte is escaped, and the tag.
	maximumSealedBytes = 32 << 10
)

// SealedEnvelope is something sealed to an X25519 recipient. OWN: the seeds name
// recipientKeyId and the digest of the context that an envelope is bound to, and
// nothing of its bytes (contract O13, design §4). All byte members travel as
// canonical base64.
type SealedEnvelope struct {
	Version            int64  // 1
	RecipientKeyID     string // canonical identifier
	EphemeralPublicKey string // 32 bytes
	Nonce              string // 12 bytes
	Ciphertext         Secret // 16 bytes to 32 KiB, the tag included
	ContextDigest      string // digest of the context it was sealed under
}

func readSealedEnvelope(x *SealedEnvelope) valueReader { return x.shape() }

func (x *SealedEnvelope) shape() valueReader {
	return object(
		required("version", integer(&x.Version)),
		required("recipientKeyId", text(&x.RecipientKeyID)),
		required("ephemeralPublicKey", text(&x.EphemeralPublicKey)),
		required("nonce", text(&x.Nonce)),
		required("ciphertext", secretText(&x.Ciphertext)),
		required("contextDigest", text(&x.ContextDigest)),
	)
}

// Validate returns one named reason for each violation.
func (x SealedEnvelope) Validate() []string { return reasonsOf(x.judge) }

func (x SealedEnvelope) judge(v *verdict) {
	v.require(x.Version == sealedEnvelopeVersion, "version", "is not 1")
	v.identifier("recipientKeyId", x.RecipientKeyID)
	v.x25519Key("ephemeralPublicKey", x.EphemeralPublicKey)
	v.require(isBase64(x.Nonce, envelopeNonceBytes, envelopeNonceBytes), "nonce",
		"is not canonical base64 of 12 bytes")
	v.require(isBase64(x.Ciphertext, envelopeTagBytes, maximumSealedBytes), "ciphertext",
		"is not canonical base64 of 16 to 32768 bytes")
	v.digest("contextDigest", x.ContextDigest)
}

// x25519Key judges a public key, whose text form is that of a Noise key.
func (v *verdict) x25519Key(member, s string) {
	v.require(IsNoiseKey(s), member, "is not canonical base64 of 32 bytes")
}

// isBase64 reports whether s is the one canonical base64 text of least to most
// bytes.
func isBase64[S ~string | ~[]byte](s S, least, most int) bool {
	if len(s) > base64.StdEncoding.EncodedLen(most) {
		return false
	}
	decoded, err := base64.StdEncoding.AppendDecode(nil, []byte(s))
	defer clear(decoded)
	// The decoder passes over line ends and spare bits, so only the comparison
	// decides.
	return err == nil && len(decoded) >= least && len(decoded) <= most &&
		base64.StdEncoding.EncodeToString(decoded) == string(s)
}

// AppendJSON appends the envelope.
func (x SealedEnvelope) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.integer("version", x.Version)
	w.text("recipientKeyId", x.RecipientKeyID)
	w.text("ephemeralPublicKey", x.EphemeralPublicKey)
	w.text("nonce", x.Nonce)
	w.secret("ciphertext", x.Ciphertext)
	w.text("contextDigest", x.ContextDigest)
	return w.end()
}
