package node_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/node/nodetest"
	"serve.zone/relay/hub/tunnel"
)

// A hub that was killed and comes back with its key resets the connections of the one
// before: the node is back after its next keepalive, not after the idle timeout.
func TestHubThatStartsAnewWithItsKeyIsDialledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run(credential())
		r.state(node.StateUp, time.Second)
		r.hub.Close()
		r.startHub(hubKey)
		killed := time.Now()
		r.session()
		if took := time.Since(killed); took > tunnel.Keepalive+time.Second {
			t.Errorf("the node was back after %v", took)
		}
		if s, _ := r.firstEnd(time.Second); s.Last.Reason != node.Reset {
			t.Errorf("ended with %+v, want %s", s.Last, node.Reset)
		}
		r.echo(1400, time.Second)
	})
}

// With another key nothing tells the node but silence; the credential is wrong then.
func TestHubThatStartsAnewWithAnotherKeyIsNotTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run(credential())
		r.state(node.StateUp, time.Second)
		r.hub.Close()
		r.startHub(mustKey(0x77))
		// A keepalive that no answer came to begins the idle timeout anew, once.
		if s, _ := r.firstEnd(tunnel.IdleTimeout + tunnel.Keepalive + time.Second); s.Last.Reason != node.Silent {
			t.Errorf("ended with %+v, want %s", s.Last, node.Silent)
		}
		r.state(node.StateWaiting, time.Minute)
		if s := r.client.Status(); s.Last.Reason != node.HubHandshake || s.Tunnels != 1 {
			t.Errorf("then with %+v, %d tunnels", s.Last, s.Tunnels)
		}
	})
}

// B124: a hub that is away for hours is dialled all the time, at a bounded pace, and found
// soon when it is back.
func TestB124_HubAwayForHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run(credential())
		r.state(node.StateUp, time.Second)
		r.net.SetFate(func(nodetest.Flight) []time.Duration { return nil })
		const away = 6 * time.Hour
		time.Sleep(away)
		s := r.client.Status()
		// An attempt takes 5 to 10 s, the wait behind it 15 to 30 s.
		if least, most := away/(40*time.Second), away/(20*time.Second)+10; s.Attempts < uint64(least) || s.Attempts > uint64(most) {
			t.Errorf("%d attempts, want %d to %d", s.Attempts, least, most)
		}
		if s.Endings[node.Silent] != 1 || s.Endings[node.Unreachable] < s.Attempts-3 {
			t.Errorf("endings %v", s.Endings)
		}
		r.net.SetFate(nil)
		r.state(node.StateUp, 41*time.Second)
		r.echo(1400, time.Second)
	})
}

// A silent path that comes back in time ends nothing.
func TestShortSilenceEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run(credential())
		r.state(node.StateUp, time.Second)
		r.net.SetFate(func(nodetest.Flight) []time.Duration { return nil })
		time.Sleep(15 * time.Second)
		r.net.SetFate(nil)
		r.echo(1400, 20*time.Second)
		if s := r.client.Status(); s.Attempts != 1 {
			t.Errorf("%d attempts, last %+v", s.Attempts, s.Last)
		}
	})
}

// B193, B190: a NAT that gives the node another port, or the machine another address, does
// not end the tunnel; the hub answers at the new address.
func TestB193_NodeRoams(t *testing.T) {
	for name, idle := range map[string]time.Duration{"under traffic": 0, "idle": tunnel.Keepalive + time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.run(credential())
				r.state(node.StateUp, time.Second)
				session := r.session()
				r.echo(1400, time.Second)
				for move := range 5 {
					as := netip.AddrPortFrom(netip.MustParseAddr("203.0.113.9"), uint16(5000+move))
					r.net.Rebind(r.socket(), as)
					time.Sleep(idle)
					if idle == 0 {
						r.echo(1400, 5*time.Second)
					} else {
						// The hub speaks first.
						session.Send(packet(workload, 1400, 1))
						select {
						case <-r.device.FromNode:
						case <-time.After(time.Second):
							t.Fatalf("move %d: the hub does not reach the node", move)
						}
					}
					if got := session.Conn.RemoteAddr().(*net.UDPAddr).AddrPort(); got != as {
						t.Fatalf("the hub answers to %v, want %v", got, as)
					}
				}
				if s := r.client.Status(); s.Attempts != 1 {
					t.Errorf("%d attempts, last %+v", s.Attempts, s.Last)
				}
			})
		})
	}
}

// socket returns the address of the node's socket.
func (r *rig) socket() netip.AddrPort {
	for _, addr := range r.net.Sockets() {
		if addr != hubAt {
			return addr
		}
	}
	r.t.Fatal("the node has no socket")
	return netip.AddrPort{}
}

// R66: a successor credential for the same key leaves the tunnel alone.
func TestR66_SuccessorCredentialLeavesTheTunnelAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run(credential())
		r.state(node.StateUp, time.Second)
		next := credential()
		next.ExpiresAt = time.Now().Add(time.Hour)
		if err := r.client.Renew(next); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if s := r.client.Status(); s.Attempts != 1 || s.State != node.StateUp || !s.ExpiresAt.Equal(next.ExpiresAt) {
			t.Errorf("%d attempts, %s, expires %v", s.Attempts, s.State, s.ExpiresAt)
		}
	})
}

// A node that was not admitted is dialled at once with a successor credential.
func TestSuccessorCredentialEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.hub.Refuse(tunnel.CloseNotAdmitted)
		r.run(credential())
		time.Sleep(10 * time.Minute)
		for r.client.Status().State != node.StateWaiting || time.Until(r.client.Status().Next) < 20*time.Second {
			time.Sleep(time.Second)
		}
		r.hub.Refuse(tunnel.CloseDone)
		if err := r.client.Renew(credential()); err != nil {
			t.Fatal(err)
		}
		r.state(node.StateUp, time.Second)
	})
}

func TestCredentialThatIsNoSuccessor(t *testing.T) {
	c := credential()
	client, err := node.New(node.Config{Credential: c, Device: nodetest.NewDevice(1)})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*node.Credential){
		"hub address":  func(c *node.Credential) { c.Hub = netip.MustParseAddrPort("192.0.2.1:4434") },
		"hub key":      func(c *node.Credential) { c.HubKey[0]++ },
		"authority id": func(c *node.Credential) { c.AuthorityID += "x" },
		"key":          func(c *node.Credential) { c.Key = hubKey },
	} {
		other := credential()
		other.ExpiresAt = time.Unix(1_800_000_000, 0)
		change(&other)
		if err := client.Renew(other); !errors.Is(err, node.ErrNoSuccessor) || !strings.HasSuffix(err.Error(), name) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	if !client.Status().ExpiresAt.IsZero() {
		t.Error("a refused credential changed something")
	}
}

// A node that is stopped tells the hub, closes its device, and leaves no socket, whatever
// it was doing.
func TestStop(t *testing.T) {
	tests := []struct {
		name  string
		setUp func(r *rig)
		state node.State
		says  bool
	}{
		{"up", func(r *rig) {}, node.StateUp, true},
		{"dialling", func(r *rig) { r.hub.Close() }, node.StateDialling, false},
		{"handshaking", func(r *rig) { r.hub.Mute() }, node.StateHandshaking, false},
		{"waiting", func(r *rig) { r.hub.Refuse(tunnel.CloseInternal) }, node.StateWaiting, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				test.setUp(r)
				r.run(credential())
				r.state(test.state, time.Second)
				began := time.Now()
				r.stop()
				if err := <-r.ran; err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > 300*time.Millisecond {
					t.Errorf("it took %v", took)
				}
				<-r.device.Closed()
				if sockets := r.net.Sockets(); slices.ContainsFunc(sockets, func(a netip.AddrPort) bool { return a != hubAt }) {
					t.Errorf("sockets left: %v", sockets)
				}
				if test.says {
					session := r.session()
					if m := <-session.Messages; m != (tunnel.Path{Lane: tunnel.LaneDatagram, Size: 1195}) {
						t.Errorf("the node said %+v first", m)
					}
					if m := <-session.Messages; m != (tunnel.Close{Code: tunnel.CloseDone}) {
						t.Errorf("the node said %+v last", m)
					}
				}
				if err := r.client.Run(t.Context()); !errors.Is(err, node.ErrRan) {
					t.Errorf("second run: %v", err)
				}
			})
		})
	}
}

// A device that fails ends the node, with its error.
func TestDeviceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run(credential())
		r.state(node.StateUp, time.Second)
		r.device.Close()
		if err := <-r.ran; !errors.Is(err, node.ErrDevice) || !errors.Is(err, os.ErrClosed) {
			t.Errorf("run ended with %v", err)
		}
		r.state(node.StateStopped, 0)
		if got := r.client.Status().Traffic.DeviceErrors; got != 1 {
			t.Errorf("%d reads failed, want 1", got)
		}
	})
}

// A machine without a socket is tried again.
func TestNoSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		device := nodetest.NewDevice(1)
		asked := 0
		client, err := node.New(node.Config{
			Credential: credential(), Device: device,
			ListenPacket: func(ctx context.Context, kind, address string) (net.PacketConn, error) {
				asked++
				if kind != "udp4" || address != ":0" {
					t.Errorf("asked for %s %s", kind, address)
				}
				return nil, &net.OpError{Op: "listen", Net: kind, Err: os.ErrPermission}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if err := client.Run(ctx); err != nil {
			t.Error(err)
		}
		if s := client.Status(); asked < 20 || asked > 50 || s.Endings[node.NoSocket] != uint64(asked) {
			t.Errorf("asked %d times, endings %v", asked, s.Endings)
		}
	})
}
