package appliance

import (
	"sync"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// R21, R24, contract §6.2: no push of the old custody leaves after a refusal that ends
// it was read, here relay-node-foreign and a stale credential. What Cloudly sent behind
// its refusal was read after it.
func TestR21_R24_APushBehindTheRefusalIsNotServed(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		cause  func(r *rig, a *wire)
	}{
		"registration": {relayCall, func(r *rig, _ *wire) {
			r.cloudly.Script(relayCall, simulate.RefuseNamed(contract.RelayNodeForeign, "moved"))
			r.again()
		}},
		"an answer on its way to a node": {protection, func(r *rig, a *wire) { r.cloudly.RotateCredential(); a.report() }},
	} {
		t.Run(name, func(t *testing.T) {
			served := 0
			for range 20 {
				bubble(t, func(t *testing.T) {
					r, a, b := holding(t, change{})
					var pushing sync.WaitGroup
					for range 4 {
						pushing.Go(func() {
							for range 15 {
								r.sentTo(b, 1)
								r.cloudly.CallSocket(r.soon(), 1, recorded[0], []byte(`{}`))
							}
						})
					}
					c.cause(r, a)
					pushing.Wait()
					after(0)
					refused := false
					for _, m := range r.cloudly.Frames().Messages() {
						refused = refused || m.Sent && m.Method == c.method && m.Refused
						if answer, ok := r.cloudly.Frames().Answer(m); refused && m.Sent && m.Request && (m.Method == assignment || m.Method == recorded[0]) && ok && !answer.Refused {
							served++
						}
					}
				})
			}
			if served > 0 {
				t.Errorf("%d pushes were served that came behind the refusal", served)
			}
		})
	}
}

// Every duty that holds something is stopped before any of them drops it, whatever
// ends custody: a drop may have to wait for a socket.
func TestDutiesAreSuspendedBeforeAnyDrops(t *testing.T) {
	for name, cause := range map[string]func(r *rig){
		"a refusal": func(r *rig) {
			r.cloudly.Script(relayCall, simulate.RefuseNamed(contract.RelayNodeForeign, "moved"))
			r.again()
		},
		"a configuration without relay": func(r *rig) {
			r.cloudly.DisableRelay()
			r.cloudly.PushConfiguration(r.soon())
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var r *rig
				suspended, bindings := false, -1
				r, _, _ = holding(t, change{parts: func(a *Appliance) []part {
					return []part{{
						duty: &spy{name: "holder", dropped: func(string) {
							if !suspended {
								t.Error("it was not suspended before its drop")
							}
						}},
						suspend: func(*typedsocket.Socket) {
							if !suspended {
								suspended, bindings = true, len(a.forward.Bindings())
							}
						},
					}}
				}})
				cause(r)
				after(0)
				if !suspended || bindings != 2 {
					t.Errorf("suspended %v, while %d nodes were bound", suspended, bindings)
				}
			})
		})
	}
}
