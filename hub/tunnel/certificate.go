package tunnel

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"time"
)

// The certificate is valid always: nobody looks at its dates, and a clock that
// is wrong must not matter. The end is RFC 5280's for no end.
var (
	certificateStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	certificateEnd   = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// NewCertificate makes the hub's certificate for TLS: self-signed, of a new
// key, and without a name. No node verifies it; the hub's identity is its Noise
// key.
func NewCertificate() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make the tunnel's certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    certificateStart,
		NotAfter:     certificateEnd,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make the tunnel's certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, nil
}
