package tunnel

import (
	"crypto/aes"
	"crypto/cipher"
	"runtime"

	"golang.org/x/crypto/chacha20poly1305"
	"golang.org/x/sys/cpu"
)

// Lane is a way for inner packets.
type Lane uint8

// The lanes.
const (
	LaneDatagram Lane = 1 // QUIC DATAGRAM frames; every end has it
	LaneDirect   Lane = 2 // sealed datagrams beside QUIC, with the datagram lane to fall back on
)

// String returns the lane's name.
func (l Lane) String() string {
	switch l {
	case LaneDatagram:
		return "datagram"
	case LaneDirect:
		return "direct"
	}
	return "unknown"
}

// Cipher seals the packets of the direct lane.
type Cipher uint8

// The ciphers. Both have keys of 32 bytes, nonces of 12 and tags of 16.
const (
	CipherAES256GCM Cipher = 1
	CipherChaCha20  Cipher = 2 // ChaCha20-Poly1305 of RFC 8439
)

// String returns the cipher's name.
func (c Cipher) String() string {
	switch c {
	case CipherAES256GCM:
		return "aes-256-gcm"
	case CipherChaCha20:
		return "chacha20-poly1305"
	}
	return "unknown"
}

// aead makes the cipher's seal for one key. Only agreed ciphers come here, so a
// failure is a fault of this program.
func (c Cipher) aead(key *[KeySize]byte) (aead cipher.AEAD) {
	var err error
	switch c {
	case CipherAES256GCM:
		var block cipher.Block
		if block, err = aes.NewCipher(key[:]); err == nil {
			aead, err = cipher.NewGCM(block)
		}
	case CipherChaCha20:
		aead, err = chacha20poly1305.New(key[:])
	default:
		panic("tunnel: no such cipher")
	}
	if err != nil {
		panic("tunnel: " + err.Error())
	}
	return aead
}

// PreferredCiphers lists both ciphers, the one that this CPU does well first.
// AES-GCM costs half of ChaCha20 where the CPU has instructions for it, and
// many times as much where it has not.
func PreferredCiphers() []Cipher { return preferCiphers(hasAES()) }

func preferCiphers(aes bool) []Cipher {
	if aes {
		return []Cipher{CipherAES256GCM, CipherChaCha20}
	}
	return []Cipher{CipherChaCha20, CipherAES256GCM}
}

func hasAES() bool {
	switch runtime.GOARCH {
	case "amd64":
		return cpu.X86.HasAES && cpu.X86.HasPCLMULQDQ
	case "arm64":
		return cpu.ARM64.HasAES && cpu.ARM64.HasPMULL
	}
	return false
}
