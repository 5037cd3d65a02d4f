package startup_test

import (
	"testing"
	"time"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/forward"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

// R25: any other refusal ends nothing. A repeated registration that is refused leaves
// the session and every node as it is.
func TestR25_AnotherRefusal(t *testing.T) {
	t.Parallel()
	t.Run("unknown name", func(t *testing.T) {
		t.Parallel()
		h := hold(t)
		h.Cloudly.Script(register, simulate.Refuse("relay-not-verified: it could not be verified", []byte(`{"code":"relay-not-verified"}`)))
		h.again()
		// It is tried again with the number that was not used.
		waitSequences(t, h.Rig, 0, 1, 1)
		h.wantKept()
		h.WaitCheck(cloudly.Name, cloudly.CheckRefusal, "ok")
	})
	t.Run("protocol refusal", func(t *testing.T) {
		t.Parallel()
		h := hold(t)
		h.Cloudly.Script(register, simulate.RefuseProtocol(contract.PeerBelowMinimum))
		h.again()
		h.WaitCheck(cloudly.Name, cloudly.CheckRefusal, "failing", string(contract.PeerBelowMinimum))
		h.WaitCheck(cloudly.Name, cloudly.CheckSession, "ok")
		h.wantHeldBack()
		h.wantKept()
	})
}

// R25: the same refusals of a first registration, after a loss, leave what is held too:
// nodes keep their sockets, and are taken up again once the relay is.
func TestR25_AnotherRefusalAfterALoss(t *testing.T) {
	t.Parallel()
	h := hold(t)
	h.Cloudly.Script(register, simulate.Refuse("relay-not-verified: it could not be verified", nil))
	h.Upstream.Cut()
	waitSequences(t, h.Rig, 0, 1)
	h.WaitCheck(cloudly.Name, cloudly.CheckSession, "failing", "registration-refused")
	nodes := rig.SectionOf[forward.Status](h.Rig, forward.Name).Nodes
	if socket, ok := h.node.Registered(); len(nodes) != 2 || !ok || socket != h.socket {
		t.Errorf("held are %+v, node-a stands %t", nodes, ok)
	}
	waitSequences(t, h.Rig, 0, 1, 1)
	h.WaitReady()
	// They have to register again; on the socket that stands will do (design §4, O9).
	h.puppet.Request(contract.MethodRegisterPalletRuntimeSession, registration(h.Enroll("node-b"), "node-b"))
	if answer := h.puppet.next(); answer.Error != nil {
		t.Errorf("node-b was refused: %s", answer.Error.Text)
	}
	if err := h.node.Register(h.Soon()); err != nil {
		t.Errorf("node-a was refused: %v", err)
	}
	h.wantKept()
}

// R27: a configuration without the relay block, or with null for it, ends custody as
// the refusal does; one that carries it brings the relay back, all on one socket. Parts
// that are not valid change nothing held.
func TestR27_PushedConfiguration(t *testing.T) {
	t.Parallel()
	for name, relay := range map[string]string{"absent": "", "null": "null"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hold(t)
			h.Configure(documentOf(`{"origin":"https://relay.example/"}`))
			h.WaitCheck(cloudly.Name, cloudly.CheckConfiguration, "failing", "relay-block-invalid")
			h.wantKept()
			h.Configure(documentOf(blockOf(h.Origin())))
			h.WaitCheck(cloudly.Name, cloudly.CheckConfiguration, "ok")

			h.asked = time.Now()
			h.Configure(documentOf(relay))
			h.wantEnded(contract.RelayClusterNotEnabled)
			h.wantHeldBack()
			h.wantPushesRefused()
			waitSequences(t, h.Rig, 0)
			h.Configure(nil)
			h.wantBack(0, 1)
			if n := h.Upstream.Accepted(); n != 1 {
				t.Errorf("%d connections, want one", n)
			}
		})
	}
}
