package hub

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/hub/tunnel"
	"serve.zone/relay/typedsocket"
)

func addrPort(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }

func noCall(context.Context, *typedsocket.Socket, string, []byte, typedsocket.CallOptions) (*typedsocket.Answer, error) {
	return nil, errors.New("no cloudly")
}

// The status shows every member, and no key but the hub's own public one; so do the
// log and the events.
func TestNothingSecretIsShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cloudly().must(netOf(1, 3, 0, 1))
		a, b := r.dial(0), r.dial(1)
		p := packetOf(ip(0), ip(1), 100, 1)
		copy(p[30:], "marked-payload")
		a.send(p)
		settle()
		if len(b.take()) != 1 {
			t.Fatal("nothing arrived")
		}
		m := r.member(1)
		if m.Session == nil || m.Session.Lane != "datagram" || m.ToPackets != 1 || m.ToBytes != 100 || m.Session.ToSize < 1100 || m.Prefixes != 1 {
			t.Errorf("%+v %+v", m, m.Session)
		}
		if m := r.member(0); m.FromPackets != 1 || m.FromBytes != 100 || m.Session.Seconds <= 0 {
			t.Errorf("%+v", m)
		}
		if m := r.member(2); m.Session != nil || m.Sessions != 0 {
			t.Errorf("%+v", m)
		}
		shown, err := json.Marshal(r.Status())
		if err != nil {
			t.Fatal(err)
		}
		events, err := json.Marshal(r.events.Since(0))
		if err != nil {
			t.Fatal(err)
		}
		for _, where := range []string{string(shown), string(events), r.log.String()} {
			for i := range 3 {
				if strings.Contains(where, keyOf(i).Public().String()) || strings.Contains(where, keyOf(i).Secret()) {
					t.Errorf("a key of node %d is shown", i)
				}
			}
			if strings.Contains(where, keyOf(9999).Secret()) || strings.Contains(where, "marked-payload") {
				t.Error("the hub's key or a payload is shown")
			}
		}
	})
}

func TestFactsAndEphemeralKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Address, c.Key = addrPort("192.0.2.1:0"), tunnel.PrivateKey{} })
		facts := r.Facts()
		if reasons := facts.Validate(); len(reasons) > 0 || facts.QUICPort != int64(r.Addr().Port()) || facts.Address != "192.0.2.1" {
			t.Errorf("%+v: %q", facts, reasons)
		}
		if len(r.eventsOf(HubKeyEphemeral)) != 1 || len(r.eventsOf(HubBound)) != 1 || !r.status().Ephemeral {
			t.Errorf("events %q", r.eventsOf(HubKeyEphemeral, HubBound))
		}
		other := newRig(t, func(c *Config) { c.Address = addrPort("192.0.2.2:0") })
		if len(other.eventsOf(HubKeyEphemeral)) != 0 {
			t.Error("a key that was given is said to be ephemeral")
		}
	})
}

func TestChecks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Key = tunnel.PrivateKey{} })
		state := func() (s string) {
			for _, c := range r.Checks(r.wall()) {
				if c.State != duty.OK {
					s += c.Name + "=" + c.Reason + " "
				}
				if c.Advice == (c.Name == "hub-bound" || c.Name == "hub-network") {
					t.Errorf("%s: advice %v", c.Name, c.Advice)
				}
			}
			return s
		}
		if got := state(); got != "hub-key=key-ephemeral " {
			t.Errorf("empty: %q", got)
		}
		x := netOf(1, 2, 0, 1)
		x.Nodes[0].ExpiresAt = r.wall().UnixMilli() + 1000
		r.cloudly().must(x)
		time.Sleep(2 * time.Second)
		if got := state(); got != "hub-key=key-ephemeral hub-members=members-expired " {
			t.Errorf("expired: %q", got)
		}
		r.Hub.mu.Lock()
		r.state.applying = true
		r.Hub.mu.Unlock()
		if got := state(); !strings.Contains(got, "hub-network=applying") {
			t.Errorf("applying: %q", got)
		}
		r.stop()
		if got := state(); !strings.Contains(got, "hub-bound=not-bound") {
			t.Errorf("closed: %q", got)
		}
	})
}

func TestBindFailsWithoutLeavingAnything(t *testing.T) {
	net := newPacketNet()
	taken, err := net.ListenPacket(context.Background(), "udp4", hubAddress)
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(Config{Address: addrPort(hubAddress), ListenPacket: net.ListenPacket, Call: noCall})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Bind(context.Background()); err == nil || !strings.Contains(err.Error(), hubAddress) {
		t.Errorf("bind: %v", err)
	}
	if h.Addr().IsValid() || h.Close() != nil || h.Run(context.Background()) == nil {
		t.Error("a hub that is not bound runs")
	}
	taken.Close()
	for name, cfg := range map[string]Config{
		"no address": {ListenPacket: net.ListenPacket, Call: noCall},
		"ipv6":       {Address: addrPort("[::1]:1"), ListenPacket: net.ListenPacket, Call: noCall},
		"no seam":    {Address: addrPort(hubAddress), Call: noCall},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: made", name)
		}
	}
}

// A socket that fails of its own accord ends Run with an error.
func TestASocketThatFailsEndsRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.net.sockets[r.Addr()].Close()
		if err := <-r.ran; err == nil || !errors.Is(err, net.ErrClosed) {
			t.Errorf("run: %v", err)
		}
		r.ran <- nil
	})
}

// On a real socket a packet of the inner mtu crosses, and the stack searches for the
// size of the path.
func TestOverTheLoopbackInterface(t *testing.T) {
	r := newLoopbackRig(t)
	r.cloudly().must(netOf(1, 2, 0, 1))
	a, b := r.dial(0), r.dial(1)
	deadline := time.After(20 * time.Second)
	for r.member(1).Session.ToSize < tunnel.DefaultInnerMTU {
		a.send(packetOf(ip(0), ip(1), 1400, 1))
		select {
		case <-b.got:
		case <-deadline:
			t.Fatalf("the path to b stays at %d bytes", r.member(1).Session.ToSize)
		case <-time.After(50 * time.Millisecond):
		}
	}
	r.DropCustody("relay-node-foreign")
	if code := b.closed(); code != tunnel.CloseNotAdmitted {
		t.Errorf("closed with %v", code)
	}
}
