package node_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/tunnel"
)

// ways is what each close code means for the next attempt: the shortest and the longest
// wait behind the first failure.
var ways = map[tunnel.CloseCode]struct {
	reason   node.Reason
	from, to time.Duration
}{
	tunnel.CloseDone:         {node.HubDone, 250 * time.Millisecond, 500 * time.Millisecond},
	tunnel.CloseNotAdmitted:  {node.HubNotAdmitted, time.Second, 2 * time.Second},
	tunnel.CloseSuperseded:   {node.HubSuperseded, 15 * time.Second, 30 * time.Second},
	tunnel.CloseDuplicateKey: {node.HubDuplicateKey, 15 * time.Second, 30 * time.Second},
	tunnel.CloseChanged:      {node.HubChanged, 0, 0},
	tunnel.CloseDraining:     {node.HubDraining, 0, 0},
	tunnel.CloseBusy:         {node.HubBusy, time.Second, 2 * time.Second},
	tunnel.CloseHandshake:    {node.HubHandshake, 15 * time.Second, 30 * time.Second},
	tunnel.CloseIncompatible: {node.HubIncompatible, 15 * time.Second, 30 * time.Second},
	tunnel.CloseProtocol:     {node.HubProtocol, 15 * time.Second, 30 * time.Second},
	tunnel.CloseTimeout:      {node.HubTimeout, 250 * time.Millisecond, 500 * time.Millisecond},
	tunnel.CloseInternal:     {node.HubInternal, 250 * time.Millisecond, 500 * time.Millisecond},
	4242:                     {node.HubInternal, 250 * time.Millisecond, 500 * time.Millisecond},
}

func codes() []tunnel.CloseCode { return append(tunnel.CloseCodes(), 4242) }

// firstEnd waits for the first ending and returns it with the wait that follows.
func (r *rig) firstEnd(limit time.Duration) (node.Status, time.Duration) {
	r.t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		synctest.Wait()
		r.mu.Lock()
		for _, s := range r.states {
			if s.State == node.StateWaiting {
				r.mu.Unlock()
				return s, s.Next.Sub(s.Since)
			}
		}
		r.mu.Unlock()
	}
	r.t.Fatalf("nothing ended in %v", limit)
	return node.Status{}, 0
}

func (r *rig) wantEnd(code tunnel.CloseCode, up bool) {
	r.t.Helper()
	want := ways[code]
	s, wait := r.firstEnd(5 * time.Second)
	if s.Last.Reason != want.reason || (s.Last.Up > 0) != up {
		r.t.Errorf("ended with %+v, want %s", s.Last, want.reason)
	}
	if wait < want.from || wait > want.to {
		r.t.Errorf("next attempt after %v, want %v to %v", wait, want.from, want.to)
	}
	if s.Endings[want.reason] != 1 {
		r.t.Errorf("endings %v", s.Endings)
	}
}

func TestCloseCodeOfAHandshake(t *testing.T) {
	for _, code := range codes() {
		if code == tunnel.CloseDone {
			continue // no hub refuses with it
		}
		t.Run(code.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.hub.Refuse(code)
				r.run(credential())
				r.wantEnd(code, false)
				r.hub.Refuse(tunnel.CloseDone)
				r.state(node.StateUp, time.Minute)
				r.echo(1100, time.Second)
			})
		})
	}
}

func TestCloseCodeOfATunnel(t *testing.T) {
	for _, said := range []bool{true, false} {
		for _, code := range codes() {
			t.Run(code.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t)
					r.run(credential())
					r.state(node.StateUp, time.Second)
					session := r.session()
					if said {
						if err := session.CloseWith(code, 0); err != nil {
							t.Fatal(err)
						}
					} else {
						session.Drop(code)
					}
					r.wantEnd(code, true)
					r.session()
					r.echo(1100, time.Second)
				})
			})
		}
	}
}

// A hub that names a time is dialled then, a second of spread apart, and never later than
// in five minutes.
func TestHubNamesTheTimeOfTheNextAttempt(t *testing.T) {
	for _, test := range []struct{ said, from, to time.Duration }{
		{3 * time.Second, 3 * time.Second, 4 * time.Second},
		{time.Hour, 5 * time.Minute, 5 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.run(credential())
			r.session().CloseWith(tunnel.CloseDraining, test.said)
			s, wait := r.firstEnd(5 * time.Second)
			if s.Last.Reason != node.HubDraining || s.Last.RetryAfter != test.said {
				t.Errorf("ended with %+v", s.Last)
			}
			if wait < test.from || wait > test.to {
				t.Errorf("next attempt after %v, want %v to %v", wait, test.from, test.to)
			}
			r.session()
		})
	}
}

// Whatever the node finds by itself has a name of its own.
func TestEndingsThatTheNodeFinds(t *testing.T) {
	tests := []struct {
		name  string
		setUp func(r *rig, c *node.Credential)
		want  node.Reason
		limit time.Duration
	}{
		{"nothing answers", func(r *rig, c *node.Credential) { r.hub.Close() }, node.Unreachable, 11 * time.Second},
		{"the stream is not answered", func(r *rig, c *node.Credential) { r.hub.Mute() }, node.NoAnswer, 11 * time.Second},
		{"another hub", func(r *rig, c *node.Credential) { c.HubKey = mustKey(0x77).Public() }, node.HubHandshake, time.Second},
		{"another authority", func(r *rig, c *node.Credential) { c.AuthorityID = "other" }, node.HubHandshake, time.Second},
		{"no member", func(r *rig, c *node.Credential) { c.Key = mustKey(0x55) }, node.HubNotAdmitted, time.Second},
		{"no version in common", func(r *rig, c *node.Credential) {
			terms := tunnel.DatagramTerms()
			terms.Versions = []uint8{9}
			r.hub.SetTerms(terms)
		}, node.HubIncompatible, time.Second},
		{"the device refuses", func(r *rig, c *node.Credential) { r.device.Refuse(errors.New("no")) }, node.DeviceRefused, 2 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				c := credential()
				test.setUp(r, &c)
				r.run(c)
				s, _ := r.firstEnd(test.limit)
				if s.Last.Reason != test.want {
					t.Errorf("ended with %+v, want %s", s.Last, test.want)
				}
			})
		})
	}
}

// A device that refused is asked again, and the hub has heard that the node left.
func TestDeviceThatRefusedIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.device.Refuse(errors.New("no"))
		r.run(credential())
		r.firstEnd(2 * time.Second)
		if m := <-r.session().Messages; m != (tunnel.Close{Code: tunnel.CloseDone}) {
			t.Errorf("the node said %+v", m)
		}
		r.device.Refuse(nil)
		r.state(node.StateUp, time.Minute)
	})
}
