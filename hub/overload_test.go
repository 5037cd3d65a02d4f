package hub

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"serve.zone/relay/hub/policy"
)

// bottleneck is the link to one machine, which has less room than is sent to it.
type bottleneck struct {
	to    netip.Addr
	rate  int                            // bytes in a second
	holds int                            // bytes that wait for it; what comes more is lost
	full  func(since time.Duration) bool // says when others fill it; nil for never

	mu     sync.Mutex
	begun  time.Time
	free   time.Time // when what waits has left
	lost   int
	narrow int // what is longer is lost as well; 0 for nothing
	large  int // packets that were
}

// fate says when a datagram arrives.
func (b *bottleneck) fate(f flight) []time.Duration {
	if f.to.Addr() != b.to {
		return []time.Duration{time.Millisecond}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.free.Before(now) {
		b.free = now
	}
	each := time.Second / time.Duration(b.rate)
	switch {
	case b.narrow > 0 && len(f.bytes) > b.narrow:
		b.large++
		return nil
	case b.free.Sub(now) > each*time.Duration(b.holds-len(f.bytes)), b.full != nil && b.full(now.Sub(b.begun)):
		b.lost++
		return nil
	}
	b.free = b.free.Add(each * time.Duration(len(f.bytes)))
	return []time.Duration{b.free.Sub(now) + time.Millisecond}
}

// narrows has what is longer be lost from now on.
func (b *bottleneck) narrows(to int) { b.mu.Lock(); defer b.mu.Unlock(); b.narrow = to }

// tooLarge is how many datagrams were.
func (b *bottleneck) tooLarge() int { b.mu.Lock(); defer b.mu.Unlock(); return b.large }

// overload is what is sent over a bottleneck.
type overload struct {
	size int // of each packet; 0 for any
	each time.Duration
	link *bottleneck
}

// overloads are all that members are loaded with here.
func overloads() map[string]overload {
	slow := func() *bottleneck { return &bottleneck{rate: 250_000, holds: 12_500} }
	return map[string]overload{
		"small packets":        {300, 700 * time.Microsecond, slow()},
		"packets of all sizes": {0, 2 * time.Millisecond, slow()},
		"full packets":         {1400, 2 * time.Millisecond, slow()},
		"a long queue":         {1400, 2 * time.Millisecond, &bottleneck{rate: 250_000, holds: 125_000}},
	}
}

// loaded has the second of two members loaded.
func loaded(t *testing.T, o overload, then func(t *testing.T, r *rig, b *dialler, send func(time.Duration) (full int))) {
	df := searching(t)
	bubble(t, func(t *testing.T) {
		r, a, b := fullPair(t, df)
		o.link.to, o.link.begun = r.machine(1), time.Now()
		r.net.decide(o.link.fate)
		random := rand.New(rand.NewPCG(1, 1))
		then(t, r, b, func(during time.Duration) (full int) {
			for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(o.each) {
				size := o.size
				if size == 0 {
					size = 60 + random.IntN(1341)
				}
				a.send(b, size)
				for _, came := range b.take() {
					if came > 1300 {
						full++
					}
				}
			}
			return full
		})
	})
}

// B128: for a minute more goes to a member than the link to it carries, or others fill the
// link at times. Nobody takes what is lost for a path that has become narrower. The hub's own
// answers are not among what it drops where the link takes any packets.
func TestB128_OverloadIsNoNarrowPath(t *testing.T) {
	tests := overloads()
	tests["others fill the link"] = overload{1400, 20 * time.Millisecond, &bottleneck{rate: 250_000, holds: 12_500,
		full: func(since time.Duration) bool { return since%(8*time.Second) < 4*time.Second }}}
	for name, o := range tests {
		t.Run(name, func(t *testing.T) {
			loaded(t, o, func(t *testing.T, r *rig, b *dialler, send func(time.Duration) int) {
				send(time.Minute)
				m, own := r.member(1), b.client.Status()
				if o.link.lost == 0 || o.link.full == nil && m.ToDropped == 0 {
					t.Fatalf("%d were lost, %d dropped: a wrong test", o.link.lost, m.ToDropped)
				}
				if own.Traffic.Narrowings != 0 || m.Session.ToSize < 1400 || own.Tunnel.DatagramOut < 1400 {
					t.Errorf("it was taken for a narrow path %d times, datagrams hold %d and %d bytes",
						own.Traffic.Narrowings, m.Session.ToSize, own.Tunnel.DatagramOut)
				}
				if n := m.traffic(policy.QueueFull); n != 0 && o.link.full == nil {
					t.Errorf("%d answers of the hub were dropped", n)
				}
			})
		})
	}
}

// B131: the way to a member that is overloaded becomes narrower. That is found out as well,
// though what comes back is among what is lost, and full packets pass again.
func TestB131_TheWayToALoadedMemberNarrows(t *testing.T) {
	for name, o := range overloads() {
		t.Run(name, func(t *testing.T) {
			// docs/tunnel.md, section 7. Those of all sizes share packets of QUIC with the checks.
			limit := 5 * time.Second
			if o.size < 1400 {
				limit += 3 * time.Second
			}
			loaded(t, o, func(t *testing.T, r *rig, b *dialler, send func(time.Duration) int) {
				send(5 * time.Second)
				o.link.narrows(1252)
				send(limit)
				before := o.link.tooLarge()
				if before == 0 {
					t.Fatal("nothing was too large: a wrong test")
				}
				full := send(5 * time.Second)
				if tried := o.link.tooLarge() - before; tried > 10 {
					t.Errorf("%d packets were still too large", tried)
				}
				if o.size == 1400 && full == 0 {
					t.Error("no full packet comes")
				}
				if n, m := b.client.Status().Traffic.Narrowings, r.member(1); n != 1 || m.Sessions != 1 {
					t.Errorf("the member has moved %d times: %+v", n, m)
				}
			})
		})
	}
}

// searching opens a socket of the system, which the bubble does nothing with but ask.
func searching(t *testing.T) syscall.RawConn {
	t.Helper()
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	df, err := socket.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	return df
}

// fullPair is a hub with two members, of which the first may send to the other, at a time
// when QUIC has found that datagrams hold a whole packet.
func fullPair(t *testing.T, df syscall.RawConn) (r *rig, a, b *dialler) {
	t.Helper()
	r = &rig{net: newPacketNet()}
	r.net.df = df
	r.build(t, []func(*Config){func(c *Config) {
		c.Address, c.ListenPacket = netip.MustParseAddrPort(hubAddress), r.net.ListenPacket
	}})
	r.cloudly().must(netOf(1, 2, 0, 1))
	a, b = r.runs(0), r.runs(1)
	a.comesUp(time.Second)
	b.comesUp(time.Second)
	r.until("datagrams hold a whole packet", 30*time.Second, func() bool {
		a.send(b, 1400)
		time.Sleep(time.Second)
		b.take()
		return a.client.Status().Tunnel.DatagramOut >= 1400 && r.member(1).Session.ToSize >= 1400
	})
	return r, a, b
}

// A hub that keeps everything back for a while, as it does when custody may be about to end
// and nothing follows, is not taken for one behind a path that has become narrower.
func TestSuspendMovesNobody(t *testing.T) {
	df := searching(t)
	for phase := range 4 {
		bubble(t, func(t *testing.T) {
			r, a, b := fullPair(t, df)
			sends := func(during time.Duration) {
				for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
					a.send(b, 1400)
				}
			}
			sends(3*time.Second + time.Duration(phase)*250*time.Millisecond)
			r.Suspend(r.upstream)
			sends(10 * time.Second)
			for _, n := range []*dialler{a, b} {
				if moves := n.client.Status().Traffic.Narrowings; moves != 0 {
					t.Errorf("phase %d: node %d moved %d times", phase, n.i, moves)
				}
			}
		})
	}
}

// What the metric says that waits is what the status says, answers of the hub included.
func TestAnswersThatWaitAreShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cloudly().must(netOf(1, 1))
		r.dial(0)
		s := r.routes[0].Load()
		s.out.mu.Lock()
		s.out.answers.push(entry{packet: make([]byte, 1000), from: s.seat, echo: true}, maxAnswers)
		s.out.mu.Unlock()
		if metric, shown := r.queuedBytes(), r.member(0).Session.QueuedBytes; metric != 1000+entryCost || shown != metric {
			t.Errorf("metric %d, status %d", metric, shown)
		}
	})
}
