package origincert

import "serve.zone/relay/duty"

// Refusal is why a pair is not served. Its name is API: checks, events and
// metrics show it.
type Refusal uint8

// The refusals, in the order they are looked for.
const (
	CertificateUnreadable Refusal = iota
	KeyUnreadable
	KeyMode
	CertificateMalformed
	KeyMalformed
	CertificateOrder
	KeyMismatch
	CertificateNames
	CertificateUsage
	CertificateNotYetValid
	CertificateExpired
	refusals // how many there are
)

var refusalNames = [refusals]string{
	CertificateUnreadable: "certificate-unreadable", KeyUnreadable: "key-unreadable", KeyMode: "key-mode",
	CertificateMalformed: "certificate-malformed", KeyMalformed: "key-malformed", CertificateOrder: "certificate-order",
	KeyMismatch: "key-mismatch", CertificateNames: "certificate-names", CertificateUsage: "certificate-usage",
	CertificateNotYetValid: "certificate-not-yet-valid", CertificateExpired: "certificate-expired",
}

// String returns the refusal's name.
func (r Refusal) String() string { return refusalNames[r] }

// Error returns the refusal's name: a refusal is the error of a Reload.
func (r Refusal) Error() string { return r.String() }

// LogName returns the refusal's name for a log line.
func (r Refusal) LogName() string { return r.String() }

// advice has for each refusal a check with its reason and what to do about it.
var advice = [refusals]duty.Check{
	CertificateUnreadable:  {Hint: "The certificate file cannot be read as a regular file of at most 256 KiB; see --tls-cert-file."},
	KeyUnreadable:          {Hint: "The key file cannot be read as a regular file of at most 256 KiB; see --tls-key-file."},
	KeyMode:                {Hint: "The key file is open to its group or to others; give it mode 0600."},
	CertificateMalformed:   {Hint: "The certificate file is not a chain of whole PEM certificates and nothing else."},
	KeyMalformed:           {Hint: "The key file does not hold one unencrypted private key in PEM (PKCS #8, PKCS #1 or SEC 1)."},
	CertificateOrder:       {Hint: "The certificate file must begin with the one certificate of the origin, followed by authorities alone."},
	KeyMismatch:            {Hint: "The key does not belong to the first certificate of the chain; replace both files."},
	CertificateNames:       {Hint: "The certificate names no host and no address in its subject alternative names."},
	CertificateUsage:       {Hint: "The certificate is not one for TLS servers."},
	CertificateNotYetValid: {Hint: "The certificate is not valid yet; look at this machine's clock, then at the certificate."},
	CertificateExpired:     {Hint: "The certificate has expired; replace both files, or look at this machine's clock."},
}
