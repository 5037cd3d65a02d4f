package hub

import (
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/policy"
	"serve.zone/relay/hub/tunnel"
)

// Bounds of what nobody has authenticated yet (design §5.1).
const (
	// maxHalfOpen bounds the connections without a confirmed handshake: a whole
	// cluster may come back at once, so as many as a network has members. One that
	// comes beyond it takes the place of another (gate.take): else whoever opens 26
	// connections a second and goes no further would keep all nodes out.
	maxHalfOpen = contract.MaximumVPNNodes
	// maxHalfOpenOfOne bounds those of one /24, so that one neighbourhood cannot keep
	// all others out.
	maxHalfOpenOfOne = maxHalfOpen / 4
	// maxDisplaced bounds the connections that have lost their places and have not ended
	// yet: QUIC hands none over before it has the whole ClientHello, which is two
	// packets, and none that it has not handed over can be closed. With hurriedIdle it
	// takes 256 of them a second, from addresses that have proved to be there, until
	// nobody else gets in; they hold some 20 MiB then.
	maxDisplaced = 2 * maxHalfOpen
	// hurriedIdle is how long QUIC waits for the next packet of a handshake where
	// addresses must prove that they are there. Who is there repeats itself several times
	// in it.
	hurriedIdle = 2 * time.Second
	// subnetBits is the neighbourhood that maxHalfOpenOfOne is for.
	subnetBits = 24
	// maxFormerKeys bounds the keys of members that are none any more, which are kept
	// to tell a withdrawn key from one that never was: four networks exchanged whole.
	maxFormerKeys = 4 * contract.MaximumVPNNodes
)

// Bounds of the packet path.
const (
	// maxQueued bounds the bytes that wait for one destination, entries included:
	// what 100 Mbit/s carry in 20 ms. 256 members that read nothing hold 64 MiB.
	maxQueued = 256 << 10
	// maxAnswers bounds the bytes of the hub's answers to a member's echo requests that
	// wait beside those: all that it admits of one in a second. Whoever takes none of them
	// for so long does not miss the next.
	maxAnswers = policy.EchoRequestsPerSecond * (tunnel.MaxInnerMTU + entryCost)
	// entryCost is what an entry of a queue costs beside its packet.
	entryCost = 128
	// quicDepth is how many datagrams QUIC must have taken since one before that is not
	// in its queue any more: twice what quic-go 0.65 queues, which tells nobody (design
	// §5.2).
	quicDepth = 64
	// writerDepth is how many buffers QUIC may have begun to seal and not written: in
	// quic-go 0.65 one that is filled, eight that wait for the writer, and the one that
	// it writes. Each is a packet, now and then several (GSO). One more, since a buffer
	// that is written in pieces counts with its first.
	writerDepth = 11
	// lookedBack is how many datagrams are remembered, to tell by whether QUIC holds one
	// that is forbidden: quicDepth, and some ten in each of 2*writerDepth buffers, where
	// full packets are one. Where QUIC may hold more, an apply waits for them unseen.
	lookedBack = 256
)

// reserved is how much memory the hub holds and never touches, so that it takes none of
// the machine's: it is there for the garbage collector, which runs when as much garbage
// has gathered as there is live memory. QUIC leaves 4 KiB of it for each packet. Beside
// the 2 MiB of a relay with few members the collector would run every 500 packets, and
// take a sixth of what a packet costs; with this the garbage of 2,500 gathers.
const reserved = 8 << 20

// The rule about two ends with one key (design §5.1).
const (
	// changesWithin is the time in which more than one change of a member's
	// connection is taken for two ends with one key.
	changesWithin = 10 * time.Second
	// changesHeldTo is how long one connection then stands at least.
	changesHeldTo = 5 * time.Second
	// mostChanges is how many changes are taken for two ends at whatever pace, within
	// changesOver. The relay's own nodes leave the place to each other after 15 to 30 s; a
	// node that is set up anew on another machine while the older one runs makes two
	// changes.
	mostChanges = 3
	// changesOver is also how long a key stays named behind the last attempt of two ends.
	// It is longer than any node waits to dial again (package node: 5 min), so that it is
	// for as long as both run.
	changesOver = 10 * time.Minute
	// answerWait is how long the end that stands has to answer. QUIC sends again what is
	// lost several times in it, at a round trip around the world. answerLook is how often
	// it is looked at whether it has: nothing tells.
	answerWait = 2 * time.Second
	answerLook = 10 * time.Millisecond
)

// maxPushes bounds the pushed networks that wait to be taken over, each at most a
// frame. A push is a whole network, so that two in a row are rare.
const maxPushes = 4

// Waits.
const (
	// applyWait is how long an apply waits for what QUIC still holds of the network
	// before, until it answers applying (design §5.4).
	applyWait = 50 * time.Millisecond
	// fenceWait is how long QUIC may hold what a network forbids. A connection that
	// does not take 64 datagrams in that time is as good as none, and is closed.
	fenceWait = 10 * time.Second
	// urgeEvery is how often QUIC's writer is given a buffer while it is waited for, if
	// it has not finished the one before.
	urgeEvery = 50 * time.Millisecond
	// lookEvery is how often deadlines, path sizes and parts that wait are looked at:
	// the wall clock can be set, and nothing tells of it.
	lookEvery = time.Second
	// suspendWait is how long Suspend keeps everything back if nothing follows it. An
	// end of custody follows within a second (contract R20). Members whose echoes are
	// not answered for 3 s take that for a path that has become narrower.
	suspendWait = 2 * time.Second
	// pullWait bounds one answer to the pull, pullBound the pull as a whole: a peer
	// may ask for retries, each after a time of its own choosing.
	pullWait  = contract.ForwardTimeout
	pullBound = 4 * pullWait
	// controlWait bounds the writing of one message on the stream of a member.
	controlWait = 5 * time.Second
	// farewell is what a member is given to read why the hub closes its connection
	// before that happens: a round trip around the world.
	farewell = 300 * time.Millisecond
	// retryAfter is when a member of a hub that stops makes sense to dial again.
	retryAfter = time.Second
	// tellEvery is the least distance of two events about handshakes that were
	// refused for one reason: anybody can cause them.
	tellEvery = time.Minute
)

// handshakeLimit is the time from the first packet to the confirmation.
const handshakeLimit = tunnel.HandshakeLimit
