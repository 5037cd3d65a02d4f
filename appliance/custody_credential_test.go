package appliance

import (
	"errors"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

const staleName = contract.RelayCredentialGenerationStale

const toANode = "an answer on its way to a node"

// staleCauses are the answers on which the relay can hear that its credential's
// generation is over. Cloudly fences every call of the socket by then.
var staleCauses = map[string]func(r *rig, a *wire){
	"registration": func(r *rig, _ *wire) { r.again() },
	"a call of a duty": func(r *rig, _ *wire) {
		r.cloudlyCall(contract.MethodGetVPNNetwork)
	},
	toANode: func(r *rig, a *wire) {
		// The answer is the node's, but the end of custody may come before it.
		if err := a.report(); nameOf(err) != staleName && !errors.Is(err, typedsocket.ErrClosed) {
			r.t.Errorf("the node was answered %v", err)
		}
	},
}

// cloudlyCall calls Cloudly as duties do.
func (r *rig) cloudlyCall(method string) error {
	r.t.Helper()
	sock := r.rec.socket()
	answer, err := r.relay.cloudly.Call(r.soon(), sock, method, []byte(`{}`), typedsocket.CallOptions{})
	if err == nil {
		answer.Release()
	}
	return err
}

// R24: with an unchanged file no attempt is made before 300 000 ms, and the one
// then is refused again; new content is presented as soon as it is there.
func TestR24_StaleCredential(t *testing.T) {
	for where, cause := range staleCauses {
		t.Run(where, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, a, b := holding(t, change{})
				old := r.cloudly.Authorization()
				e := beginEnd(r, a, b, func() { r.cloudly.RotateCredential(); cause(r, a); r.cloudly.SetConfigurationBody(nil) })
				e.answered = where == toANode
				e.wantEnded(staleName)
				if sockets := r.cloudly.Sockets(); len(sockets) != 0 {
					t.Errorf("sockets stand: %v", sockets)
				}
				e.wantQuiet()
				r.relay.Reload()
				after(hold - 20*time.Second - time.Millisecond)
				r.wantDials(1)
				after(time.Millisecond)
				r.wantDials(2)
				r.wantHeard("dropped " + string(staleName))
				r.write("credential", []byte(r.cloudly.Authorization()))
				after(3 * time.Second)
				r.wantDials(3)
				presented := r.upstream(exchangeCall)
				if len(presented) != 3 {
					t.Fatalf("%d bearers were presented", len(presented))
				}
				for i, bearer := range []string{old, old, r.cloudly.Authorization()} {
					if !strings.Contains(string(presented[i].Body), bearer) {
						t.Errorf("attempt %d presented another bearer", i+1)
					}
				}
				if last := r.cloudly.Registrations(); last[len(last)-1].Credential.Generation != 2 || last[len(last)-1].Sequence != 1 {
					t.Errorf("accepted %+v", last[len(last)-1])
				}
				r.wantCarriesAgain(a, b)
				r.wantSecret(old, r.cloudly.Authorization())
			})
		})
	}
}

// R24: when the file holds other bytes already, the next attempt is made at once.
func TestR24_ANewCredentialThatIsThereIsPresentedAtOnce(t *testing.T) {
	for where, cause := range staleCauses {
		t.Run(where, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, a, b := holding(t, change{})
				r.write("credential", []byte(r.cloudly.RotateCredential()))
				after(3 * time.Second)
				if n := len(r.says("cloudly-credential-changed", "")); n != 1 {
					t.Errorf("the changed file was an event %d times", n)
				}
				r.wantStillHeld() // a file is no refusal
				r.rec.take()
				cause(r, a)
				r.cloudly.SetConfigurationBody(nil)
				after(0)
				a.wantEnds(where == toANode)
				b.wantEnds(false)
				r.wantDials(2)
				if n := len(r.sequences()); n != 2 {
					t.Errorf("%d registrations were accepted", n)
				}
				if held := r.rec.holds(); len(held) != 0 {
					t.Errorf("still held: %v", held)
				}
			})
		})
	}
}

// R24: a stale credential that is heard on the pull of the configuration, which the
// session makes itself, ends custody like any other.
func TestR24_HeardOnThePullOfTheConfiguration(t *testing.T) {
	for how, carry := range carriages {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, change{idle: true})
				r.cloudly.Script(configPull, simulate.Refuse("not now", nil), carry(staleName))
				r.start()
				after(0)
				r.wantAgainst()
				r.wantHeard("registered first")
				after(time.Second)
				r.wantAgainst("cloudly-session: custody-ended", "cloudly-refusal: "+string(staleName), "origin: origin-unknown")
				r.wantHeard("dropped "+string(staleName), "lost")
				after(hold - time.Second)
				r.wantDials(1)
				after(time.Second)
				r.wantDials(2)
				r.wantAgainst() // this credential was none the worse
			})
		})
	}
}

// R24, O10: on an answer that goes to a node nothing counts but this one name as
// error.data.code; the answer is the node's in any case.
func TestR24_OnlyTheCodeOfAForwardedAnswerCounts(t *testing.T) {
	code := func(name contract.RefusalName) []byte { return []byte(`{"code":"` + string(name) + `"}`) }
	steps := map[string]simulate.Step{
		"as text":               simulate.Refuse(string(staleName), nil),
		"leading the text":      simulate.Refuse(string(staleName)+": rotated", []byte(`{"code":"other"}`)),
		"as reason":             simulate.Refuse("no", []byte(`{"reason":"`+string(staleName)+`"}`)),
		"deeper":                simulate.Refuse("no", []byte(`{"cause":{"code":"`+string(staleName)+`"}}`)),
		"in an accepted answer": simulate.Respond([]byte(`{"error":{"data":{"code":"` + string(staleName) + `"}}}`)),
	}
	for _, name := range contract.UndispatchedRefusals().Names() {
		if name != staleName {
			steps[string(name)] = simulate.Refuse(string(name)+": heard by a node", code(name))
		}
	}
	for where, step := range steps {
		t.Run(where, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, a, b := holding(t, change{})
				r.cloudly.Script(protection, step)
				err := a.report()
				after(time.Minute)
				a.wantOpen()
				b.wantOpen()
				r.wantAgainst()
				r.wantStillHeld()
				if refused := step.Text != ""; refused != (err != nil) {
					t.Errorf("the node was answered %v", err)
				}
				r.wantDials(1)
			})
		})
	}
}

// R24: a refusal that a socket brought which has ended meanwhile means nothing: a newer
// one has been registered since.
func TestR24_ANameFromAnEarlierSocketMeansNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, a, _ := holding(t, change{})
		earlier := r.rec.socket()
		r.cloudly.CutSockets()
		after(time.Second)
		r.relay.cloudly.HeardForwarded(earlier, []byte(`{"code":"`+string(staleName)+`"}`))
		after(0)
		r.wantStillHeld()
		a.wantOpen()
	})
}
