package tunnel

import "time"

// The names that both ends mix into what they derive. Changing one makes
// another protocol.
const (
	// ALPN names this wire in TLS. Its number changes when the frames of the
	// handshake do; what else may change is a version of the offer.
	ALPN = "serve.zone-vpn/1"

	prologueLabel = "serve.zone-vpn-1 prologue"
	bindLabel     = "EXPORTER-serve.zone-vpn-1 bind"
	laneLabel     = "EXPORTER-serve.zone-vpn-1 lane"
	keyLabel      = "serve.zone-vpn-1 key"
	proofLabel    = "serve.zone-vpn-1 proof"
	resetLabel    = "serve.zone-vpn-1 stateless reset"
)

// Version is the one version of offers, answers and control messages so far.
const Version = 1

const (
	// KeySize is the length of every key, secret, hash and proof here: X25519
	// keys, SHA-256, BLAKE2s, AES-256 and ChaCha20 all have 32 bytes.
	KeySize = 32

	// MaxAuthorityID bounds an authority id in UTF-8 bytes (contract §10.2). It
	// also makes one byte of length enough in the prologue.
	MaxAuthorityID = 128

	// MaxBody bounds the body of a stream frame, in bytes. A handshake message
	// of today has less than 200; the rest is room for fields to come. It is
	// what an end that nobody has authenticated yet can make the hub hold.
	MaxBody = 1024

	// maxList bounds the entries of a list of versions, lanes or ciphers.
	maxList = 16
)

// Inner packets.
const (
	// MinPacket is the shortest IP packet: an IPv4 header without options.
	MinPacket = 20

	// MinInnerMTU is the floor of the inner MTU, what IPv6 requires of a link
	// and every host takes.
	MinInnerMTU = 1280

	// DefaultInnerMTU travels unsplit over a path of 1,500 bytes on both
	// lanes: quic-go's datagrams end at 1,404 bytes (design §5.3).
	DefaultInnerMTU = 1400

	// MaxInnerMTU is Ethernet's. In two parts it still crosses the smallest
	// path that carries QUIC.
	MaxInnerMTU = 1500
)

// Joining of split packets, for each member.
const (
	// JoinSlots is how many packets wait for their other part at once. Both
	// parts leave together, so another 32 split packets between them are far
	// more than networks reorder. With the inner MTU it bounds the bytes held:
	// below 48 KiB.
	JoinSlots = 32

	// JoinLimit is how long the first part to come waits for the other. Both left
	// together, so what is missing then is lost, and the ends above have begun to
	// send it again.
	JoinLimit = time.Second
)

// Keys of the direct lane (design §5.2).
const (
	// EpochLife is the age of an epoch at which the node begins the next one.
	EpochLife = 120 * time.Second

	// AskSealed is the count of sealed packets at which the next epoch is due
	// whatever its age.
	AskSealed = 1 << 27

	// MaxSealed and MaxEpochLife are where sealing stops without a new epoch.
	// AES-GCM's bound for a distinguisher is far above.
	MaxSealed    = 1 << 28
	MaxEpochLife = 300 * time.Second

	// MaxFailedOpens ends an epoch: the integrity limit that RFC 9001 §6.6
	// gives ChaCha20-Poly1305, the lower one of the two ciphers.
	MaxFailedOpens = 1 << 36

	// OldEpochLife is how long packets of the epoch before are still opened.
	OldEpochLife = 10 * time.Second

	// RekeySpacing is what a node lets pass between the end of one key exchange
	// and the beginning of the next. At 2^27 packets an epoch lasts longer than
	// that up to 13 million packets/s.
	RekeySpacing = 10 * time.Second

	// minRekeySpacing is what the hub insists on, so that no member can make it
	// multiply points all day. Half of RekeySpacing: the clocks of two machines
	// may run apart.
	minRekeySpacing = RekeySpacing / 2
)

// Times of the connection.
const (
	// HandshakeLimit is what a connection may take from its first packet to
	// the node's confirmation. Every wait of the handshake lies inside it: it
	// is the deadline that callers set on the stream.
	HandshakeLimit = 10 * time.Second

	// Keepalive keeps the mapping of a NAT on the way; the shortest that are
	// met live 30 s.
	Keepalive = 10 * time.Second

	// IdleTimeout is three keepalives: two may be lost.
	IdleTimeout = 30 * time.Second

	// MaxKeepalive bounds what a hub may announce.
	MaxKeepalive = 60 * time.Second
)
