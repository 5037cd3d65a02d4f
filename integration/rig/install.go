package rig

import (
	"io/fs"
	"path/filepath"
)

// Names of the files that a rig writes, for WriteFile.
const (
	CredentialFile    = "etc/credential"
	CertificateFile   = "etc/tls.crt"
	KeyFile           = "etc/tls.key"
	AuthorityFile     = "etc/cloudly-ca.pem"
	ConfigurationFile = "etc/relay.yaml"
)

// Dir returns the folder of this rig, which is also the relay's: its home, its
// working folder and its folder for temporary files lie there.
func (r *Rig) Dir() string { return r.dir }

// Path returns where a file of the rig stands.
func (r *Rig) Path(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }

// WriteFile puts a file into the rig's folder, or replaces one, by a rename.
// Files are written in no other way: any other change counts as the relay's.
func (r *Rig) WriteFile(name string, content []byte, mode fs.FileMode) string {
	r.t.Helper()
	if err := r.write(name, content, mode); err != nil {
		r.t.Fatal(err)
	}
	return r.Path(name)
}

// RemoveFile removes a file that WriteFile wrote.
func (r *Rig) RemoveFile(name string) {
	r.t.Helper()
	if err := r.ledger.remove(name); err != nil {
		r.t.Fatal(err)
	}
}

// Issue makes a certificate for the origin, as the options of Leaf change it.
func (r *Rig) Issue(l Leaf) Pair {
	r.t.Helper()
	if l.Names == nil {
		l.Names = []string{OriginHost}
	}
	pair, err := r.Authority.Issue(l)
	if err != nil {
		r.t.Fatal(err)
	}
	return pair
}

// InstallCertificate replaces the files of the origin's certificate, the key
// first. The relay finds out by itself, or at SIGHUP.
func (r *Rig) InstallCertificate(p Pair) {
	r.t.Helper()
	if err := r.install(p); err != nil {
		r.t.Fatal(err)
	}
}

func (r *Rig) install(p Pair) error {
	if err := r.secrets.add("TLS key", p.secret); err != nil {
		return err
	}
	if err := r.write(KeyFile, p.Key, 0o600); err != nil {
		return err
	}
	return r.write(CertificateFile, p.Certificate, 0o644)
}

// NewBearer makes an authorization of the relay that bears a marker. Cloudly
// knows it after RotateCredentialTo.
func (r *Rig) NewBearer() string { return bearerBegins + r.secrets.mark("relay bearer") }

// InstallCredential replaces the credential file.
func (r *Rig) InstallCredential(bearer string) {
	r.t.Helper()
	r.WriteFile(CredentialFile, []byte(bearer), 0o600)
}

func (r *Rig) write(name string, content []byte, mode fs.FileMode) error {
	_, err := r.ledger.write(name, content, mode)
	return err
}
