package tunnel

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// mustKey makes a key of one repeated byte.
func mustKey(b byte) PrivateKey {
	key, err := NewPrivateKey([KeySize]byte(bytes.Repeat([]byte{b}, KeySize)))
	if err != nil {
		panic(err)
	}
	return key
}

var (
	hubKey  = mustKey(0x11)
	nodeKey = mustKey(0x22)

	testAuthority  = "runtime-network-authority/prod-1"
	testControl    = netip.MustParsePrefix("10.200.0.7/24")
	testHubAddress = netip.MustParseAddr("10.200.0.1")

	// start is when tests with a time of their own begin.
	start = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
)

// testExporter stands for a TLS session, of which seed is the secret.
func testExporter(seed string) Exporter {
	return func(label string, context []byte, length int) ([]byte, error) {
		h := sha256.New()
		h.Write([]byte(seed))
		h.Write([]byte{0})
		h.Write([]byte(label))
		h.Write([]byte{0})
		h.Write(context)
		return h.Sum(nil)[:length], nil
	}
}

func datagramOffer() Offer {
	return Offer{Versions: []uint8{Version}, InnerMTU: DefaultInnerMTU, Lanes: []Lane{LaneDatagram}}
}

func directOffer() Offer {
	o := datagramOffer()
	o.Lanes = []Lane{LaneDatagram, LaneDirect}
	o.Ciphers = []Cipher{CipherAES256GCM, CipherChaCha20}
	o.ReceiverIndex = 0x0badcafe
	return o
}

func datagramAnswer() Answer {
	return Answer{
		Version:        Version,
		InnerMTU:       DefaultInnerMTU,
		Lane:           LaneDatagram,
		ControlAddress: testControl,
		HubAddress:     testHubAddress,
		Keepalive:      Keepalive,
	}
}

func directAnswer(cipher Cipher) Answer {
	a := datagramAnswer()
	a.Lane, a.Cipher, a.ReceiverIndex = LaneDirect, cipher, 0x5eed1234
	return a
}

func testInitiator() Initiator {
	return Initiator{Static: nodeKey, Hub: hubKey.Public(), AuthorityID: testAuthority, Offer: datagramOffer()}
}

func testResponder() Responder { return Responder{Static: hubKey, AuthorityID: testAuthority} }

// testPacket makes an inner packet of that size: the first byte of an IPv4
// header, then bytes that all differ from their neighbours.
func testPacket(size int, seed byte) []byte {
	p := make([]byte, size)
	for i := range p {
		p[i] = byte(i*7+i>>8) + seed
	}
	p[0] = 0x45
	return p
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// equal compares two values of ours by all they hold.
func equal(t *testing.T, a, b any) bool {
	t.Helper()
	return cmp.Equal(a, b, cmp.Comparer(func(x, y netip.Addr) bool { return x == y }),
		cmp.Comparer(func(x, y netip.Prefix) bool { return x == y }))
}
