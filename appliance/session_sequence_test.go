package appliance

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// R16: the number begins with 0, grows by one with each accepted registration,
// is sent again after a refusal, and begins anew with the process.
func TestR16_RegistrationSequence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{idle: true})
		r.cloudly.Script(relayCall, simulate.Refuse("not yet", nil), simulate.Refuse("nor now", nil))
		r.start()
		after(10 * time.Second)
		r.wantSequences(0, 0, 0)
		r.again()
		r.wantSequences(0, 0, 0, 1)
		r.cloudly.Script(relayCall, simulate.Refuse("not again", nil))
		if err := r.push(documentOf(blockOf(originText))); err != nil {
			t.Fatal(err)
		}
		after(time.Second)
		r.wantSequences(0, 0, 0, 1, 2, 2)
		r.cloudly.CutSockets()
		after(10 * time.Second) // there were failures before
		r.wantSequences(0, 0, 0, 1, 2, 2, 3)
		r.restart()
		after(time.Second)
		r.wantSequences(0, 0, 0, 1, 2, 2, 3, 0)
		r.wantNoViolations()
	})
}

// R17: an answer that got lost leaves unknown whether the number was used. The
// relay gives the socket up and goes on with the next one, soon.
func TestR17_LostAnswer(t *testing.T) {
	for name, lost := range map[string]simulate.Step{
		"taken over, never answered": simulate.Swallow(),
		"the request was lost":       simulate.Ignore(),
		"the connection broke":       simulate.CutOff(),
		"answered with no JSON":      simulate.Respond([]byte(`{"origin"`)),
		"answered with another body": simulate.Respond([]byte(`{"accepted":true}`)),
		"answered too late":          simulate.Late(20 * time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, change{idle: true})
				r.cloudly.Script(relayCall, lost)
				r.start()
				after(17 * time.Second) // 15 s for the answer, then a second at most
				r.wantSequences(0, 1)
				r.wantDials(2)
				r.wantAgainst()
				p := r.wired("node-a")
				// The same on a session that stands: the nodes stay.
				r.cloudly.Script(relayCall, lost)
				r.again()
				after(17 * time.Second)
				r.wantSequences(0, 1, 2, 3)
				r.wantDials(3)
				heard := r.rec.take()
				want := []string{"registered first", "configured stated", "bound node-a", "configured stated", "lost", "registered first", "configured stated"}
				if diff := cmp.Diff(want, heard[:min(len(want), len(heard))]); diff != "" {
					t.Errorf("the duties were told (-want +got):\n%s", diff)
				}
				after(time.Minute)
				p.wantClosed(typedsocket.CloseRegisterAgain)
				r.wantNoViolations()
				if sockets := r.cloudly.Sockets(); len(sockets) != 1 || !sockets[0].Registered {
					t.Errorf("sockets %+v", sockets)
				}
			})
		})
	}
}

// R19: what an accepted registration answered is shown, and nothing secret is.
func TestR19_ReferencesAreShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{})
		r.registered(0)
		p := r.node("node-a")
		want := func() {
			t.Helper()
			all := r.cloudly.Registrations()
			last := all[len(all)-1]
			shown := r.section("cloudly")
			for member, reference := range map[string]any{
				"credential": map[string]any{
					"id": last.Credential.ID, "generation": float64(last.Credential.Generation), "digest": last.Credential.Digest},
				"acceptedRegistration": map[string]any{
					"id": last.Reference.ID, "generation": float64(last.Reference.Generation), "digest": last.Reference.Digest},
				"origin": originText, "acceptedRegistrations": float64(len(all)),
			} {
				if diff := cmp.Diff(reference, shown[member]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", member, diff)
				}
			}
		}
		want()
		first := r.cloudly.Authorization()
		r.write("credential", []byte(r.cloudly.RotateCredential()))
		after(5 * time.Second) // a file is presented on the next socket
		r.cloudly.CutSockets()
		after(time.Second)
		if g := r.cloudly.Registrations()[1].Credential.Generation; g != 2 {
			t.Errorf("generation %d", g)
		}
		want()
		secrets := []string{first, r.cloudly.Authorization()}
		for _, m := range r.upstream(sessionCall) { // the identity
			secrets = append(secrets, string(m.Body[len(`{"identity":{"jwt":"`):][:48]))
		}
		for _, m := range p.Frames().Sent("registerPalletRuntimeSession") { // the node's credential
			secrets = append(secrets, string(m.Body[len(`{"nodeId":"node-a","credential":{"generation":1,"token":"`):][:40]))
		}
		r.wantSecret(secrets...)
		if len(secrets) < 5 {
			t.Errorf("looked for %d secrets alone", len(secrets))
		}
	})
}

// R26: the relay comes back after each of five losses with the next number. Its
// waits double, and begin anew when a session has stood for a minute.
func TestR26_ReconnectAndBackoff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{})
		r.registered(0)
		lose := func(nominal time.Duration) {
			t.Helper()
			socket, _ := r.cloudly.Registered()
			began := time.Now()
			r.cloudly.CutSockets()
			r.registered(socket)
			if waited := time.Since(began); waited < nominal/2 || waited > nominal {
				t.Errorf("waited %s, want between %s and %s", waited, nominal/2, nominal)
			}
			synctest.Wait()
			r.wantAgainst()
		}
		want := []int64{0}
		for i := range 5 {
			after(59*time.Second + 999*time.Millisecond) // not a minute
			lose(time.Second << i)
			want = append(want, int64(i+1))
		}
		r.wantSequences(want...)
		if n := r.section("cloudly")["failures"]; n != 5.0 {
			t.Errorf("%v failures are shown", n)
		}
		after(time.Minute)
		lose(time.Second)
		after(time.Second)
		lose(2 * time.Second)
		if lost := r.says("cloudly-session-lost", "reason"); fmt.Sprint(lost) != "[socket-lost socket-lost socket-lost socket-lost socket-lost socket-lost socket-lost]" {
			t.Errorf("lost by %v", lost)
		}
		r.wantNoViolations()
	})
}

// R26: over hours of absence the waits end at a minute, and the relay goes on trying.
func TestR26_HoursAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, a, _ := holding(t, change{})
		r.cloudly.Outage()
		after(3 * time.Hour)
		if dials := r.net.dialled(cloudlyDialed); dials < 3*60 || dials > 2*3*60+20 {
			t.Errorf("dialled %d times in three hours", dials)
		}
		r.wantAgainst("cloudly-session: dial-failed")
		if n := len(r.events("cloudly-attempt-failed")); n > 10 {
			t.Errorf("hours of failures are %d events", n)
		}
		a.wantOpen()
		r.wantHeard("lost")
		r.wantStillHeld()
		r.cloudly.Return()
		after(time.Minute)
		r.wantAgainst()
		r.wantSequences(0, 1)
	})
}
