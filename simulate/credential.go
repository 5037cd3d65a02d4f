package simulate

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"serve.zone/relay/contract"
)

// NodeCredential is what a Pallet authenticates its registrations with. OWN:
// the seeds say that a credential has a generation and a bearer and spell
// neither (contract O4b).
type NodeCredential struct {
	Generation int64 // counter
	Token      string
}

// String keeps the token out of what is printed.
func (c NodeCredential) String() string {
	return fmt.Sprintf("node credential of generation %d", c.Generation)
}

// GoString is String.
func (c NodeCredential) GoString() string { return c.String() }

// AppendJSON appends the credential, which is secret, as a registration carries
// it.
func (c NodeCredential) AppendJSON(dst []byte) []byte {
	return append(dst, compose().integer("generation", c.Generation).text("token", c.Token).end()...)
}

// relayCredential is one generation of the bearer of a cluster's relay.
type relayCredential struct {
	generation int64
	bearer     string
	reference  contract.Reference
}

// credentialID names the one credential of a cluster's relay.
const credentialID = "relay_credential-1"

// newRelayCredential writes the record of a generation and refers to it. The
// record's members beyond those the seeds name are this product's choice.
func newRelayCredential(clusterID string, generation int64, bearer string) relayCredential {
	id, ok := contract.RelayBearerCredentialID(bearer)
	if !ok {
		id = credentialID
	}
	record := compose().text("id", id).text("cluster", clusterID).integer("generation", generation).
		text("userId", "relay-"+clusterID).
		value("delivery", compose().text("secretId", id).integer("version", generation).end()).end()
	return relayCredential{
		generation: generation,
		bearer:     bearer,
		reference:  reference(contract.RelayCredentialDigest, id, generation, record),
	}
}

// mintBearer returns a fresh relay authorization (contract §5.1).
func mintBearer() string {
	return fmt.Sprintf("clusterRelayToken_%s_%s", credentialID, randomHex(32))
}

// reference names a record that was composed here, which always has a canonical
// form.
func reference(kind contract.DigestKind, id string, generation int64, record []byte) contract.Reference {
	digest, err := contract.Digest(kind, record)
	if err != nil {
		panic("simulate: own record has no digest: " + err.Error())
	}
	return contract.Reference{ID: id, Generation: generation, Digest: digest}
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// newNonce returns a fresh canonical UUID of version 4.
func newNonce() string {
	b := make([]byte, 16)
	rand.Read(b)
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
