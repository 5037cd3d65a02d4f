package tunnel

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
)

// The key schedule (design §5.2):
//
//	master(0)   = HKDF-Extract(salt h,         k1 ‖ k2 ‖ lane)
//	master(n+1) = HKDF-Extract(salt master(n), ee ‖ lane)
//	key(d, n)   = HKDF-Expand(master(n), keyLabel ‖ d ‖ cipher ‖ n)
//	proof(d, n) = HKDF-Expand(master(n), proofLabel ‖ d ‖ n ‖ node's public ‖ hub's public)
//
// h is Noise's handshake hash, k1 and k2 its two keys, lane the TLS secret
// exported with h as context: so the keys have the identity that Noise proved
// and the hybrid secrecy of TLS. HKDF is RFC 5869 with SHA-256.

// master is the secret of one epoch.
type master [KeySize]byte

// root is the secret of an epoch, with the TLS secret that later ones need.
type root struct {
	master master
	lane   [KeySize]byte
}

func newRoot(hash, k1, k2, lane [KeySize]byte) root {
	secret := make([]byte, 0, 3*KeySize)
	secret = append(secret, k1[:]...)
	secret = append(secret, k2[:]...)
	secret = append(secret, lane[:]...)
	return root{extract(hash, secret), lane}
}

// next returns the secret of the epoch after r's.
func (r *root) next(shared [KeySize]byte) master {
	return extract(r.master, append(append(make([]byte, 0, 2*KeySize), shared[:]...), r.lane[:]...))
}

// key returns the key of one direction, named by the end that seals with it.
func (m master) key(from Side, cipher Cipher, epoch uint32) [KeySize]byte {
	info := append([]byte(keyLabel), byte(from), byte(cipher))
	return m.expand(binary.BigEndian.AppendUint32(info, epoch))
}

// proof returns what only the two ends can know of an epoch. Each proves with
// one of its own, bound to both public keys of the exchange, which are zero in
// epoch 0: its secret comes out of Noise.
func (m master) proof(from Side, epoch uint32, node, hub [KeySize]byte) [KeySize]byte {
	info := append([]byte(proofLabel), byte(from))
	info = binary.BigEndian.AppendUint32(info, epoch)
	info = append(info, node[:]...)
	return m.expand(append(info, hub[:]...))
}

func extract(salt [KeySize]byte, secret []byte) master {
	key, err := hkdf.Extract(sha256.New, secret, salt[:])
	if err != nil {
		panic("tunnel: " + err.Error()) // only FIPS mode refuses, and only short keys
	}
	return master(key)
}

func (m master) expand(info []byte) [KeySize]byte {
	key, err := hkdf.Expand(sha256.New, m[:], string(info), KeySize)
	if err != nil {
		panic("tunnel: " + err.Error()) // only a length above 255 hashes fails
	}
	return [KeySize]byte(key)
}
