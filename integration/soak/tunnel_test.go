package soak_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/node/userspace"
)

const (
	// members are the first nodes of the fleet. The first of them, the herald, has a
	// grant to each other always, and is never touched.
	members = 8
	herald  = 0
	// mortal is the member whose credential ends soon.
	mortal = members - 1

	datagramPort = 7000
	transferPort = 8000
	authority    = "authority-1"

	// everyDatagram is how often a member sends one to each other, granted or not.
	everyDatagram = pace * 100 * time.Millisecond
	// lifetime is when credentials end, and mortalLife when that of the mortal does:
	// far beyond what a run takes, and within what the clock is set by.
	lifetime   = 4 * time.Hour
	mortalLife = 20 * time.Minute
	pastMortal = 25 * time.Minute
)

// tunnel is the hub with its members, as they are meant to be.
type tunnel struct {
	s    *soak
	laws *laws
	// Of the test's goroutine.
	network contract.VPNNetwork // the last that was pushed
	grants  map[[2]int]bool
	absent  map[int]bool // in no network now
	expired map[int]bool // the clock was set beyond its end
	keys    [members]node.PrivateKey

	mu    sync.Mutex // guards what follows
	ends  [members]*end
	bulk  map[string]int // transfers, by what came of them
	lives [members]int
}

// end is a member's end of the tunnel.
type end struct {
	*userspace.Stack
	t      *tunnel
	who    sender
	client *node.Client
	stop   func()
	loops  sync.WaitGroup

	mu    sync.Mutex
	conns map[int]net.Conn // to the datagram sockets of others
	sent  uint64
}

func newTunnel(s *soak) *tunnel {
	s.t.Helper()
	t := &tunnel{s: s, laws: newLaws(), grants: map[[2]int]bool{}, absent: map[int]bool{}, expired: map[int]bool{}, bulk: map[string]int{}}
	s.t.Cleanup(t.close)
	t.network = contract.VPNNetwork{AuthorityID: authority, ControlPrefix: "10.90.0.0/24"}
	for n := range members {
		if n != herald {
			t.grants[[2]int{herald, n}] = true
		}
	}
	for _, pair := range pairs {
		t.grants[pair], t.grants[[2]int{pair[1], pair[0]}] = true, true
	}
	t.grants[[2]int{5, 6}] = true
	t.grants[[2]int{mortal, herald}] = true
	for n := range members {
		t.credential(n)
	}
	t.settle()
	for n := range members {
		t.join(n)
	}
	return t
}

// pairs send each other bulk.
var pairs = [][2]int{{1, 2}, {3, 4}}

// credential has a member ask for its credential as its node does, through the relay,
// and takes the key that is in it.
func (t *tunnel) credential(n int) {
	t.s.t.Helper()
	p := t.s.fleet.nodes[n]
	projection, err := t.s.Cloudly.Project(nodeName(n))
	if err != nil {
		t.s.t.Fatal(err)
	}
	p.AdmitProjection(projection)
	answer, err := p.GetManagedVPNCredential(t.s.Soon())
	if err != nil {
		t.s.t.Fatalf("the credential of %s: %v", nodeName(n), err)
	}
	var body struct{ ClientKeyPair struct{ PrivateKey string } }
	if err := json.Unmarshal(answer, &body); err != nil {
		t.s.t.Fatal(err)
	}
	if t.keys[n], err = node.ParsePrivateKey(body.ClientKeyPair.PrivateKey); err != nil {
		t.s.t.Fatal(err)
	}
}

// rekey gives a member another key: whoever has the one before is a member no more.
func (t *tunnel) rekey(n int) {
	t.s.t.Helper()
	key, err := node.GeneratePrivateKey(rand.Reader)
	if err != nil {
		t.s.t.Fatal(err)
	}
	t.keys[n] = key
	t.s.AddSecret("a client's key", []byte(key.Secret()))
	t.mu.Lock()
	t.lives[n]++
	t.mu.Unlock()
}

// workload is the one address of a member's workload.
func workload(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 91, byte(n), 2}) }

// compose makes the next network out of what is meant.
func (t *tunnel) compose() contract.VPNNetwork {
	next := contract.VPNNetwork{AuthorityID: authority, ControlPrefix: t.network.ControlPrefix, Revision: t.network.Revision + 1,
		Nodes: []contract.VPNNode{}, Grants: []contract.VPNGrant{}}
	for n := range members {
		if t.absent[n] {
			continue
		}
		ends := t.s.clock.now().Add(lifetime)
		if n == mortal {
			ends = time.Now().Add(mortalLife)
		}
		next.Nodes = append(next.Nodes, contract.VPNNode{
			NodeID: nodeName(n), PublicKey: t.keys[n].Public().String(), ControlAddress: fmt.Sprintf("10.90.0.%d", n+10),
			ExpiresAt:        ends.UnixMilli(),
			WorkloadPrefixes: []contract.VPNWorkload{{CIDR: fmt.Sprintf("10.91.%d.0/24", n), PolicyDomain: nodeName(n)}},
		})
	}
	for from := range members { // in order
		for to := range members {
			if t.grants[[2]int{from, to}] && !t.absent[from] && !t.absent[to] {
				next.Grants = append(next.Grants, contract.VPNGrant{SourceDomain: nodeName(from), DestinationDomain: nodeName(to)})
			}
		}
	}
	return next
}

// law is what is meant, as packets are judged by it.
func (t *tunnel) law() law {
	t.mu.Lock()
	defer t.mu.Unlock()
	open := law{}
	for g := range t.grants {
		if from, to := g[0], g[1]; t.grants[g] && !t.absent[from] && !t.absent[to] && !t.expired[from] && !t.expired[to] {
			open[way{sender{from, t.lives[from]}, sender{to, t.lives[to]}}] = true
		}
	}
	return open
}

// pushing is a network on its way to the hub.
type pushing struct {
	number  int // of its law
	network contract.VPNNetwork
	over    chan error
}

// push gives the hub the network that is meant, and waits for nothing.
func (t *tunnel) push() *pushing {
	next := t.compose()
	t.network = next
	x := &pushing{number: t.laws.begin(t.law()), network: next, over: make(chan error, 1)}
	// Pulls are answered with it from now on; the call may be later than the next.
	t.s.Cloudly.SetNetwork(&next)
	request := contract.ApplyVPNNetworkRequest{Network: next}.AppendJSON(nil)
	go func() {
		ctx, cancel := within(answerWait)
		defer cancel()
		body, err := t.s.Cloudly.Call(ctx, contract.MethodApplyVPNNetwork, request)
		if err == nil {
			err = t.answered(x, body)
		}
		x.over <- err
	}()
	return x
}

// errApplying is a network that is in force and not effective yet.
var errApplying = errors.New("it is being applied")

// answered takes over what a push was answered.
func (t *tunnel) answered(x *pushing, body []byte) error {
	answer, err := contract.ReadApplyVPNNetworkAnswer(body)
	switch {
	case err != nil:
		return err
	case answer.State == contract.VPNNetworkIdle && answer.AppliedRevision == x.network.Revision:
		t.laws.settle(x.number)
		return nil
	case answer.State == contract.VPNNetworkIdle:
		return fmt.Errorf("revision %d was answered idle with revision %d", x.network.Revision, answer.AppliedRevision)
	}
	return errApplying
}

// settle pushes what is meant until it is effective.
func (t *tunnel) settle() {
	t.s.t.Helper()
	x := t.push()
	first := true
	t.s.Eventually("a network that is effective", func() error {
		if !first { // the same again is answered with how far it is
			request := contract.ApplyVPNNetworkRequest{Network: x.network}.AppendJSON(nil)
			ctx, cancel := within(answerWait)
			defer cancel()
			body, err := t.s.Cloudly.Call(ctx, contract.MethodApplyVPNNetwork, request)
			if err != nil {
				return err
			}
			return t.answered(x, body)
		}
		first = false
		return <-x.over
	})
}

// join starts a member's client, with the key that it has now.
func (t *tunnel) join(n int) *end {
	t.s.t.Helper()
	all := t.s.Cloudly.Registrations()
	hub := all[len(all)-1].Relay.VPNHub
	hubKey, err := node.ParsePublicKey(hub.PublicKey)
	if err != nil {
		t.s.t.Fatal(err)
	}
	stack, err := userspace.New(workload(n))
	if err != nil {
		t.s.t.Fatal(err)
	}
	t.mu.Lock()
	e := &end{Stack: stack, t: t, who: sender{n, t.lives[n]}, conns: map[int]net.Conn{}}
	t.mu.Unlock()
	e.client, err = node.New(node.Config{
		Credential: node.Credential{
			Hub:    netip.AddrPortFrom(netip.MustParseAddr(hub.Address), uint16(hub.QUICPort)),
			HubKey: hubKey, AuthorityID: authority, Key: t.keys[n],
		},
		Device: stack,
	})
	if err != nil {
		t.s.t.Fatal(err)
	}
	packets, err := stack.ListenPacket("udp", netip.AddrPortFrom(workload(n), datagramPort).String())
	if err != nil {
		t.s.t.Fatal(err)
	}
	bulk, err := stack.Listen("tcp", netip.AddrPortFrom(workload(n), transferPort).String())
	if err != nil {
		t.s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.loops.Go(func() {
		if err := e.client.Run(ctx); err != nil {
			t.laws.fault("the client of %s: %v", nodeName(n), err)
		}
	})
	e.loops.Go(func() { e.receive(packets) })
	e.loops.Go(func() { e.accept(bulk) })
	e.stop = sync.OnceFunc(func() {
		cancel() // which closes the stack, and so what stands on it
		e.mu.Lock()
		for _, c := range e.conns {
			c.Close()
		}
		e.mu.Unlock()
		packets.Close()
		bulk.Close()
		e.loops.Wait()
	})
	t.mu.Lock()
	t.ends[n] = e
	t.mu.Unlock()
	return e
}

// leave ends a member's client.
func (t *tunnel) leave(n int) {
	t.mu.Lock()
	e := t.ends[n]
	t.ends[n] = nil
	t.mu.Unlock()
	if e != nil {
		e.stop()
	}
}

// close ends all clients.
func (t *tunnel) close() {
	var all sync.WaitGroup
	for n := range members {
		all.Go(func() { t.leave(n) })
	}
	all.Wait()
}

// at is a member's end, nil while there is none.
func (t *tunnel) at(n int) *end {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ends[n]
}

// datagram is what a datagram holds.
type datagram struct {
	From, Life, To, Fence uint32
	Stamp, Number         uint64
}

// send sends one datagram to another member. A fence is one behind which the law that is
// settled now holds.
func (e *end) send(to int, fence bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	conn := e.conns[to]
	if conn == nil {
		ctx, cancel := within(time.Second)
		defer cancel()
		var err error
		if conn, err = e.DialContext(ctx, "udp", netip.AddrPortFrom(workload(to), datagramPort).String()); err != nil {
			return // the stack is gone
		}
		e.conns[to] = conn
	}
	e.sent++
	d := datagram{From: uint32(e.who.member), Life: uint32(e.who.life), To: uint32(to), Stamp: uint64(e.t.laws.stamp()), Number: e.sent}
	if fence {
		d.Fence = 1
	}
	b, _ := binary.Append(nil, binary.BigEndian, d)
	conn.Write(b)
}

// receive judges what comes, until the stack is gone.
func (e *end) receive(socket net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		n, from, err := socket.ReadFrom(buf)
		if err != nil {
			return
		}
		var d datagram
		if _, err := binary.Decode(buf[:n], binary.BigEndian, &d); err != nil || int(d.To) != e.who.member {
			e.t.laws.fault("a datagram came to %s that is none for it", nodeName(e.who.member))
			continue
		}
		if source := from.(*net.UDPAddr).AddrPort().Addr().Unmap(); source != workload(int(d.From)) {
			e.t.laws.fault("a datagram of %s came from %s", nodeName(int(d.From)), source)
		}
		e.t.laws.arrived(way{sender{int(d.From), int(d.Life)}, e.who}, int(d.Stamp))
		if d.Fence == 1 {
			e.t.laws.fence(e.who, int(d.Stamp))
		}
	}
}

// up waits until every member has a session, at both ends.
func (t *tunnel) up() {
	t.s.t.Helper()
	for n := range members {
		e := t.at(n)
		t.s.Eventually(nodeName(n)+" up", func() error {
			if s := e.client.Status(); s.Tunnel == nil {
				return fmt.Errorf("it is %s, its last end %+v", s.State, s.Last)
			}
			return t.connected(nodeName(n))
		})
	}
}

// rejoin has every member's client begin anew, with no wait from before, when the network
// is effective, and waits until all are there.
func (t *tunnel) rejoin() {
	t.s.t.Helper()
	t.settle()
	t.close()
	for n := range members {
		t.join(n)
	}
	t.up()
	t.fence()
}

// fence has the herald send members what tells the packets that left before from those
// that left behind the law that is settled now, until it has come.
func (t *tunnel) fence() {
	t.s.t.Helper()
	number := t.laws.stamp()
	open := t.law()
	for n := range members {
		e := t.at(n)
		if e == nil || !open[way{t.at(herald).who, e.who}] {
			continue
		}
		t.s.Eventually("a datagram of the herald at "+nodeName(n), func() error {
			if t.laws.fenced(e.who, number) {
				return nil
			}
			t.at(herald).send(n, true)
			s := e.client.Status()
			return fmt.Errorf("none has come; the client is %s, its last end %+v", s.State, s.Last)
		})
	}
}
