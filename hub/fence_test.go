package hub

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/hub/network/networktest"
	"serve.zone/relay/hub/tunnel"
)

// valve is the device behind the hub's socket, which holds back what goes to one address
// while it is shut.
type valve struct {
	to   netip.AddrPort
	hub  *Hub
	mu   sync.Mutex
	shut chan struct{} // closed when it is opened; nil while it is open
	each time.Duration // that a packet of the test's takes
	only int           // so many of the packets matter, 0 for all
	late int           // packets of the test's that passed when revision 2 or 3 was applied
	all  int
}

// valveTo puts a valve on the way to a node, open.
func valveTo(r *rig, n *node) *valve {
	v := &valve{to: n.socket.(*memSocket).at, hub: r.Hub}
	r.net.watch(func(_, to netip.AddrPort, b []byte) bool {
		v.pass(to, len(b))
		return false
	})
	return v
}

func (v *valve) pass(to netip.AddrPort, size int) {
	v.mu.Lock()
	held, at, each, over := v.shut, v.to, v.each, v.only > 0 && v.all >= v.only
	v.mu.Unlock()
	if to != at {
		return
	}
	if held != nil {
		<-held
	}
	if size <= largeDatagram || over {
		return
	}
	time.Sleep(each)
	v.hub.mu.Lock()
	applied := v.hub.state.applied >= 2 && !v.hub.state.applying
	v.hub.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all++
	if applied {
		v.late++
	}
}

func (v *valve) close() { v.mu.Lock(); defer v.mu.Unlock(); v.shut = make(chan struct{}) }

func (v *valve) open() {
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.shut)
	v.shut = nil
}

// slow has each packet of the test's take its time, or only so many of them.
func (v *valve) slow(each time.Duration, only int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.each, v.only = each, only
}

// moved has the node be at another address.
func (v *valve) moved(to netip.AddrPort) { v.mu.Lock(); defer v.mu.Unlock(); v.to = to }

// passed is how many packets of the test's passed, and how many of them behind idle.
func (v *valve) passed() (all, late int) { v.mu.Lock(); defer v.mu.Unlock(); return v.all, v.late }

// idle waits until the hub is.
func (r *rig) idle() {
	r.t.Helper()
	r.until("an idle hub", time.Minute, func() bool { return r.status().Network.State == "idle" })
}

// R60: idle is answered behind the last forbidden packet that QUIC has sealed, however
// slowly the system takes them, and also where others that are granted have followed.
func TestR60_IdleIsAnsweredBehindASlowWriter(t *testing.T) {
	for name, test := range map[string]struct {
		forbidden, granted int
		each               time.Duration
	}{
		"many":               {60, 0, 20 * time.Millisecond},
		"one":                {1, 0, 2 * time.Second},
		"one, before others": {1, 20, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				c := r.cloudly()
				c.must(netOf(1, 3, 0, 1, 2, 1))
				a, b, other := r.dial(0), r.dial(1), r.dial(2)
				v := valveTo(r, b)
				v.slow(test.each, test.forbidden)
				for n := range test.forbidden {
					a.send(packetOf(ip(0), ip(1), 1000, n))
				}
				time.Sleep(30 * time.Millisecond)
				for n := range test.granted {
					other.send(packetOf(ip(2), ip(1), 28, n))
				}
				time.Sleep(10 * time.Millisecond)
				if got := c.apply(netOf(2, 3, 2, 1)); got != "applying 1" {
					t.Errorf("answered %s", got)
				}
				r.idle()
				time.Sleep(5 * time.Second)
				if all, late := v.passed(); all == 0 || late != 0 || !b.open() {
					t.Errorf("%d forbidden packets left, %d of them behind idle; open: %v", all, late, b.open())
				}
			})
		})
	}
}

// R60: a member that moves while QUIC's writer is waited for keeps its connection, and
// nothing forbidden leaves behind idle.
func TestR60_AMemberThatMovesIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		c.must(netOf(1, 2, 0, 1))
		a, b := r.dial(0), r.dial(1)
		v := valveTo(r, b)
		v.slow(20*time.Millisecond, 0)
		for n := range 60 {
			a.send(packetOf(ip(0), ip(1), 1000, n))
		}
		time.Sleep(30 * time.Millisecond)
		if got := c.apply(netOf(2, 2)); got != "applying 1" {
			t.Fatalf("answered %s", got)
		}
		as := netip.MustParseAddrPort("203.0.113.7:1234")
		r.net.rebind(b.socket.(*memSocket).at, as)
		v.moved(as)
		b.send(echoOf(control(1), "192.168.0.1"))
		begun := time.Now()
		r.idle()
		if time.Since(begun) >= fenceWait/2 || !b.open() {
			t.Errorf("idle after %v, open: %v", time.Since(begun), b.open())
		}
		if to := r.member(1).Session.Address; to != as.String() {
			t.Fatalf("the member has not moved, but is at %s", to)
		}
		time.Sleep(5 * time.Second)
		if _, late := v.passed(); late != 0 {
			t.Errorf("%d forbidden packets left behind idle", late)
		}
	})
}

// R60, R20: a session that has lost its place already, to a newer connection, to the time
// or to the network before, is waited for like one that loses it now: what QUIC has sealed
// for it leaves before the answer. So it is when custody ends.
func TestR60_R20_SessionsWithoutAPlaceAreWaitedFor(t *testing.T) {
	for name, lose := range map[string]func(r *rig, c *cloud){
		"to a newer connection": func(r *rig, _ *cloud) {
			r.dial(1, func(d *dialling) { d.from = "198.51.100.77:0" })
		},
		"to the time": func(r *rig, _ *cloud) { time.Sleep(20 * time.Second) },
		"to the network before": func(r *rig, c *cloud) {
			if got := c.apply(without(netOf(2, 3, 2, 0), 1)); got != "applying 1" {
				r.t.Errorf("the network before was answered %s", got)
			}
		},
	} {
		for _, dropped := range []bool{false, true} {
			if dropped {
				name += ", and custody ends"
			}
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					r := newRig(t)
					c := r.cloudly()
					x := netOf(1, 3, 0, 1, 2, 0)
					x.Nodes[1].ExpiresAt = networktest.Admitted + 20_000
					c.must(x)
					a, b := r.dial(0), r.dial(1)
					v := valveTo(r, b)
					v.close()
					for n := range 20 {
						a.send(packetOf(ip(0), ip(1), 1000, n))
					}
					settle()
					lose(r, c)
					settle()
					if r.routes[1].Load() != nil && !strings.HasPrefix(name, "to a newer") {
						t.Fatal("it has its place")
					}
					answered := make(chan string, 1)
					go func() {
						if dropped {
							r.DropCustody("relay-node-unknown")
							answered <- "dropped"
							return
						}
						answered <- c.apply(without(netOf(3, 3, 2, 0), 1))
					}()
					if !dropped {
						if got := <-answered; !strings.HasPrefix(got, "applying") {
							t.Errorf("answered %s while QUIC has not written what it has sealed", got)
						}
					} else {
						time.Sleep(time.Second)
						select {
						case <-answered:
							t.Error("the drop has returned while QUIC has not written what it has sealed")
							answered <- ""
						default:
						}
					}
					v.open()
					if dropped {
						<-answered
					} else {
						r.idle()
					}
					all, late := v.passed()
					time.Sleep(time.Minute)
					if now, lately := v.passed(); now == 0 || lately != 0 || now != all || b.open() {
						t.Errorf("%d packets left, %d before the answer, %d and %d behind idle; open: %v", now, all, late, lately, b.open())
					}
					if n := len(r.leavers()); n != 0 {
						t.Errorf("%d sessions are waited for for ever", n)
					}
				})
			})
		}
	}
}

// R60: where an end that takes a session's place has not begun to end it, the apply does.
func TestR60_ASupersededConnectionIsEndedByTheApply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		c.must(netOf(1, 3, 0, 1, 2, 1))
		a, b := r.dial(0), r.dial(1)
		deaf := filled(r, a, b)
		s := r.routes[1].Load()
		now := r.now()
		r.Hub.mu.Lock()
		_, older, how := r.take(s.id, s.conn, s.stream, now) // and its caller is not run for a while
		r.Hub.mu.Unlock()
		if older != s || how != endConfirmed {
			t.Fatalf("it took no place: %v", how)
		}
		if got := c.apply(netOf(2, 3, 2, 1)); got != "idle 2" {
			t.Errorf("answered %s", got)
		}
		deaf.heal()
		settle()
		if late := deaf.lateOnes(); late != 0 || older.conn.Context().Err() == nil {
			t.Errorf("%d forbidden packets left behind idle", late)
		}
		if code := b.closed(); code != tunnel.CloseSuperseded {
			t.Errorf("closed with %v", code)
		}
	})
}

// R66: revisions that forbid nothing, however often they come, cost no member its connection
// that takes its packets slowly: each apply waits for what QUIC held by then, and for
// nothing that came behind it.
func TestR66_RevisionsDoNotStarveTheFence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		c.must(netOf(1, 3, 0, 1, 2, 1))
		a, b := r.dial(0), r.dial(1)
		valveTo(r, b).slow(20*time.Millisecond, 0)
		over := make(chan struct{})
		var sending sync.WaitGroup
		sending.Go(func() {
			// Small ones, of which QUIC puts many in one packet and so holds more than
			// is looked back to.
			for n := 0; ; n++ {
				select {
				case <-over:
					return
				default:
				}
				a.send(packetOf(ip(0), ip(1), 28, n))
				if n%60 == 59 {
					time.Sleep(20 * time.Millisecond)
				}
			}
		})
		time.Sleep(time.Second)
		begun := time.Now()
		for rev := int64(2); time.Since(begun) < 2*fenceWait && b.open(); rev++ {
			c.apply(netOf(rev, 3, 0, 1, 2, 1))
			time.Sleep(50 * time.Millisecond)
		}
		if !b.open() {
			t.Errorf("closed with %v after %v", b.closed(), time.Since(begun))
		}
		close(over)
		sending.Wait()
	})
}

// slowSocket is a socket of the system that takes its time, with all that QUIC makes use
// of.
type slowSocket struct {
	*net.UDPConn
	wrote func(size int, to *net.UDPAddr)
}

func (s slowSocket) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error) {
	s.wrote(len(b), to)
	return s.UDPConn.WriteMsgUDP(b, oob, to)
}

// R60: the same on a socket of the system, where QUIC may write several packets at a call.
func TestR60_IdleIsAnsweredBehindASlowSocket(t *testing.T) {
	var target atomic.Int64 // the member's port
	var idle atomic.Bool
	var late atomic.Int64
	r := &rig{}
	r.build(t, []func(*Config){func(c *Config) {
		c.Address = netip.MustParseAddrPort("127.0.0.1:0")
		c.ListenPacket = func(context.Context, string, string) (net.PacketConn, error) {
			r.Hub.quic.DisablePathMTUDiscovery = true // no other packets are large
			socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
			return slowSocket{socket, func(size int, to *net.UDPAddr) {
				if int64(to.Port) != target.Load() || size <= largeDatagram {
					return
				}
				time.Sleep(3 * time.Millisecond)
				if idle.Load() {
					late.Add(1)
				}
			}}, err
		}
	}})
	c := r.cloudly()
	c.must(netOf(1, 2, 0, 1))
	a, b := r.dial(0), r.dial(1)
	target.Store(int64(b.socket.LocalAddr().(*net.UDPAddr).Port))
	stop := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				a.send(packetOf(ip(0), ip(1), 100+n%97, n))
			}
		}
	})
	until(t, "packets that wait", func() bool { return r.member(1).Session.QueuedBytes > 32<<10 })
	c.apply(netOf(2, 2))
	until(t, "an idle hub", func() bool { return r.status().Network.State == "idle" })
	idle.Store(true)
	close(stop)
	sending.Wait()
	if !b.open() {
		t.Error("the connection did not survive")
	}
	r.stop() // what QUIC has sealed is written then
	if late.Load() != 0 {
		t.Errorf("%d forbidden buffers were written behind idle", late.Load())
	}
}

// A socket whose writes are counted can do for QUIC what it could before.
func TestCountedSocketsDoWhatTheOnesBelowCan(t *testing.T) {
	var w writes
	system, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer system.Close()
	for _, socket := range []net.PacketConn{system, &memSocket{}, searchingSocket{&memSocket{}, nil}} {
		counted := w.counted(socket)
		for name, has := range map[string]func(net.PacketConn) bool{
			"more than WriteTo":   func(c net.PacketConn) bool { _, ok := c.(quic.OOBCapablePacketConn); return ok },
			"reading in batches":  func(c net.PacketConn) bool { _, ok := c.(net.Conn); return ok },
			"its send buffer":     func(c net.PacketConn) bool { _, ok := c.(interface{ SetWriteBuffer(int) error }); return ok },
			"the path's size too": func(c net.PacketConn) bool { _, ok := c.(syscall.Conn); return ok },
		} {
			if has(counted) != has(socket) {
				t.Errorf("%T, %s: %v, was %v", socket, name, has(counted), has(socket))
			}
		}
	}
	// Where QUIC has no messages of the system's it uses WriteTo, of whatever socket.
	var x written
	to := system.LocalAddr()
	w.of.Store(to, &x)
	if _, err := w.counted(system).WriteTo([]byte("datagram"), to); err != nil || x.count.Load() != 1 {
		t.Errorf("%d writes are counted, %v", x.count.Load(), err)
	}
	r := newLoopbackRig(t)
	r.cloudly().must(netOf(1, 1))
	n := r.dial(0)
	s := r.routes[0].Load()
	if hub, bare := s.conn.ConnectionState().GSO, n.conn.ConnectionState().GSO; hub != bare {
		t.Errorf("the hub writes many packets at a call: %v, on a bare socket: %v", hub, bare)
	}
	before := s.out.written.count.Load()
	n.send(echoOf(control(0), "192.168.0.1"))
	until(t, "a write that is counted", func() bool { return s.out.written.count.Load() > before })
}

// What the system would not cut into packets is one buffer, however many pieces QUIC then
// writes, and a write that failed is none.
func TestABufferInPiecesIsCountedOnce(t *testing.T) {
	var w written
	buffer := make([]byte, 3000, 20<<10)
	steps := []struct {
		b    []byte
		err  error
		want uint64
	}{
		{buffer[:1200], nil, 1},
		{buffer, errors.New("input/output error"), 1},
		{buffer[:1200], nil, 2},
		{buffer[1200:2400], nil, 2},
		{buffer[2400:], nil, 2},
		{make([]byte, 1200, 1452), nil, 3},
		{make([]byte, 1200, 1452), nil, 4},
	}
	for i, step := range steps {
		if w.finished(step.b, step.err); w.count.Load() != step.want {
			t.Errorf("step %d: %d are counted, want %d", i, w.count.Load(), step.want)
		}
	}
}
