package node_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/node/nodetest"
	"serve.zone/relay/hub/tunnel"
)

// A path that takes nothing makes nobody wait: the device is read on, what finds no room is
// counted, the memory is bounded, and the node can be stopped meanwhile.
func TestFloodIntoAPathThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run(credential())
		r.state(node.StateUp, time.Second)
		r.echo(1400, time.Second)
		r.net.SetFate(func(nodetest.Flight) []time.Duration { return nil })
		began := time.Now()
		for mark := range uint32(5000) {
			r.device.ToNode <- packet(nodetest.HubAddress, 1400, mark)
		}
		synctest.Wait()
		if took := time.Since(began); took != 0 {
			t.Errorf("the device waited %v", took)
		}
		s := r.client.Status()
		if s.QueuedOut > 256<<10 || s.QueuedOut < 200<<10 {
			t.Errorf("%d bytes wait", s.QueuedOut)
		}
		dropped := s.Traffic.Dropped["out-queue-full"]
		if waits := uint64(s.QueuedOut / 1402); dropped+s.Traffic.OutPackets+waits < 5000 || dropped < 4700 {
			t.Errorf("%d dropped, %d sent, %d wait, of 5000", dropped, s.Traffic.OutPackets, waits)
		}
		// The rest is lost with the tunnel, and counted as that.
		r.state(node.StateDialling, time.Minute)
		s = r.client.Status()
		lost := s.Traffic.Dropped["out-tunnel-lost"]
		if got := s.Traffic.OutPackets + s.Traffic.Dropped["out-queue-full"] + lost; got != 5000+uint64(r.mark) || lost < 100 {
			t.Errorf("%d packets are accounted for, want %d: %+v", got, 5000+r.mark, s.Traffic)
		}
		if s.QueuedOut != 0 {
			t.Errorf("%d bytes wait for a tunnel that is gone", s.QueuedOut)
		}
	})
}

func TestStopWhileThePathTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run(credential())
		r.state(node.StateUp, time.Second)
		r.net.SetFate(func(nodetest.Flight) []time.Duration { return nil })
		for mark := range uint32(1000) {
			r.device.ToNode <- packet(nodetest.HubAddress, 1400, mark)
		}
		began := time.Now()
		r.stop()
		if err := <-r.ran; err != nil || time.Since(began) > 300*time.Millisecond {
			t.Errorf("stopped after %v: %v", time.Since(began), err)
		}
	})
}

// While there is no tunnel packets are dropped at once; they do not come late.
func TestPacketsWithoutATunnelAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.hub.Refuse(tunnel.CloseNotAdmitted)
		r.run(credential())
		for mark := range uint32(100) {
			r.device.ToNode <- packet(nodetest.HubAddress, 1100, mark)
		}
		synctest.Wait()
		if s := r.client.Status(); s.QueuedOut != 0 || s.Traffic.Dropped["out-no-tunnel"] != 100 {
			t.Errorf("%d bytes wait, dropped %v", s.QueuedOut, s.Traffic.Dropped)
		}
		r.hub.Refuse(tunnel.CloseDone)
		r.state(node.StateUp, time.Minute)
		time.Sleep(time.Second)
		if n := len(r.device.FromNode); n != 0 {
			t.Errorf("%d packets came late", n)
		}
	})
}

// What the hub breaks, or leaves unsaid, has a name, and the hub is told.
func TestHubThatBreaksARule(t *testing.T) {
	tests := []struct {
		name string
		do   func(s *nodetest.Session)
		want node.Reason
		code tunnel.CloseCode
	}{
		{"a frame of the node's", func(s *nodetest.Session) { s.Stream.Write([]byte{byte(tunnel.FrameConfirm), 0, 0}) },
			node.HubBrokeRule, tunnel.CloseProtocol},
		{"a rekey without the direct lane", func(s *nodetest.Session) { tunnel.WriteMessage(s.Stream, tunnel.RekeyAsk{}) },
			node.HubBrokeRule, tunnel.CloseProtocol},
		{"the end of the stream", func(s *nodetest.Session) { s.Stream.Close() },
			node.HubHungUp, tunnel.CloseInternal},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.run(credential())
				r.state(node.StateUp, time.Second)
				session := r.session()
				test.do(session)
				if s, _ := r.firstEnd(time.Second); s.Last.Reason != test.want {
					t.Errorf("ended with %+v, want %s", s.Last, test.want)
				}
				<-session.Conn.Context().Done()
				_, err := session.Conn.AcceptStream(t.Context())
				if code, ok := tunnel.PeerClose(err); !ok || code != test.code {
					t.Errorf("the hub was told %v", err)
				}
			})
		})
	}
}

// Each end shows what the other one's datagrams hold.
func TestPathSizesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run(credential())
		session := r.session()
		if m := <-session.Messages; m != (tunnel.Path{Lane: tunnel.LaneDatagram, Size: 1195}) {
			t.Errorf("the node said %+v", m)
		}
		if err := tunnel.WriteMessage(session.Stream, tunnel.Path{Lane: tunnel.LaneDatagram, Size: 1401}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if s := r.client.Status().Tunnel; s.DatagramOut != 1195 || s.DatagramIn != 1401 {
			t.Errorf("status says %+v", s)
		}
	})
}

// A part whose other one never comes is forgotten and counted.
func TestPartsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run(credential())
		session := r.session()
		var splitter tunnel.Splitter
		for range 3 {
			first, _, err := splitter.Split(packet(workload, 1400, 1), 1100, &[2][]byte{})
			if err != nil {
				t.Fatal(err)
			}
			session.Conn.SendDatagram(first)
		}
		time.Sleep(3 * time.Second)
		if got := r.client.Status().Traffic.PartsExpired; got != 3 {
			t.Errorf("%d parts expired while the tunnel is up, want 3", got)
		}
		session.CloseWith(tunnel.CloseDone, 0)
		r.firstEnd(time.Second)
		if got := r.client.Status().Traffic.PartsExpired; got != 3 {
			t.Errorf("%d parts expired behind it, want 3", got)
		}
	})
}

// A changed control address reaches the device; an unchanged one is not told again.
func TestDeviceHearsOfChangesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run(credential())
		r.session().CloseWith(tunnel.CloseDone, 0)
		session := r.session()
		other := netip.MustParsePrefix("10.200.0.9/24")
		r.hub.Admit(nodeKey.Public(), nodetest.Member{Control: other, Workload: workload})
		session.CloseWith(tunnel.CloseChanged, 0)
		r.session()
		var got []netip.Prefix
		for _, s := range r.device.Settings() {
			got = append(got, s.ControlAddress)
		}
		if want := []netip.Prefix{control, other}; !slices.Equal(got, want) {
			t.Errorf("device was told %v, want %v", got, want)
		}
	})
}

// Neither a status, a log line nor an error shows a key.
func TestNothingSecretIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var log bytes.Buffer
		r.log = duty.NewLogger(duty.LogConfig{Out: &log})
		r.run(credential())
		r.session().CloseWith(tunnel.CloseDraining, time.Second)
		r.session()
		r.stop()
		if err := <-r.ran; err != nil {
			t.Error(err)
		}
		wrong := credential()
		wrong.AuthorityID = ""
		_, refused := node.New(node.Config{Credential: wrong, Device: nodetest.NewDevice(1)})
		shown := log.String() + fmt.Sprintf("%+v %#v %+v %#v %v", r.client.Status(), r.client, credential(), credential(), refused)
		if refused == nil {
			t.Error("a credential without an authority is taken")
		}
		for _, line := range []string{"node-tunnel-up", "node-tunnel-lost", "draining", "node-stopped"} {
			if !strings.Contains(log.String(), line) {
				t.Errorf("the log does not say %q:\n%s", line, log.String())
			}
		}
		secret := nodeKey.Secret()
		raw := bytes.Repeat([]byte{0x22}, tunnel.KeySize)
		for _, text := range []string{secret, fmt.Sprintf("%x", raw), fmt.Sprint(raw), fmt.Sprintf("%#v", raw), string(raw)} {
			if strings.Contains(shown, strings.Trim(text, "[]byte{}")) {
				t.Errorf("the private key is shown as %q", text)
			}
		}
	})
}
