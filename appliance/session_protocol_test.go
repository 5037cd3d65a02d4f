package appliance

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

var incompatibilities = []contract.Incompatibility{contract.MajorMismatch, contract.PeerBelowMinimum, contract.SelfBelowPeerMinimum}

// offersNever are the offers of a Cloudly that refuses ours for each reason.
var offersNever = map[contract.Incompatibility]contract.Offer{
	contract.MajorMismatch:        {InterfacesVersion: "33.0.0", MinimumPeerVersion: "33.0.0"},
	contract.PeerBelowMinimum:     {InterfacesVersion: "32.50.0", MinimumPeerVersion: "32.45.0"},
	contract.SelfBelowPeerMinimum: {InterfacesVersion: "32.43.0", MinimumPeerVersion: "32.0.0"},
}

func refusalShown(r *rig) map[string]any {
	refusal, _ := r.section("cloudly")["lastRefusal"].(map[string]any)
	delete(refusal, "at")
	return refusal
}

// R08: each of the three reasons, as a Cloudly with such an offer gives it. The
// relay names it, and has come to no registration.
func TestR08_ProtocolRefusalOfARealOffer(t *testing.T) {
	eachName(t, incompatibilities, func(t *testing.T, reason contract.Incompatibility) {
		bubble(t, func(t *testing.T) {
			r := newRig(t, change{
				cloudly: func(c *simulate.CloudlyConfig) { c.Offer = offersNever[reason] },
				relay:   func(c *Config) { c.Settings.Protocol.Offer.MinimumPeerVersion = "32.44.0" },
			})
			synctest.Wait()
			r.wantAgainst("cloudly-session: offer-incompatible", "cloudly-refusal: "+string(reason), "origin: origin-unknown")
			want := map[string]any{"name": "protocol-incompatible", "reason": string(reason), "standing": true}
			if diff := cmp.Diff(want, refusalShown(r)); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			peer, _ := r.section("cloudly")["peerOffer"].(map[string]any)
			if peer["interfacesVersion"] != offersNever[reason].InterfacesVersion {
				t.Errorf("the peer's offer is shown as %v", peer)
			}
			if diff := cmp.Diff([]string{string(reason)}, r.says("cloudly-protocol-refused", "reason")); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if next := r.section("cloudly")["nextSequence"]; next != 0.0 {
				t.Errorf("the next sequence is %v", next)
			}
			after(hold)
			if n := len(r.upstream(sessionCall)); n != 2 {
				t.Errorf("offered %d times", n)
			}
			r.wantSequences()
			r.wantHeard() // no duty dropped anything
			r.wantNoViolations()
		})
	})
}

// R08, R09: either registration can be refused, for each reason. No number is
// used, no second offer leaves before 300 000 ms whatever happens meanwhile, and
// one does right then.
func TestR08_R09_NoOfferBeforeItsTime(t *testing.T) {
	for method, refused := range map[string]int64{sessionCall: 0, relayCall: 1} {
		for _, reason := range incompatibilities {
			t.Run(method+"/"+string(reason), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					r := newRig(t, change{idle: true})
					r.cloudly.Script(method, simulate.RefuseProtocol(reason))
					r.start()
					synctest.Wait()
					r.wantAgainst("cloudly-session: offer-incompatible", "cloudly-refusal: "+string(reason), "origin: origin-unknown")
					if n := len(r.cloudly.Sockets()); n != 0 {
						t.Errorf("%d sockets stand while the relay waits", n)
					}
					after(time.Minute)
					r.relay.Reload()
					r.write("credential", []byte(r.cloudly.RotateCredential()))
					r.clock.step(time.Hour) // a wall clock decides nothing here
					after(time.Minute)
					r.relay.Reload()
					r.clock.step(-2 * time.Hour)
					after(hold - 2*time.Minute - time.Millisecond)
					r.wantDials(1)
					after(time.Millisecond)
					r.wantDials(2)
					r.wantAgainst()
					r.wantSequences(make([]int64, refused+1)...) // 0, and 0 again where it was refused
					if shown := refusalShown(r); shown["standing"] != false {
						t.Errorf("the refusal is shown as %v", shown)
					}
					r.wantHeard("registered first", "configured stated")
					r.wantNoViolations()
				})
			})
		}
	}
}

// R09: a repeated registration that is refused by protocol costs nothing that is
// held, and is repeated after 300 000 ms; also on another socket.
func TestR09_ProtocolRefusalOfARepeatedRegistration(t *testing.T) {
	for name, cut := range map[string]bool{"the socket stands": false, "the socket is lost": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, a, _ := holding(t, change{})
				r.cloudly.Script(relayCall, simulate.RefuseProtocol(contract.PeerBelowMinimum))
				r.again()
				r.wantAgainst("cloudly-refusal: peer-below-minimum")
				after(10 * time.Second)
				if err := r.push(documentOf(blockOf("https://third.serve.zone"))); err != nil {
					t.Error(err)
				}
				if cut {
					r.cloudly.CutSockets()
				} else if err := a.report(); err != nil {
					t.Errorf("a report while the refusal stands: %v", err)
				}
				after(hold - 10*time.Second - time.Millisecond)
				r.wantSequences(0, 1)
				r.wantDials(1)
				after(time.Millisecond)
				r.wantSequences(0, 1, 1)
				r.wantStillHeld()
				a.wantOpen()
				r.wantAgainst()
				r.wantNoViolations()
			})
		})
	}
}

const newerOffer = `"protocol":{"interfacesVersion":"33.0.0","minimumPeerVersion":"33.0.0"}`

// acceptance is an answer to registerClusterRelay with this offer.
func acceptance(offer string) []byte {
	reference := `{"id":"r","generation":1,"digest":"sha256:` + strings.Repeat("0", 64) + `"}`
	return []byte(`{"origin":"` + originText + `",` + offer + `,"credential":` + reference + `,"acceptedRegistration":` + reference + `}`)
}

// R10: Cloudly accepts, but its own offer does not go with ours: the hop counts as
// refused. The number of an accepted registration is used.
func TestR10_AcceptedWithAnOfferOfAnotherMajor(t *testing.T) {
	for method, c := range map[string]struct {
		answer string
		after  []int64
	}{
		sessionCall: {"{" + newerOffer + "}", []int64{0}},
		relayCall:   {string(acceptance(newerOffer)), []int64{0, 1}},
	} {
		t.Run(method, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, change{idle: true})
				r.cloudly.Script(method, simulate.Respond([]byte(c.answer)))
				r.start()
				synctest.Wait()
				r.wantAgainst("cloudly-session: offer-incompatible", "cloudly-refusal: major-mismatch", "origin: origin-unknown")
				after(hold - time.Millisecond)
				r.wantDials(1)
				r.wantHeard()
				after(time.Millisecond)
				r.wantSequences(c.after...)
				r.wantAgainst()
				r.wantNoViolations()
			})
		})
	}
}

// R10: what is no whole protocol refusal is a plain failure: it is tried again
// within a second, and no refusal is shown as standing.
func TestR10_AnUnreadableRefusalIsNone(t *testing.T) {
	const (
		code    = `"code":"protocol-incompatible"`
		reason  = `"reason":"major-mismatch"`
		offers  = `"refusing":{"interfacesVersion":"33.0.0","minimumPeerVersion":"33.0.0"},"refused":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"}`
		foreign = `"refusing":{"interfacesVersion":"33.0","minimumPeerVersion":"33.0.0"},"refused":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"}`
	)
	for name, data := range map[string]string{
		"extra key":      `{` + code + `,` + reason + `,` + offers + `,"more":1}`,
		"no reason":      `{` + code + `,` + offers + `}`,
		"unknown reason": `{` + code + `,"reason":"novel",` + offers + `}`,
		"no offers":      `{` + code + `,` + reason + `}`,
		"no offer":       `{` + code + `,` + reason + `,` + foreign + `}`,
		"another code":   `{"code":"protocol-mismatch",` + reason + `,` + offers + `}`,
		"nothing":        `{}`,
	} {
		for method, trouble := range map[string]string{sessionCall: "session-refused", relayCall: "registration-refused"} {
			t.Run(name+"/"+method, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					r := newRig(t, change{idle: true})
					r.cloudly.Script(method, simulate.Refuse("protocol-incompatible: major-mismatch", []byte(data)))
					r.start()
					synctest.Wait()
					r.wantAgainst("cloudly-session: "+trouble, "origin: origin-unknown")
					want := map[string]any{"name": "unnamed", "standing": false}
					if diff := cmp.Diff(want, refusalShown(r)); diff != "" {
						t.Errorf("status (-want +got):\n%s", diff)
					}
					after(time.Second)
					r.wantAgainst()
					if sequences := r.sequences(); len(sequences) != 1 || sequences[0] != 0 {
						t.Errorf("accepted %v", sequences)
					}
					r.wantHeard("registered first", "configured stated")
					r.wantNoViolations()
				})
			})
		}
	}
}

// R12: on every new socket the exchange and registerCloudlyClientSession come
// first, each waits for the answer to the one before, and nothing of a node's
// passes before the registration, which the pulls follow.
func TestR12_OrderOnANewSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const late = 4 * time.Second
		r := newRig(t, change{idle: true})
		first := []string{exchangeCall, sessionCall, relayCall}
		for range 2 {
			for _, method := range first {
				r.cloudly.Script(method, simulate.Late(late))
			}
		}
		r.start()
		p := r.dialling("node-a", nil)
		for socket := 1; socket <= 2; socket++ {
			for i := range first {
				after(late - time.Millisecond)
				if diff := cmp.Diff(first[:i+1], r.methodsOn(socket)); diff != "" {
					t.Errorf("socket %d (-want +got):\n%s", socket, diff)
				}
				if _, bound := p.Registered(); bound && socket == 1 {
					t.Error("a node has a session before the relay has")
				}
				after(time.Millisecond)
			}
			after(time.Minute)
			if got := r.methodsOn(socket); len(got) < 4 || !slices.Contains(got[3:], configPull) {
				t.Errorf("socket %d: %v", socket, got)
			}
			if _, bound := p.Registered(); !bound {
				t.Error("the node has no session")
			}
			r.cloudly.CutSockets()
			// The wait before the next attempt is at most a second.
			for r.cloudly.Opened() == socket {
				after(time.Millisecond)
			}
		}
		r.wantNoViolations(p)
	})
}
