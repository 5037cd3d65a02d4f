package simulate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// certificateLife is how long a certificate of a TLSAuthority is valid on both
// sides of its issue, so that a rehearsal may step its clock.
const certificateLife = 10 * 365 * 24 * time.Hour

// TLSAuthority issues the certificates of hostnames that a rehearsal serves. It
// keeps its key in memory and is trusted by nobody who was not told to.
type TLSAuthority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	at   time.Time
}

// NewTLSAuthority returns a fresh authority whose certificates are valid around
// this time.
func NewTLSAuthority(at time.Time) (*TLSAuthority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("tls authority: %w", err)
	}
	a := &TLSAuthority{key: key, at: at}
	template := a.template("simulated authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("tls authority: %w", err)
	}
	a.cert, err = x509.ParseCertificate(der)
	return a, err
}

func (a *TLSAuthority) template(name string) *x509.Certificate {
	serial := make([]byte, 16)
	rand.Read(serial)
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: a.at.Add(-certificateLife), NotAfter: a.at.Add(certificateLife),
	}
}

// Issue returns a certificate for one hostname, with a key of its own.
func (a *TLSAuthority) Issue(hostname string) (RouteCertificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return RouteCertificate{}, fmt.Errorf("issue a certificate: %w", err)
	}
	template := a.template("")
	template.DNSNames, template.KeyUsage = []string{hostname}, x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return RouteCertificate{}, fmt.Errorf("issue a certificate: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return RouteCertificate{}, fmt.Errorf("issue a certificate: %w", err)
	}
	return RouteCertificate{
		Chain:      string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		PrivateKey: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	}, nil
}

// Pool returns a pool that trusts this authority alone.
func (a *TLSAuthority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// PEM returns the authority's certificate, which is what a client is told to trust.
func (a *TLSAuthority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}
