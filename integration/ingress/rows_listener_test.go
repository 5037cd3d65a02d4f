package ingress_test

import (
	"strings"
	"syscall"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// R71: every refusal of a registration but that of the protocol is a whole
// IClusterIngressRegistrationRefusal, also one that the listener gives: for the size of the
// body, for haste, and while the relay stops.
func TestR71_TheListenersRefusalsAreWholeOnes(t *testing.T) {
	t.Parallel()
	t.Run("size", func(t *testing.T) {
		c := start(t)
		h := c.ingress("node-a")
		_, err := h.ask(registering, strings.Replace(c.registration("node-a"), `{`, `{"capabilities":"`+strings.Repeat("x", ingressAsks)+`",`, 1))
		c.wantOwn("a body of more than 64 KiB", err, contract.IngressRegistrationInvalid, "")
	})
	t.Run("haste", func(t *testing.T) {
		c := start(t)
		c.Cloudly.ScriptAlways(registering, simulate.Ignore())
		h := c.byHand()
		for range 2 {
			h.Request(registering, c.registration("node-a"))
		}
		_, err := h.ask(registering, c.registration("node-a"))
		c.wantOwn("a third before the first was answered", err, contract.IngressNotReady, "")
	})
	t.Run("stop", func(t *testing.T) {
		c := start(t)
		c.Cloudly.Script(registering, simulate.Ignore())
		h := c.byHand()
		h.Request(registering, c.registration("node-a"))
		if err := c.Cloudly.WaitReceived(c.Soon(), registering, 1); err != nil {
			t.Fatal(err)
		}
		c.Signal(syscall.SIGTERM)
		c.WaitCheck("listener", "bound", "failing")
		_, err := h.ask(registering, c.registration("node-a"))
		c.wantOwn("while the relay stops", err, contract.IngressNotReady, "")
		c.Wait()
	})
}
