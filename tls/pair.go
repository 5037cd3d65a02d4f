package origincert

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"slices"
	"strings"
	"time"

	"serve.zone/relay/duty/field"
)

// pair is a chain and its key, judged.
type pair struct {
	certificate *tls.Certificate
	leaf        *x509.Certificate
	names       []string          // never empty
	digest      [sha256.Size]byte // of the files it was read from
}

// host says what the pair is for: its first name, the domain of a wildcard.
func (p *pair) host() field.Field { return field.Host(strings.TrimPrefix(p.names[0], "*.")) }

// judge makes a pair of the bytes of two files, or refuses them. It is a pure
// function of its arguments. The dates are the leaf's: an authority may outlive
// its own in a chain that clients still accept.
func judge(chainPEM, keyPEM []byte, keyMode fs.FileMode, now time.Time) (*pair, error) {
	if keyMode.Perm()&0o077 != 0 {
		return nil, KeyMode
	}
	chain, ok := readChain(chainPEM)
	if !ok {
		return nil, CertificateMalformed
	}
	key, ok := readKey(keyPEM)
	if !ok {
		return nil, KeyMalformed
	}
	leaf := chain[0]
	for _, authority := range chain[1:] {
		if !authority.IsCA {
			return nil, CertificateOrder
		}
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(leaf.PublicKey) {
		return nil, KeyMismatch
	}
	p := &pair{certificate: &tls.Certificate{PrivateKey: key, Leaf: leaf}, leaf: leaf, names: namesOf(leaf)}
	for _, c := range chain {
		p.certificate.Certificate = append(p.certificate.Certificate, c.Raw)
	}
	switch {
	case len(p.names) == 0:
		return nil, CertificateNames
	case !servesTLS(leaf):
		return nil, CertificateUsage
	}
	switch stateAt(leaf.NotBefore, leaf.NotAfter, now) {
	case StateNotYetValid:
		return nil, CertificateNotYetValid
	case StateExpired:
		return nil, CertificateExpired
	}
	return p, nil
}

// beginning is what every PEM block begins with.
var beginning = []byte("-----BEGIN ")

// readChain reads a file of certificates: at least one, and no other block, so
// that a key in the certificate's file, which anyone may read, does not pass. The
// decoder skips what it cannot read; a block that was cut off must not be lost
// that way, so the beginnings are counted.
func readChain(text []byte) ([]*x509.Certificate, bool) {
	var chain []*x509.Certificate
	for blocks := bytes.Count(text, beginning); blocks > 0; blocks-- {
		var block *pem.Block
		block, text = pem.Decode(text)
		if block == nil || block.Type != "CERTIFICATE" {
			return nil, false
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, false
		}
		chain = append(chain, c)
	}
	return chain, len(chain) > 0
}

// readKey reads the one private key of a file. Blocks of parameters, which
// OpenSSL writes before a key on a curve, are passed over.
func readKey(text []byte) (crypto.Signer, bool) {
	var found crypto.Signer
	for {
		var block *pem.Block
		block, text = pem.Decode(text)
		if block == nil {
			return found, found != nil
		}
		defer clear(block.Bytes)
		if block.Type == "EC PARAMETERS" {
			continue
		}
		key, ok := parseKey(block)
		if !ok || found != nil {
			return nil, false
		}
		found = key
	}
}

func parseKey(block *pem.Block) (crypto.Signer, bool) {
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	}
	signer, ok := key.(crypto.Signer)
	return signer, err == nil && ok
}

// namesOf returns the host names, in lower case, and the addresses that a
// certificate is for.
func namesOf(c *x509.Certificate) []string {
	names := make([]string, 0, len(c.DNSNames)+len(c.IPAddresses))
	for _, n := range c.DNSNames {
		names = append(names, strings.ToLower(n))
	}
	for _, a := range c.IPAddresses {
		names = append(names, a.String())
	}
	return names
}

// servesTLS reports whether clients accept the certificate as a server's (RFC
// 5280 §4.2.1.12): one without extended usages is good for all.
func servesTLS(c *x509.Certificate) bool {
	if len(c.ExtKeyUsage) == 0 && len(c.UnknownExtKeyUsage) == 0 {
		return true
	}
	return slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth) || slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageAny)
}
