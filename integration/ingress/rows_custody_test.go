package ingress_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/ingress"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

const (
	// register is the relay's own registration.
	register = "registerClusterRelay"
	// closeWait is what is waited for the end of an ingress's socket after custody has
	// ended. The contract gives the relay one second (R20); this machine may be busy
	// with other tests.
	closeWait = 5 * time.Second
)

// wantDropped waits for the end of custody by this name, and holds it to everything that
// the row asks for of table and ingresses.
func (c *cluster) wantDropped(name contract.RefusalName, from uint64, asked time.Time, sockets ...*hand) {
	c.t.Helper()
	for _, h := range sockets {
		if code, reason := h.WaitClose(); code != int(typedsocket.CloseCustodyEnded) {
			c.t.Errorf("an ingress's socket was closed with %d %q", code, reason)
		}
	}
	if took := time.Since(asked); took > closeWait {
		c.t.Errorf("the sockets were closed after %s", took)
	}
	told := c.WaitEvent(string(ingress.IngressesDropped), from)
	if told.Text("reason") != string(name) || fmt.Sprint(told.Fields["revision"]) != "5" {
		c.t.Errorf("the event says %v", told.Fields)
	}
}

// R20 to R24: each of the five refusals takes the table and every role, and closes the
// sockets. Nobody is served then, and what is held afterwards is held anew, though its
// revision is a lower one.
func TestR20_R24_TableAndRolesGoWithCustody(t *testing.T) {
	t.Parallel()
	for _, row := range rig.CustodyEnds() {
		t.Run(string(row.Name), func(t *testing.T) {
			c := start(t)
			a, b, served := c.ingress("node-a"), c.ingress("node-b"), c.Ingress("node-c", c.bearer)
			held := c.servable(5)
			c.pushed("the table that goes", held, 5)
			a.wantTable("before", held)
			b.wantTable("before", held)
			if err := served.WaitRevision(c.Soon(), 5); err != nil {
				t.Fatal(err)
			}
			from := c.NextSeq()
			row.Give(c.Rig)
			asked := time.Now()
			if row.Fenced {
				// On the registration of an ingress, which Cloudly fences as any other call.
				// What the ingress is told races the end of its socket.
				b.Request(registering, c.registration("node-b"))
			} else {
				c.RegisterAgain()
			}
			c.wantDropped(row.Name, from, asked, a, b)

			if !row.Brief { // whose session is back within moments
				if s := c.status(); s.Attached || s.Table != nil || len(s.Ingresses) != 0 || s.InFlight != (ingress.InFlight{}) {
					t.Errorf("the status shows %+v", s)
				}
				fresh := c.byHand()
				fresh.wantRefusedHere("the table, with nothing held", asking, `{"knownRevision":5}`, notRegistered)
				_, err := fresh.ask(registering, c.registration("node-a"))
				c.wantOwn("a registration, with nothing held", err, contract.IngressNotReady, "")
				for method, body := range map[string]string{
					pushing: `{"table":` + plainTable(9) + `}`, counting: question(day1, day2, "", 1),
				} {
					if _, err := c.Cloudly.CallSocket(c.Soon(), 1, method, []byte(body)); !row.Fenced {
						c.wantRefused(method+" on the socket that stays", err, notReady, "")
					}
				}
			}
			row.Restore(c.Rig)
			c.waitAttached(true)
			before := served.Dials()
			served.Restart() // so that it does not wait as long as it was told
			if _, err := served.WaitRegistered(c.Soon(), before); err != nil {
				t.Fatal(err)
			}
			again := c.ingress("node-a")
			again.wantTable("afterwards", "null")
			c.Eventually("the ingresses that have registered again, and no others", func() error {
				if got := speakers(c.status()); !slices.Equal(got, []string{"node-a", "node-c"}) {
					return fmt.Errorf("the status shows %q", got)
				}
				return nil
			})
			c.pushed("a lower revision", plainTable(3), 3)
			again.wantHint(3)
			again.wantTable("a lower revision", plainTable(3))
			if err := served.WaitRevision(c.Soon(), 3); err != nil {
				t.Error(err)
			}
		})
	}
}

// R20: custody ends as well on the way back from an outage, and when the cluster's document
// states that there is no relay.
func TestR20_CustodyEndsWithoutARegistration(t *testing.T) {
	t.Parallel()
	t.Run("on the way back", func(t *testing.T) {
		c := start(t)
		held, h := c.holds()
		from := c.NextSeq()
		c.lose()
		h.wantTable("during the outage", held)
		c.Cloudly.ScriptAlways(register, simulate.RefuseNamed(contract.RelayNodeForeign, "it moved"))
		if err := c.Upstream.Resume(); err != nil {
			t.Fatal(err)
		}
		c.Signal(syscall.SIGHUP)
		if code, _ := h.WaitClose(); code != int(typedsocket.CloseCustodyEnded) {
			t.Errorf("closed with %d", code)
		}
		if told := c.WaitEvent(string(ingress.IngressesDropped), from); told.Text("reason") != "relay-node-foreign" {
			t.Errorf("the event says %v", told.Fields)
		}
		if s := c.status(); s.Attached || s.Table != nil || len(s.Ingresses) != 0 {
			t.Errorf("the status shows %+v", s)
		}
	})
	t.Run("by a document", func(t *testing.T) {
		c := start(t)
		_, h := c.holds()
		from := c.NextSeq()
		c.WaitCheck(cloudly.Name, cloudly.CheckConfiguration, "ok")
		c.Configure([]byte(`{"configData":{"id":"cluster-a","data":{"relay":null,"nodes":[]}},"services":[]}`))
		if code, _ := h.WaitClose(); code != int(typedsocket.CloseCustodyEnded) {
			t.Errorf("closed with %d", code)
		}
		if told := c.WaitEvent(string(ingress.IngressesDropped), from); told.Text("reason") != "relay-cluster-not-enabled" {
			t.Errorf("the event says %v", told.Fields)
		}
		if s := c.status(); s.Attached || s.Table != nil || len(s.Ingresses) != 0 {
			t.Errorf("the status shows %+v", s)
		}
	})
}

// R25: any other refusal keeps table and roles, on a session that stands and without one:
// also one of an ingress's registration that bears a name of custody in its data.
func TestR25_AnotherRefusalKeepsTableAndRoles(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]simulate.Step{
		"an unknown name":    simulate.Refuse("relay-not-verified: it could not be verified", []byte(`{"code":"relay-not-verified"}`)),
		"a name in a text":   simulate.Refuse("refused: relay-node-foreign", nil),
		"a protocol refusal": simulate.RefuseProtocol(contract.PeerBelowMinimum),
	} {
		t.Run(name+" on a session", func(t *testing.T) {
			c := start(t)
			held, h := c.holds()
			c.Cloudly.Script(register, step)
			c.RegisterAgain()
			if err := c.Cloudly.WaitReceived(c.Soon(), register, 2); err != nil {
				t.Fatal(err)
			}
			c.pushed("a lower one", plainTable(4), 5) // behind the refusal, on its socket
			h.wantTable("on a session that stands", held)
			if s := c.status(); !s.Attached || fmt.Sprint(speakers(s)) != "[node-a]" {
				t.Errorf("the status shows %+v", s)
			}
		})
		t.Run(name+" without one", func(t *testing.T) {
			c := start(t)
			held, h := c.holds()
			c.Cloudly.ScriptAlways(register, step)
			c.Upstream.Cut()
			told := cloudly.EventAttemptFailed
			if step.Protocol != "" {
				told = cloudly.EventProtocolRefused
			}
			c.WaitEvent(string(told), 0)
			h.wantTable("without a session", held)
			if s := c.status(); s.Attached || fmt.Sprint(speakers(s)) != "[node-a]" || s.Table == nil {
				t.Errorf("the status shows %+v", s)
			}
		})
	}
	t.Run("of an ingress", func(t *testing.T) {
		c := start(t)
		held, h := c.holds()
		stranger := c.byHand()
		for _, name := range []string{"relay-cluster-not-enabled", "relay-node-foreign", "relay-node-unknown", "relay-sequence-not-advancing"} {
			data := `{"code":"` + name + `"}`
			c.Cloudly.Script(registering, simulate.Refuse(name+": it is so", []byte(data)))
			_, err := stranger.ask(registering, c.registration("node-b"))
			if remote, ok := c.remote(name, err); ok && string(remote.Data) != data {
				t.Errorf("%s: refused with %q %s", name, remote.Text, remote.Data)
			}
		}
		h.wantTable("afterwards", held)
		if s := c.status(); !s.Attached {
			t.Errorf("the status shows %+v", s)
		}
	})
}
