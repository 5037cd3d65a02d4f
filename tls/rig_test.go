package origincert

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"serve.zone/relay/duty"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func date(year int) time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }

// subject says what a certificate of the tests is like. The zero value is a leaf
// for relay.test, from 1999 to 2100.
type subject struct {
	names     []string
	addresses []net.IP
	from, to  time.Time
	authority bool
	usage     []x509.ExtKeyUsage
	nameless  bool
	issuer    *issued // self-signed if nil
	key       crypto.Signer
}

// issued is a certificate with its key.
type issued struct {
	cert  *x509.Certificate
	key   crypto.Signer
	chain []byte // PEM
	pem   []byte // of the key, PKCS #8
}

func newKey() crypto.Signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

var (
	rsaKey = sync.OnceValue(func() crypto.Signer {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		return key
	})
	edKey = sync.OnceValue(func() crypto.Signer {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			panic(err)
		}
		return key
	})
)

var serial int64

// issue makes a certificate.
func issue(s subject) *issued {
	serial++
	if s.names == nil && s.addresses == nil && !s.nameless {
		s.names = []string{"relay.test"}
	}
	if s.from.IsZero() {
		s.from = date(1999)
	}
	if s.to.IsZero() {
		s.to = date(2100)
	}
	if s.key == nil {
		s.key = newKey()
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "common.test"}, DNSNames: s.names, IPAddresses: s.addresses,
		NotBefore: s.from, NotAfter: s.to, IsCA: s.authority, BasicConstraintsValid: true, ExtKeyUsage: s.usage,
	}
	parent, signer := template, s.key
	if s.issuer != nil {
		parent, signer = s.issuer.cert, s.issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, s.key.Public(), signer)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(s.key)
	if err != nil {
		panic(err)
	}
	i := &issued{cert: cert, key: s.key, chain: pemOf("CERTIFICATE", der), pem: pemOf("PRIVATE KEY", pkcs8)}
	if s.issuer != nil {
		i.chain = append(i.chain, s.issuer.chain...)
	}
	return i
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// disk is a file system of two files.
type disk struct {
	mu    sync.Mutex
	files map[string]File
	reads int
	hang  chan struct{} // reads wait for it; nil when they do not
	keys  [][]byte      // what was handed out of the key's file
}

func (d *disk) read(name string) (File, error) {
	d.mu.Lock()
	d.reads++
	hang := d.hang
	d.mu.Unlock()
	if hang != nil {
		<-hang
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f, ok := d.files[name]
	if !ok {
		return File{}, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f.Content = bytes.Clone(f.Content)
	if name == keyName {
		d.keys = append(d.keys, f.Content)
	}
	return f, nil
}

func (d *disk) put(name string, content []byte, mode fs.FileMode) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[name] = File{Content: content, Mode: mode}
}

func (d *disk) remove(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.files, name)
}

const (
	certName = "/etc/relay/tls.crt"
	keyName  = "/etc/relay/tls.key"
)

// rig is Files on a disk in memory, with a wall clock of its own.
type rig struct {
	*Files
	*disk
	t      testing.TB
	events *duty.Events
	log    *bytes.Buffer
	offset atomic.Int64 // nanoseconds of the wall clock from fake time
	seen   int          // events already looked at
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t, disk: &disk{files: map[string]File{}}, log: &bytes.Buffer{}}
	catalogue, err := duty.NewCatalogue(EventKinds)
	if err != nil {
		t.Fatal(err)
	}
	r.events = duty.NewEvents(duty.EventsConfig{Catalogue: catalogue, Log: duty.NewLogger(duty.LogConfig{Out: r.log})})
	r.Files = NewFiles(FilesConfig{CertFile: certName, KeyFile: keyName, Read: r.disk.read, Wall: r.wall, Events: r.events})
	return r
}

func (r *rig) wall() time.Time { return time.Now().Add(time.Duration(r.offset.Load())) }

// write puts both files in their place.
func (r *rig) write(i *issued) {
	r.put(certName, i.chain, 0o644)
	r.put(keyName, i.pem, 0o600)
}

// served is the certificate that a handshake gets, nil for none.
func (r *rig) served() *x509.Certificate {
	c, err := r.GetCertificate(nil)
	if err != nil {
		if !errors.Is(err, ErrNone) || c != nil {
			r.t.Errorf("no certificate: %v %v", c, err)
		}
		return nil
	}
	return c.Leaf
}

func (r *rig) wantServed(i *issued) {
	r.t.Helper()
	var want *x509.Certificate
	if i != nil {
		want = i.cert
	}
	if got := r.served(); !got.Equal(want) {
		r.t.Errorf("served: %v, want %v", nameOf(got), nameOf(want))
	}
}

func nameOf(c *x509.Certificate) any {
	if c == nil {
		return "none"
	}
	return c.SerialNumber
}

// wantEvents compares the events since the last look: types, with the reason
// where one is given.
func (r *rig) wantEvents(want ...string) {
	r.t.Helper()
	var got []string
	all := r.events.Since(0).Events
	for _, e := range all[r.seen:] {
		text := string(e.Type)
		for _, f := range e.Fields {
			if f.Key().String() == "reason" {
				text += " " + f.String()
			}
		}
		got = append(got, text)
	}
	r.seen = len(all)
	if !slices.Equal(got, want) {
		r.t.Errorf("events %v, want %v", got, want)
	}
}

// wantChecks compares the states and reasons of the three checks now.
func (r *rig) wantChecks(want ...string) {
	r.t.Helper()
	var got []string
	for _, c := range r.Checks(r.wall()) {
		text := c.State.String()
		if c.State != duty.OK {
			text += " " + c.Reason
			if c.Hint == "" {
				r.t.Errorf("%s: no hint", c.Name)
			}
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		r.t.Errorf("checks %q, want %q", got, want)
	}
}

func (r *rig) wantRefused(want Refusal) {
	r.t.Helper()
	err := r.Reload()
	var got Refusal
	if !errors.As(err, &got) || got != want {
		r.t.Errorf("reload: %v, want %s", err, want)
	}
}
