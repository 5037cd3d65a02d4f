package origincert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func must(der []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return der
}

// TestWhichPairsAreTaken is every rule on both sides of it.
func TestWhichPairsAreTaken(t *testing.T) {
	root := issue(subject{authority: true, names: []string{"root.test"}})
	middle := issue(subject{authority: true, names: []string{"middle.test"}, issuer: root})
	leaf := issue(subject{issuer: middle})
	alone := issue(subject{})
	other := issue(subject{})
	rsaLeaf := issue(subject{key: rsaKey()})
	edLeaf := issue(subject{key: edKey()})
	sec1 := pemOf("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(alone.key.(*ecdsa.PrivateKey))))
	pkcs1 := pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey().(*rsa.PrivateKey)))
	parameters := pemOf("EC PARAMETERS", []byte{6, 8, 42, 134, 72, 206, 61, 3, 1, 7})
	first := issue(subject{issuer: middle}).chain[:len(leaf.chain)/3]
	const fine = Refusal(255)
	day := func(d int) time.Time { return time.Date(2026, 3, d, 0, 0, 0, 0, time.UTC) }
	now := day(15)
	tests := []struct {
		name       string
		chain, key []byte
		mode       fs.FileMode
		want       Refusal
	}{
		{"self-signed", alone.chain, alone.pem, 0o600, fine},
		{"self-signed authority", root.chain, root.pem, 0o600, fine},
		{"a chain with its root", leaf.chain, leaf.pem, 0o600, fine},
		{"a chain without its root", join(pemOf("CERTIFICATE", leaf.cert.Raw), pemOf("CERTIFICATE", middle.cert.Raw)), leaf.pem, 0o600, fine},
		{"RSA", rsaLeaf.chain, rsaLeaf.pem, 0o600, fine},
		{"Ed25519", edLeaf.chain, edLeaf.pem, 0o600, fine},
		{"SEC 1", alone.chain, sec1, 0o600, fine},
		{"SEC 1 with parameters", alone.chain, join(parameters, sec1), 0o600, fine},
		{"PKCS #1", rsaLeaf.chain, pkcs1, 0o600, fine},
		{"comments around blocks", join([]byte("subject=relay\n"), alone.chain, []byte("\n# end\n")), join([]byte("key:\n"), alone.pem), 0o600, fine},
		{"read by its owner alone", alone.chain, alone.pem, 0o400, fine},
		{"with set-user-id", alone.chain, alone.pem, fs.ModeSetuid | 0o600, fine},

		{"read by the group", alone.chain, alone.pem, 0o640, KeyMode},
		{"read by others", alone.chain, alone.pem, 0o604, KeyMode},
		{"written by the group", alone.chain, alone.pem, 0o620, KeyMode},
		{"run by others", alone.chain, alone.pem, 0o601, KeyMode},

		{"no certificate", nil, alone.pem, 0o600, CertificateMalformed},
		{"text", []byte("relay"), alone.pem, 0o600, CertificateMalformed},
		{"DER", alone.cert.Raw, alone.pem, 0o600, CertificateMalformed},
		{"a key among the certificates", join(alone.chain, alone.pem), alone.pem, 0o600, CertificateMalformed},
		{"a block that is cut off", join(alone.chain, first), alone.pem, 0o600, CertificateMalformed},
		{"a block that is cut off before another", join(alone.chain, first, []byte("\n"), middle.chain), alone.pem, 0o600, CertificateMalformed},
		{"only a beginning behind", join(alone.chain, []byte("-----BEGIN CERT")), alone.pem, 0o600, CertificateMalformed},
		{"no DER in it", pemOf("CERTIFICATE", []byte("relay")), alone.pem, 0o600, CertificateMalformed},
		{"a request", pemOf("CERTIFICATE REQUEST", alone.cert.Raw), alone.pem, 0o600, CertificateMalformed},
		{"more behind the DER", pemOf("CERTIFICATE", append(bytes.Clone(alone.cert.Raw), 0)), alone.pem, 0o600, CertificateMalformed},

		{"no key", alone.chain, nil, 0o600, KeyMalformed},
		{"a certificate for a key", alone.chain, alone.chain, 0o600, KeyMalformed},
		{"a key and its certificate", alone.chain, join(alone.pem, alone.chain), 0o600, KeyMalformed},
		{"two keys", alone.chain, join(alone.pem, other.pem), 0o600, KeyMalformed},
		{"an encrypted key", alone.chain, bytes.ReplaceAll(alone.pem, []byte("PRIVATE"), []byte("ENCRYPTED PRIVATE")), 0o600, KeyMalformed},
		{"a key that is cut off", alone.chain, alone.pem[:len(alone.pem)/2], 0o600, KeyMalformed},
		{"parameters alone", alone.chain, parameters, 0o600, KeyMalformed},
		{"a key of a wrong kind", alone.chain, bytes.ReplaceAll(alone.pem, []byte("PRIVATE"), []byte("RSA PRIVATE")), 0o600, KeyMalformed},

		{"the authority first", join(middle.chain, pemOf("CERTIFICATE", leaf.cert.Raw)), leaf.pem, 0o600, CertificateOrder},
		{"two leaves", join(alone.chain, other.chain), alone.pem, 0o600, CertificateOrder},
		{"another key", alone.chain, other.pem, 0o600, KeyMismatch},
		{"another kind of key", alone.chain, rsaLeaf.pem, 0o600, KeyMismatch},
		{"the authority's key", leaf.chain, middle.pem, 0o600, KeyMismatch},
	}
	for _, test := range tests {
		p, err := judge(test.chain, bytes.Clone(test.key), test.mode, now)
		if test.want == fine {
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		if err != test.want || p != nil {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}

	subjects := []struct {
		name string
		s    subject
		want Refusal
	}{
		{"an address", subject{addresses: []net.IP{{10, 0, 4, 7}}}, fine},
		{"any usage", subject{usage: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}, fine},
		{"server and client", subject{usage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}, fine},
		{"a common name alone", subject{nameless: true}, CertificateNames},
		{"client alone", subject{usage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, CertificateUsage},
		{"code alone", subject{usage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}}, CertificateUsage},
		{"from this instant", subject{from: now}, fine},
		{"a second too early", subject{from: now.Add(time.Second)}, CertificateNotYetValid},
		{"until this instant", subject{to: now}, fine},
		{"a second too late", subject{to: now.Add(-time.Second)}, CertificateExpired},
		{"B064: past 2038", subject{to: date(2039)}, fine},
		{"B064: past 2106", subject{to: date(2107)}, fine},
		{"B064: past 2262", subject{to: date(2263)}, fine},
		{"B064: no end", subject{to: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}, fine},
		{"B064: from 1950 on", subject{from: date(1950)}, fine},
	}
	for _, test := range subjects {
		i := issue(test.s)
		p, err := judge(i.chain, bytes.Clone(i.pem), 0o600, now)
		switch {
		case test.want != fine && err != test.want:
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		case test.want == fine && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.want == fine && expiresSoon(p.leaf.NotBefore, p.leaf.NotAfter, now) != (test.s.to.Equal(now)):
			t.Errorf("%s: expires soon", test.name)
		}
	}
}

func TestThePairIsServedWhole(t *testing.T) {
	root := issue(subject{authority: true, names: []string{"root.test"}})
	leaf := issue(subject{issuer: root, names: []string{"Relay.Test", "*.zone.test"}, addresses: []net.IP{{10, 0, 4, 7}, net.ParseIP("2001:db8::1")}})
	p, err := judge(leaf.chain, leaf.pem, 0o600, date(2026))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.certificate.Certificate) != 2 || !bytes.Equal(p.certificate.Certificate[0], leaf.cert.Raw) || !bytes.Equal(p.certificate.Certificate[1], root.cert.Raw) {
		t.Errorf("chain of %d", len(p.certificate.Certificate))
	}
	if want := []string{"relay.test", "*.zone.test", "10.0.4.7", "2001:db8::1"}; !slices.Equal(p.names, want) {
		t.Errorf("names %q", p.names)
	}
}

func TestRefusalsHaveNamesAndAdvice(t *testing.T) {
	for r := range refusals {
		if r.String() == "" || r.Error() != r.String() || r.LogName() != r.String() || advice[r].Hint == "" {
			t.Errorf("refusal %d: %q, hint %q", r, r, advice[r].Hint)
		}
		if back, ok := refusalNamed(r.String()); !ok || back != r {
			t.Errorf("%s is not found by its name", r)
		}
	}
	if _, ok := refusalNamed(""); ok {
		t.Error("no name names a refusal")
	}
	if !errors.Is(KeyMode, KeyMode) || errors.Is(KeyMode, KeyMismatch) {
		t.Error("refusals are not told apart")
	}
}

// FuzzJudge: whatever stands in the files, judging does not panic, and what it
// takes has a key that belongs to the first certificate.
func FuzzJudge(f *testing.F) {
	alone, other := issue(subject{}), issue(subject{})
	f.Add(alone.chain, alone.pem)
	f.Add(alone.chain, other.pem)
	f.Add(join(alone.chain, other.chain), alone.pem)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n"), []byte("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, chain, key []byte) {
		p, err := judge(chain, key, 0o600, date(2026))
		if (p == nil) == (err == nil) {
			t.Fatalf("%v, %v", p, err)
		}
		if err != nil {
			var r Refusal
			if !errors.As(err, &r) || strings.Contains(err.Error(), "BEGIN") {
				t.Fatalf("error %v", err)
			}
			return
		}
		if !p.leaf.Equal(p.certificate.Leaf) || !bytes.Equal(p.certificate.Certificate[0], p.leaf.Raw) || len(p.names) == 0 {
			t.Fatal("taken, and not whole")
		}
	})
}
