package field

import (
	"crypto/tls"
	"crypto/x509"
	"reflect"
	"strings"
)

// tellTLS knows why a handshake or a certificate failed. Certificates are
// peers' bytes: only the kind of failure and the host asked for are told.
func tellTLS(err error) (head string, next error, ok bool) {
	switch err := err.(type) {
	case tls.AlertError:
		return err.Error(), nil, true // from the table of RFC 8446 §6
	case tls.RecordHeaderError:
		return "tls: not a TLS record", nil, true
	case *tls.CertificateVerificationError:
		return "tls: certificate not verified", err.Err, true
	case *tls.ECHRejectionError:
		return "tls: server rejected ECH", nil, true
	case x509.UnknownAuthorityError:
		return "x509: unknown authority", nil, true
	case x509.HostnameError:
		return "x509: not valid for " + part(keyHost, err.Host), nil, true
	case x509.CertificateInvalidError:
		return "x509: " + invalidity(err), nil, true
	case x509.UnhandledCriticalExtension:
		return "x509: unhandled critical extension", nil, true
	case x509.InsecureAlgorithmError:
		return "x509: insecure algorithm", nil, true
	case x509.ConstraintViolationError:
		return "x509: constraint violation", nil, true
	case x509.SystemRootsError:
		return "x509: system roots not readable", err.Err, true
	}
	// The alert that crypto/tls puts into a net.OpError has a type of its own.
	if v := reflect.ValueOf(err); v.Kind() == reflect.Uint8 && v.Type().PkgPath() == "crypto/tls" {
		return tls.AlertError(v.Uint()).Error(), nil, true
	}
	return "", nil, false
}

var invalidities = map[x509.InvalidReason]string{
	x509.NotAuthorizedToSign:           "not authorized to sign",
	x509.CANotAuthorizedForThisName:    "authority not allowed for this name",
	x509.TooManyIntermediates:          "too many intermediates",
	x509.IncompatibleUsage:             "incompatible key usage",
	x509.NameMismatch:                  "issuer name mismatch",
	x509.NameConstraintsWithoutSANs:    "name constraints without names",
	x509.UnconstrainedName:             "name not permitted",
	x509.TooManyConstraints:            "too many constraints",
	x509.CANotAuthorizedForExtKeyUsage: "authority not allowed for this usage",
	x509.NoValidChains:                 "no valid chain",
}

// invalidity names the reason in the words of ours. Expired stands for both
// ends of a certificate's life, and which it is decides whether to look at
// the certificate or at the clock (B059).
func invalidity(err x509.CertificateInvalidError) string {
	switch s, ok := invalidities[err.Reason]; {
	case ok:
		return s
	case err.Reason == x509.Expired && strings.Contains(err.Detail, " is before "):
		return "not yet valid"
	case err.Reason == x509.Expired:
		return "expired"
	}
	return "not valid"
}
