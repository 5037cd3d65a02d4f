package appliance

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"serve.zone/relay/typedsocket/carriertest"
)

// network is a network inside the process with several addresses, on which fake
// time advances. It has the form of the relay's seams.
type network struct {
	mu        sync.Mutex
	listeners map[string]*carriertest.Network // by what is dialled
	names     map[string]string               // dialled name to bound address
	nextPort  uint16
	dials     map[string]int
}

func newNetwork() *network {
	return &network{
		listeners: map[string]*carriertest.Network{}, names: map[string]string{}, dials: map[string]int{}, nextPort: 20000,
	}
}

// at is a listener that knows where it is.
type at struct {
	*carriertest.Network
	n    *network
	addr netip.AddrPort
}

func (l *at) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.addr) }

func (l *at) Close() error {
	l.n.mu.Lock()
	delete(l.n.listeners, l.addr.String())
	l.n.mu.Unlock()
	return l.Network.Close()
}

// listen has the form of the seam.
func (n *network) listen(_ context.Context, _, address string) (net.Listener, error) {
	where, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if where.Port() == 0 {
		n.nextPort++
		where = netip.AddrPortFrom(where.Addr(), n.nextPort)
	}
	if n.listeners[where.String()] != nil {
		return nil, fmt.Errorf("%s is in use", where)
	}
	l := &at{Network: carriertest.NewNetwork(), n: n, addr: where}
	n.listeners[where.String()] = l.Network
	return l, nil
}

// serve makes a listener that is dialled by name.
func (n *network) serve(name string) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := carriertest.NewNetwork()
	n.listeners[name] = l
	return l
}

// alias has a name dialled as an address.
func (n *network) alias(name, address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[name] = address
}

// dial has the form of the seam. Nobody listening is a refused connection.
func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dials[address]++
	if name, ok := n.names[address]; ok {
		address = name
	}
	l := n.listeners[address]
	n.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("dial %s: connection refused", address)
	}
	client, server := carriertest.Pipe(socketBuffer)
	return l.Connect(ctx, client, server)
}

// socketBuffer is what a connection holds in each direction, as a kernel's does.
const socketBuffer = 64 << 10

// dialled returns how often an address was dialled.
func (n *network) dialled(address string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials[address]
}

func (n *network) listenPacket(context.Context, string, string) (net.PacketConn, error) {
	return nil, fmt.Errorf("no packets here")
}

// authority makes certificates for tests. Fake time begins in 2000.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
	pool *x509.CertPool
}

var (
	validFrom = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	validTo   = time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC)
)

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: validFrom, NotAfter: validTo, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key, cert: cert, pool: x509.NewCertPool()}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	a.pool.AddCert(cert)
	return a
}

// issue returns a PEM chain and key for a host name.
func (a *authority) issue(t testing.TB, host string) (chain, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: validFrom, NotAfter: validTo,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &k.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
}
