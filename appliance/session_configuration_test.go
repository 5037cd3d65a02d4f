package appliance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// endpoint returns what the duties know of a node's Corestore, "" for none.
func (r *rig) endpoint(node string) string {
	r.rec.mu.Lock()
	defer r.rec.mu.Unlock()
	if at := r.rec.nodes[node].Corestore; at != nil {
		return at.Endpoint
	}
	return ""
}

// R27: a push that changes an endpoint reaches the duties on the socket that
// stands, and costs nothing else.
func TestR27_APushChangesAnEndpoint(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, a, b := holding(t, change{})
		for _, endpoint := range []string{"http://10.0.4.9:3000", "http://10.0.4.10:3000", ""} {
			if err := r.cloudly.SetCorestore("node-a", endpoint); err != nil {
				t.Fatal(err)
			}
			if err := r.cloudly.PushConfiguration(r.soon()); err != nil {
				t.Fatal(err)
			}
			if got := r.endpoint("node-a"); got != endpoint { // at once: the push was answered
				t.Errorf("the duties know %q, want %q", got, endpoint)
			}
		}
		r.wantHeard("configured stated", "configured stated", "configured stated")
		r.wantStillHeld()
		a.wantOpen()
		b.wantOpen()
		r.wantSequences(0)
		r.wantDials(1)
		r.wantAgainst()
		r.wantNoViolations(nil...)
	})
}

// R27: a configuration that states no relay ends custody as
// relay-cluster-not-enabled does, whether it is pushed or pulled.
func TestR27_ConfigurationWithoutRelay(t *testing.T) {
	for name, relay := range map[string]string{"absent": "", "null": "null"} {
		t.Run("pushed/"+name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, a, b := holding(t, change{})
				e := beginEnd(r, a, b, func() {
					if err := r.push(documentOf(relay)); err != nil {
						t.Errorf("push: %v", err)
					}
				})
				e.wantEnded(contract.RelayClusterNotEnabled)
				r.wantNotServed(a, e.socket)
				e.wantQuiet()
				after(hold - 20*time.Second - time.Millisecond)
				r.wantSequences(0)
				r.cloudly.SetConfigurationBody(nil)
				after(time.Millisecond)
				r.wantSequences(0, 1)
				r.wantDials(1)
				r.wantCarriesAgain(a, b)
			})
		})
		t.Run("pulled/"+name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, a, b := holding(t, change{})
				r.cloudly.SetConfigurationBody(documentOf(relay))
				r.cloudly.CutSockets()
				after(time.Second)
				a.wantClosed(4002)
				b.wantClosed(4002)
				r.wantNothingHeld()
				r.wantAgainst("cloudly-session: custody-ended", "cloudly-refusal: relay-cluster-not-enabled", "origin: origin-unknown")
				r.wantSequences(0, 1)
				after(time.Minute)
				if err := r.push(documentOf(blockOf(originText))); err != nil {
					t.Fatal(err)
				}
				r.wantSequences(0, 1, 2)
				r.wantAgainst()
			})
		})
	}
}

// R27: a relay block that is there and not valid changes nothing that is held.
// It is named, and the rest of the document counts.
func TestR27_InvalidRelayBlock(t *testing.T) {
	for name, relay := range map[string]string{
		"http": blockOf("http://" + originHost), "a path": blockOf(originText + "/"), "upper case": blockOf("https://Relay.serve.zone"),
		"port 443": blockOf("https://" + originHost + ":443"), "another member": `{"origin":"` + originText + `","more":1}`,
		"no origin": `{}`, "a text": `"` + originText + `"`, "false": `false`, "a list": `[]`,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, a, b := holding(t, change{})
				body := strings.Replace(string(documentOf(relay)), `"nodes":[]`,
					`"nodes":[{"id":"node-a","data":{"corestore":{"endpoint":"http://10.0.4.9:3000"}}}]`, 1)
				if err := r.push([]byte(body)); err != nil {
					t.Fatal(err)
				}
				r.wantHeard("configured invalid")
				if got := r.endpoint("node-a"); got != "http://10.0.4.9:3000" {
					t.Errorf("the duties know %q", got)
				}
				r.wantStillHeld()
				a.wantOpen()
				b.wantOpen()
				r.wantSequences(0)
				r.wantAgainst()
				r.wantAdvice("cluster-configuration", "failing relay-block-invalid")
				if said := r.says("cloudly-configuration-faulty", "reason"); !slices.Equal(said, []string{"relay-block-invalid"}) {
					t.Errorf("events: %v", said)
				}
				if err := r.push(documentOf(blockOf(originText))); err != nil {
					t.Fatal(err)
				}
				r.wantAdvice("cluster-configuration", "ok")
				r.wantSequences(0) // compared with the document before it
			})
		})
	}
}

// R27: a body in which there is no cluster document changes nothing, pushed or
// pulled.
func TestR27_NoDocument(t *testing.T) {
	for _, body := range []string{
		`{}`, `{"configData":null}`, `{"configData":{"id":"cluster-a"}}`, `{"configData":{"data":null},"relay":null}`,
		`{"relay":null}`, `{"cluster":[],"nodes":[]}`,
	} {
		t.Run(body, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, a, _ := holding(t, change{})
				err := r.push([]byte(body))
				if name := nameOf(err); name != "configuration-unrecognised" {
					t.Errorf("the push was answered %v", err)
				}
				r.wantHeard()
				r.cloudly.CutSockets()
				after(time.Second) // and pulled once more
				r.wantHeard("lost", "registered first")
				if n := len(r.events("cloudly-configuration-unrecognised")); n != 2 {
					t.Errorf("%d events", n)
				}
				r.wantAdvice("cluster-configuration", "failing document-unrecognised")
				r.wantStillHeld()
				a.wantOpen()
				r.wantAgainst()
			})
		})
	}
}

// R27: an endpoint that is not valid counts as none, and is named.
func TestR27_InvalidEndpoint(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, _, _ := holding(t, change{})
		for _, endpoint := range []string{"http://u@10.0.4.9:3000", "http://10.0.4.9:3000/path", "http://10.0.4.9:3000/", "ftp://10.0.4.9"} {
			for _, stated := range []string{"http://10.0.4.9:3000", endpoint} {
				if err := r.cloudly.SetCorestore("node-a", stated); err != nil {
					t.Fatal(err)
				}
				if err := r.cloudly.PushConfiguration(r.soon()); err != nil {
					t.Fatal(err)
				}
			}
			if got := r.endpoint("node-a"); got != "" {
				t.Errorf("the duties know %q", got)
			}
			r.wantAdvice("cluster-configuration", "failing node-endpoint-invalid")
		}
		r.rec.take()
		r.wantStillHeld()
		r.wantAgainst()
	})
}

// R27, contract §5.6: the configuration is pulled after every accepted
// registration, and again until it is had.
func TestR27_PulledAfterEveryRegistration(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{})
		pulled := func(want int) {
			t.Helper()
			after(0)
			if n := len(r.upstream(configPull)); n != want {
				t.Errorf("pulled %d times, want %d", n, want)
			}
		}
		r.registered(0)
		pulled(1)
		r.again()
		r.wantSequences(0, 1)
		pulled(2)
		r.cloudly.Script(configPull, simulate.Refuse("not now", nil), simulate.Ignore())
		r.cloudly.CutSockets()
		after(time.Second)
		pulled(3)
		if err := r.cloudly.SetCorestore("node-relay", "http://10.0.4.9:3000"); err != nil {
			t.Fatal(err)
		}
		r.cloudly.SetConfigurationBody(nil)
		after(time.Second)
		pulled(4)
		after(35 * time.Second)
		pulled(6) // the origin is the first one again, which brought another registration
		if got := r.endpoint("node-relay"); got != "http://10.0.4.9:3000" {
			t.Errorf("the duties know %q", got)
		}
		r.wantSequences(0, 1, 2, 3)
		if r.rec.pulls != 4 {
			t.Errorf("the duties pulled %d times after 4 registrations", r.rec.pulls)
		}
		r.wantNoViolations()
	})
}

// R27, O11: an origin that changes between two documents brings one new registration;
// one that the registration answers otherwise brings none.
func TestR27_ChangedOrigin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, a, _ := holding(t, change{})
		for i, origin := range []string{originText, elsewhere, elsewhere, originText} {
			if err := r.push(documentOf(blockOf(origin))); err != nil {
				t.Fatal(err)
			}
			after(time.Minute)
			want := [][]int64{{0}, {0, 1}, {0, 1}, {0, 1, 2}}[i]
			r.wantSequences(want...)
		}
		if said := r.says("cloudly-origin-changed", "origin"); fmt.Sprint(said) != fmt.Sprint([]string{elsewhere, originText}) {
			t.Errorf("events: %v", said)
		}
		r.wantStillHeld()
		a.wantOpen()
		r.wantDials(1)
		r.wantNoViolations()
	})
}

// O4: a pull long after the exchange of the bearer has an identity that is still
// good, by the time that has passed as well as by the wall clock.
func TestO4_ALaterPullHasAGoodIdentity(t *testing.T) {
	for name, later := range map[string]func(*rig){
		"time passed":            func(*rig) { after(2 * time.Hour) },
		"the wall clock stepped": func(r *rig) { r.clock.step(2 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, _, _ := holding(t, change{})
				later(r)
				r.again()
				if n := len(r.upstream(exchangeCall)); n != 2 {
					t.Errorf("the bearer was exchanged %d times", n)
				}
				for _, m := range r.upstream(configPull) {
					if answer, ok := r.cloudly.Frames().Answer(m); !ok || answer.Refused {
						t.Errorf("a pull was answered %q", answer.ErrorText)
					}
				}
				r.wantHeard("configured stated", "registered again", "configured stated")
				r.wantStillHeld()
			})
		})
	}
}
