package ingress_test

import (
	"strings"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// fate is what becomes of a registration that bears a secret, and how it comes about.
type fate struct {
	what string
	run  func(c *cluster, bearer string) (heard string) // what the ingress is told
	// misplaced says that the secret stands in another place than a bearer's.
	misplaced bool
}

// on has an ingress register with a bearer on a fresh socket, and returns what it is told.
// Change may change the message.
func on(c *cluster, bearer string, change func(body string) string) string {
	c.t.Helper()
	body := registrationWith("node-b", bearer)
	if change != nil {
		body = change(body)
	}
	h := c.byHand()
	defer h.Cut()
	answer, err := h.ask(registering, body)
	return string(answer) + heardIn(err)
}

func heardIn(err error) string {
	if remote, ok := err.(*typedsocket.RemoteError); ok {
		return remote.Text + string(remote.Data)
	}
	return ""
}

// raw has a message sent as it is on a fresh socket, which it costs.
func raw(c *cluster, message string) string {
	c.t.Helper()
	h := c.byHand()
	h.Send(message)
	_, reason := h.WaitClose()
	return reason
}

// fates are all ways that a registration of an ingress may go.
func fates() []fate {
	all := []fate{
		{"accepted", func(c *cluster, bearer string) string {
			c.bearer = bearer
			if err := c.Cloudly.SetIngressBearer(bearer); err != nil {
				c.t.Fatal(err)
			}
			h := c.byHand()
			answer, err := h.ask(registering, registrationWith("node-a", bearer))
			if err != nil {
				c.t.Fatalf("it was refused with %s", heardIn(err))
			}
			again, err := h.ask(registering, registrationWith("node-a", bearer))
			return string(answer) + string(again) + heardIn(err)
		}, false},
		{"refused by cloudly for itself", func(c *cluster, bearer string) string { return on(c, bearer, nil) }, false},
		{"refused for the protocol", func(c *cluster, bearer string) string {
			return on(c, bearer, func(body string) string { return strings.ReplaceAll(body, "32.", "31.") })
		}, false},
		{"refused for its offer", func(c *cluster, bearer string) string {
			return on(c, bearer, func(body string) string { return strings.Replace(body, `"32.44.0"`, `"`+bearer+`"`, 1) })
		}, true},
		{"refused for its node", func(c *cluster, bearer string) string {
			return on(c, bearer, func(body string) string { return strings.Replace(body, `"node-b"`, `"`+bearer+`.`+bearer+`"`, 1) })
		}, true},
		{"refused for its version", func(c *cluster, bearer string) string {
			return on(c, bearer, func(body string) string { return strings.Replace(body, `"3.1.0"`, `"`+bearer+bearer+`"`, 1) })
		}, true},
		{"refused for another member", func(c *cluster, bearer string) string {
			return on(c, bearer, func(body string) string {
				// As long as a name may be that is repeated where nothing is secret.
				return strings.Replace(body, `{`, `{"x`+bearer[len(bearer)-39:]+`":{"`+bearer+`":"`+bearer+`"},`, 1)
			})
		}, true},
		{"refused for its kind", func(c *cluster, bearer string) string {
			return on(c, bearer, func(body string) string { return strings.Replace(body, `"bearer":`, `"bearer":["x"],"x":`, 1) })
		}, true},
		{"misanswered", func(c *cluster, bearer string) string {
			c.Cloudly.Script(registering, anyway(`{"accepted":"`+bearer+`"}`))
			return on(c, bearer, nil)
		}, true},
		{"of another node", func(c *cluster, bearer string) string {
			h := c.byHand()
			if _, err := h.ask(registering, c.registration("node-c")); err != nil {
				c.t.Fatalf("it was refused with %s", heardIn(err))
			}
			_, err := h.ask(registering, registrationWith("node-b", bearer))
			return heardIn(err)
		}, false},
		{"on the socket of a node", func(c *cluster, bearer string) string {
			_, err := c.node.SendBody(c.Soon(), registering, []byte(registrationWith("node-b", bearer)))
			return heardIn(err)
		}, false},
		{"in another method", func(c *cluster, bearer string) string {
			h := c.byHand()
			defer h.Cut()
			var heard string
			for _, method := range []string{asking, counting, pushing, "somethingNobodyKnows"} {
				_, err := h.ask(method, registrationWith("node-b", bearer))
				heard += heardIn(err)
			}
			return heard
		}, true},
		{"in what is no frame", func(c *cluster, bearer string) string {
			return raw(c, rig.RequestText(registering, "id", registrationWith("node-b", bearer))+"}")
		}, false},
		{"in a frame that is too large", func(c *cluster, bearer string) string {
			return raw(c, rig.RequestText(registering, "id", strings.Repeat(" ", 64<<10)+registrationWith("node-b", bearer)))
		}, false},
		{"abandoned", func(c *cluster, bearer string) string {
			before := len(c.Cloudly.Frames().Received(registering))
			c.Cloudly.Script(registering, simulate.Ignore())
			h := c.byHand()
			h.Request(registering, registrationWith("node-b", bearer))
			if err := c.Cloudly.WaitReceived(c.Soon(), registering, before+1); err != nil {
				c.t.Fatal(err)
			}
			h.Cut()
			return ""
		}, false},
	}
	for _, reason := range reasons {
		all = append(all, fate{"refused as " + string(reason), func(c *cluster, bearer string) string {
			// The text is Cloudly's own and goes to the ingress alone.
			c.Cloudly.Script(registering, simulate.Refuse("no", []byte(refusalData(reason, 1000))))
			return on(c, bearer, nil)
		}, false})
	}
	return append(all,
		fate{"without cloudly", func(c *cluster, bearer string) string {
			c.lose()
			defer c.back()
			return on(c, bearer, nil)
		}, false},
		fate{"whose session ends", func(c *cluster, bearer string) string {
			before := len(c.Cloudly.Frames().Received(registering))
			c.Cloudly.Script(registering, simulate.Ignore())
			h := c.byHand()
			id := h.Request(registering, registrationWith("node-b", bearer))
			if err := c.Cloudly.WaitReceived(c.Soon(), registering, before+1); err != nil {
				c.t.Fatal(err)
			}
			c.lose()
			defer c.back()
			_, err := h.answer(registering, id)
			return heardIn(err)
		}, false},
		fate{"whose custody ends", func(c *cluster, bearer string) string {
			before := len(c.Cloudly.Frames().Received(registering))
			c.Cloudly.Script(registering, simulate.Ignore())
			h := c.byHand()
			h.Request(registering, registrationWith("node-b", bearer))
			if err := c.Cloudly.WaitReceived(c.Soon(), registering, before+1); err != nil {
				c.t.Fatal(err)
			}
			c.Cloudly.Script(register, simulate.RefuseNamed(contract.RelayNodeForeign, "it moved"))
			c.RegisterAgain()
			_, reason := h.WaitClose()
			c.Cloudly.ClearScript(register)
			return reason
		}, false},
	)
}

// R74: a bearer is told to nobody and shown nowhere, whatever becomes of its registration.
func TestR74_TheBearerIsShownNowhere(t *testing.T) {
	c := start(t)
	c.node = c.Node("node-n")
	for _, f := range fates() {
		marker := c.Marker("bearer, " + f.what)
		if heard := f.run(c, "clusterIngressToken_"+marker); strings.Contains(heard, marker[:12]) {
			t.Errorf("a bearer that was %s is repeated: %s", f.what, heard)
		}
	}
	c.AssertNoMarkers()
	if s := c.status(); len(s.Ingresses) != 0 || s.Attached {
		t.Errorf("after the end of custody the status shows %+v", s)
	}
}
