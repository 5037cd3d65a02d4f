package hub

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/hub/network"
	"serve.zone/relay/hub/policy"
	"serve.zone/relay/hub/tunnel"
	"serve.zone/relay/typedsocket"
)

// Name is the name of this duty.
const Name = "hub"

// Config is what a Hub is made from. Address, ListenPacket and Call must be set.
type Config struct {
	// Address is where the hub binds, IPv4 and UDP. Port 0 takes any.
	Address netip.AddrPort
	// Key is the hub's Noise key. The zero value makes a new one, with which no
	// node can return that knew the one before (contract O3b).
	Key tunnel.PrivateKey
	// ListenPacket opens the socket, in the form of package net.
	ListenPacket func(ctx context.Context, network, address string) (net.PacketConn, error)
	// Call calls Cloudly for the relay itself, as cloudly.Session.Call does: so
	// that a name that ends custody is heard where it is read.
	Call func(ctx context.Context, sock *typedsocket.Socket, method string, request []byte, o typedsocket.CallOptions) (*typedsocket.Answer, error)
	// Wall is the wall clock; time.Now if nil. Memberships end by it, and it may
	// step. It must not block.
	Wall   func() time.Time
	Log    *duty.Logger
	Events *duty.Events // of a catalogue with EventKinds; nil publishes nothing
}

// Hub is the duty. Bind is called before Run, each once; the other methods may be
// called at any time. Those that serve a request end it, now or later, and do not
// block.
type Hub struct {
	cfg       Config
	key       tunnel.PrivateKey
	ephemeral bool // the key was made here
	start     time.Time
	terms     tunnel.Terms
	metrics   metrics
	quic      *quic.Config // of every connection; a test traces it
	compile   func(prev *policy.Table, next contract.VPNNetwork, admitted network.Instant) (*policy.Table, error)

	// The packet path reads these without a lock.
	table  atomic.Pointer[policy.Table]
	routes [policy.Slots]atomic.Pointer[session]
	resume atomic.Int64 // by the monotonic clock; until then a refusal that was read keeps everything back

	applying sync.Mutex     // held while a network takes the place of another
	telling  sync.Mutex     // held while events are published
	workers  sync.WaitGroup // connections, pushes that are judged, barriers
	look     chan struct{}  // deadlines have changed; has room for one

	kernel  socketWatch
	writes  writes
	reserve []byte // never touched; see reserved

	gateMu sync.Mutex // guards gate
	gate   gate

	mu        sync.Mutex // guards what follows
	transport *quic.Transport
	listener  *quic.EarlyListener
	socket    net.PacketConn
	bound     netip.AddrPort
	draining  bool
	closed    bool
	conns     map[*quic.Conn]struct{} // every connection, confirmed or not
	seats     [policy.Slots]*seat
	leaving   map[*session]leaver // sessions without a place that may not have ended
	former    map[contract.NoiseKey]struct{}
	refused   [handshakeEnds]recurring

	custody  uint64 // counts the ends of custody
	upstream *typedsocket.Socket
	attached bool
	pushes   []push // that wait to be judged
	judging  bool   // a goroutine judges them
	came     uint64 // pushes that came
	taken    uint64 // the number among them of the last that was taken over
	clock    network.Clock
	state    state
	shown    [numChecks]duty.Check
	queued   []func() // events to come
}

// New returns a Hub that holds no network and is not bound.
func New(cfg Config) (*Hub, error) {
	switch {
	case !cfg.Address.Addr().Is4():
		return nil, errors.New("hub: the address to bind is not ipv4")
	case cfg.ListenPacket == nil || cfg.Call == nil:
		return nil, errors.New("hub: a seam is missing")
	}
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	h := &Hub{
		cfg: cfg, key: cfg.Key, start: time.Now(), terms: tunnel.DatagramTerms(), quic: tunnel.HubQUIC(), compile: policy.Compile,
		look: make(chan struct{}, 1), gate: newGate(),
		conns: map[*quic.Conn]struct{}{}, leaving: map[*session]leaver{}, former: map[contract.NoiseKey]struct{}{},
	}
	if h.key.IsZero() {
		key, err := tunnel.GeneratePrivateKey(rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("hub: %w", err)
		}
		h.key, h.ephemeral = key, true
	}
	h.table.Store(policy.Empty(nil))
	h.metrics = h.newMetrics()
	return h, nil
}

// Name returns the duty's name.
func (h *Hub) Name() string { return Name }

// now reads both clocks.
func (h *Hub) now() network.Instant { return h.at(h.moment()) }

// at is the reading whose monotonic part has been taken.
func (h *Hub) at(mono time.Time) network.Instant {
	return network.InstantAt(h.cfg.Wall(), mono.Sub(h.start))
}

// moment reads the monotonic clock alone, for half the price of time.Now.
func (h *Hub) moment() time.Time { return h.start.Add(time.Since(h.start)) }

// publish queues an event. The caller holds mu, and calls flush when it does not
// any more.
func (h *Hub) publish(t duty.EventType, fields ...field.Field) {
	if h.cfg.Events != nil {
		h.queued = append(h.queued, func() { h.cfg.Events.Publish(t, fields...) })
	}
}

// flush publishes what was queued, in order.
func (h *Hub) flush() {
	h.telling.Lock()
	defer h.telling.Unlock()
	for do := h.next(); do != nil; do = h.next() {
		do()
	}
}

// next takes the first event that was queued, nil for none.
func (h *Hub) next() func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queued) == 0 {
		h.queued = nil // its memory
		return nil
	}
	do := h.queued[0]
	h.queued[0], h.queued = nil, h.queued[1:]
	return do
}

// signal wakes who waits on a channel with room for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
