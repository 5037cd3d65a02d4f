package simulate

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"

	"serve.zone/relay/contract"
)

// The domains below are OWN, in the pattern of those the seeds spell: the
// signature of a projection is over { domain, authority, projection } (contract
// §3, O6).
const (
	renewalSignatureDomain = "serve.zone/runtime-network-dns-lease-renewal-signature"
	authorityDomain        = "serve.zone/runtime-network-signing-authority"
)

// Authority is one revision of the authority that signs renewals, as a node
// stores it in its trust. OWN: the seeds call its form "the exact revision".
type Authority struct {
	ID         string // canonical identifier
	Generation int64  // counter
	PublicKey  ed25519.PublicKey
}

// AppendJSON appends the revision as it stands in a signed record.
func (a Authority) AppendJSON(dst []byte) []byte {
	return append(dst, compose().text("id", a.ID).integer("generation", a.Generation).
		text("algorithm", "Ed25519").text("publicKey", base64.StdEncoding.EncodeToString(a.PublicKey)).end()...)
}

// Reference returns the reference of this exact revision.
func (a Authority) Reference() contract.Reference {
	canonical, err := contract.Canonical(compose().text("domain", authorityDomain).value("authority", a).end())
	if err != nil {
		panic("simulate: own authority has no canonical form: " + err.Error())
	}
	sum := sha256.Sum256(canonical)
	return contract.Reference{ID: a.ID, Generation: a.Generation, Digest: "sha256:" + hex.EncodeToString(sum[:])}
}

// SigningAuthority is an authority with its private key. It signs; it is never
// given to a relay.
type SigningAuthority struct {
	Authority
	private ed25519.PrivateKey
}

// NewSigningAuthority returns a revision with a fresh key.
func NewSigningAuthority(generation int64) *SigningAuthority {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic("simulate: no randomness: " + err.Error())
	}
	return &SigningAuthority{Authority{"signing-authority", generation, public}, private}
}

// Sign signs a renewal and gives it its digest. Signing the same renewal again
// gives the same bytes.
func (a *SigningAuthority) Sign(renewal contract.DNSLeaseRenewal) (contract.SignedDNSLeaseRenewal, error) {
	digest, err := renewal.ComputeDigest()
	if err != nil {
		return contract.SignedDNSLeaseRenewal{}, fmt.Errorf("sign a renewal: %w", err)
	}
	renewal.Digest = digest
	authority := a.Authority.AppendJSON(nil)
	message, err := signedBytes(authority, renewal)
	if err != nil {
		return contract.SignedDNSLeaseRenewal{}, fmt.Errorf("sign a renewal: %w", err)
	}
	signature := base64.StdEncoding.EncodeToString(ed25519.Sign(a.private, message))
	signed := contract.SignedDNSLeaseRenewal{Authority: authority, Renewal: renewal, Signature: signature}
	if reasons := signed.Validate(); len(reasons) > 0 {
		return contract.SignedDNSLeaseRenewal{}, &contract.InvalidError{What: "renewal to sign", Reasons: reasons}
	}
	return signed, nil
}

// signedBytes is what a renewal's signature is over.
func signedBytes(authority []byte, renewal contract.DNSLeaseRenewal) ([]byte, error) {
	return contract.Canonical(compose().text("domain", renewalSignatureDomain).
		value("authority", contract.Raw(authority)).value("renewal", renewal).end())
}

// The refusals of a signed renewal before its admission is judged.
var (
	ErrRenewalAuthority = errors.New("renewal-authority-not-trusted: the renewal is signed under another authority revision than the stored one")
	ErrRenewalSignature = errors.New("renewal-signature-invalid: the signature is not one of the stored authority")
	// ErrRenewalProjectionAuthority is a renewal of a projection that an earlier revision
	// signed: a renewal never closes a key gap.
	ErrRenewalProjectionAuthority = errors.New("renewal-authority-foreign: the projection was signed under another authority revision")
)

// VerifyRenewal verifies a signed renewal as the seeds'
// verifyRuntimeNetworkDnsLeaseRenewal does: by the authority from the node's own
// stored trust, never from the envelope, and only when it is exactly the
// revision that signed the admitted projection.
func VerifyRenewal(signed contract.SignedDNSLeaseRenewal, trusted Authority, projectionAuthority contract.Reference) error {
	stored := trusted.AppendJSON(nil)
	if !contract.EqualCanonical(signed.Authority, stored) {
		return ErrRenewalAuthority
	}
	if projectionAuthority != trusted.Reference() {
		return ErrRenewalProjectionAuthority
	}
	message, err := signedBytes(stored, signed.Renewal)
	if err != nil {
		return ErrRenewalSignature
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(signed.Signature)
	if err != nil || !ed25519.Verify(trusted.PublicKey, message, signature) {
		return ErrRenewalSignature
	}
	return nil
}
