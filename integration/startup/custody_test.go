package startup_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

// R20, R21, R22: what Cloudly has on record of the cluster or of the relay's node ends
// custody. The authenticated socket stays, nothing passes on it, and the next attempt
// is 300 s away; a push that carries the relay block brings a registration at once,
// under the number that the refused one did not use.
func TestR20_R21_R22_Records(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    contract.RefusalName
		end     func(*holding) error
		restore func(*holding) error
	}{
		{
			contract.RelayClusterNotEnabled,
			func(h *holding) error { h.Cloudly.DisableRelay(); return nil },
			func(h *holding) error { return h.Cloudly.EnableRelay(h.Origin()) },
		},
		{
			contract.RelayNodeForeign,
			func(h *holding) error { return h.Cloudly.EnrollForeignNode(rig.RelayNode) },
			func(h *holding) error { _, err := h.Cloudly.EnrollNode(rig.RelayNode); return err },
		},
		{
			contract.RelayNodeUnknown,
			func(h *holding) error { return h.Cloudly.RemoveNode(rig.RelayNode) },
			func(h *holding) error { _, err := h.Cloudly.EnrollNode(rig.RelayNode); return err },
		},
	} {
		t.Run(string(c.name), func(t *testing.T) {
			t.Parallel()
			h := hold(t)
			if err := c.end(h); err != nil {
				t.Fatal(err)
			}
			h.again()
			h.wantEnded(c.name)
			h.wantHeldBack()
			h.wantPushesRefused()
			waitSequences(t, h.Rig, 0, 1)

			if err := c.restore(h); err != nil {
				t.Fatal(err)
			}
			h.Configure(nil)
			h.wantBack(0, 1, 1)
			if n := h.Upstream.Accepted(); n != 1 {
				t.Errorf("%d connections, want the one that stayed", n)
			}
		})
	}
}

// R23: a number that does not advance ends custody and the socket. The next
// registration comes by itself, on another socket, with a higher number.
func TestR23_SequenceNotAdvancing(t *testing.T) {
	t.Parallel()
	h := hold(t)
	h.Cloudly.Script(register, simulate.RefuseNamed(contract.RelaySequenceNotAdvancing, "1 is not above 1"))
	h.again()
	h.wantCut()
	if told := h.WaitEvent(string(cloudly.EventCustodyEnded), 0); told.Text("refusal") != string(contract.RelaySequenceNotAdvancing) {
		t.Errorf("the event says %v", told.Fields)
	}
	h.wantBack(0, 1, 2)
	if last := h.session().LastRefusal; last.Name != string(contract.RelaySequenceNotAdvancing) {
		t.Errorf("the last refusal is %+v", last)
	}
	if requests := h.Cloudly.Frames().Received(register); requests[1].Socket != 1 || requests[2].Socket != 2 {
		t.Errorf("registered on sockets %d and %d", requests[1].Socket, requests[2].Socket)
	}
}

// R24: a credential whose generation is over ends custody, whichever call it is heard
// on. With an unchanged file the next attempt is 300 s away; the bearer of a new file is
// presented at once, on the next socket.
func TestR24_CredentialGenerationStale(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hear    func(*holding)
		want    []int64 // numbers of all registrations; a refused one is not used
		watched bool    // nobody says that the file has changed
	}{
		"on the registration": {(*holding).again, []int64{0, 1, 1}, true},
		"on a node's report": {func(h *holding) {
			h.asked = time.Now()
			// What node-a is told is not looked at: the answer and the end of its
			// socket race each other.
			h.node.Send(h.Soon(), report, member)
		}, []int64{0, 1}, false},
		"on the pull of the configuration": {func(h *holding) {
			h.asked = time.Now()
			// A pull follows each registration, which is let pass here.
			h.Cloudly.Script(register, simulate.Step{Unjudged: true, Response: h.accepted()})
			h.Configure(documentOf(blockOf(elsewhere)))
		}, []int64{0, 1, 2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hold(t)
			bearer := h.NewBearer()
			if err := h.Cloudly.RotateCredentialTo(bearer); err != nil {
				t.Fatal(err)
			}
			c.hear(h)
			h.wantEnded(contract.RelayCredentialGenerationStale)
			h.wantHeldBack()
			if n := h.Upstream.Accepted(); n != 1 {
				t.Errorf("%d connections with a credential that is over", n)
			}

			h.Cloudly.SetConfigurationBody(nil)
			h.InstallCredential(bearer)
			if !c.watched {
				h.Signal(syscall.SIGHUP)
			}
			h.wantBack(c.want...)
			presented := h.Cloudly.Frames().Received(exchange)
			if last := presented[len(presented)-1]; last.Socket != 2 || !strings.Contains(string(last.Body), bearer) {
				t.Errorf("on socket %d another bearer was presented", last.Socket)
			}
		})
	}
}
