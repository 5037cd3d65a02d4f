package node_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/tunnel"
)

// R61: a node with its key gets in; packets cross whole and in two parts.
func TestR61_NodeGetsInAndPacketsCross(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run(credential())
		r.state(node.StateUp, time.Second)
		for _, size := range []int{tunnel.MinPacket + 4, 1100, tunnel.DefaultInnerMTU} {
			r.echo(size, time.Second)
		}
		want := node.Settings{ControlAddress: control, HubAddress: nodeHubAddress, InnerMTU: tunnel.DefaultInnerMTU}
		if got := r.device.Settings(); !slices.Equal(got, []node.Settings{want}) {
			t.Errorf("device was told %v, want %v", got, want)
		}
		s := r.client.Status()
		if s.Tunnel == nil || s.Tunnel.ControlAddress != control || s.Tunnel.InnerMTU != tunnel.DefaultInnerMTU {
			t.Errorf("status says %+v", s.Tunnel)
		}
		if got := s.Traffic; got.OutPackets != 3 || got.InPackets != 3 || got.OutSplit != 1 || got.InJoined != 1 {
			t.Errorf("traffic %+v", got)
		}
		states := []node.State{node.StateDialling, node.StateHandshaking, node.StateUp}
		if got := r.seen(); !slices.Equal(got, states) {
			t.Errorf("states %v, want %v", got, states)
		}
	})
}
