package cloudly

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket"
)

var _ duty.Duty = (*Session)(nil)

// R94: whatever goes wrong, bearer, identity and a peer's free text stay out of
// everything that is shown.
func TestR94_NothingSecretIsShown(t *testing.T) {
	marks := []string{"5ec4e7", "5ec4e8", testJWT, "peers-own-words", "identity.number"}
	bubble(t, func(t *testing.T) {
		lost := make(chan error, 1000)
		w := newWorld(t, func(c *Config, w *world) {
			w.credential.bearer = bearerOf("5ec4e7")
			c.Log.SetLevel(-4)
			c.Hooks.OnLost = func(why error) { lost <- why }
		})
		say := func(text string) string { return text + "peers-own-words " + testJWT + " " + bearerOf("5ec4e7") }
		for _, method := range []string{exchangeMethod, clientSession, registration, getConfiguration} {
			for _, script := range []func(r *typedsocket.Request){
				func(r *typedsocket.Request) { r.Refuse(say(""), []byte(`{"code":"`+say("")+`"}`)) },
				func(r *typedsocket.Request) { r.Refuse(say("relay-node-unknown: "), nil) },
				func(r *typedsocket.Request) { r.Refuse(say("relay-credential-generation-stale: "), nil) },
				func(r *typedsocket.Request) {
					r.Refuse(say("protocol-incompatible: "), []byte(refusalData("major-mismatch")))
				},
				func(r *typedsocket.Request) { r.Answer([]byte(`{"peers-own-words":"` + bearerOf("5ec4e7") + `"}`)) },
				func(r *typedsocket.Request) {
					r.Answer([]byte(`{"identity":{"jwt":"peers-own-words ` + testJWT + `"}}`))
				},
				func(r *typedsocket.Request) {
					s := r.Socket()
					r.Drop()
					go s.Cut(4000, "peers-own-words "+testJWT)
				},
				func(r *typedsocket.Request) { r.Drop() },
			} {
				fails := 3
				w.on(method, func(_ int, r *typedsocket.Request) bool {
					if fails == 0 {
						return false
					}
					fails--
					script(r)
					return true
				})
				w.change(int64(1 + len(w.order())%60000))
				time.Sleep(40 * time.Minute)
				w.on(method, nil)
				w.credential.set(bearerOf([]string{"5ec4e7", "5ec4e8"}[len(w.order())%2]), nil)
				time.Sleep(10 * time.Minute)
				w.wantState("registered")
			}
		}
		w.push(`{"configData":{"data":{"relay":"peers-own-words"}}}`)
		w.push(`{"peers-own-words":1}`)
		w.credential.set("", errors.New("peers-own-words"))
		time.Sleep(time.Minute)
		status, err := json.Marshal(w.status())
		if err != nil {
			t.Fatal(err)
		}
		events, err := json.Marshal(w.events.Since(0))
		if err != nil {
			t.Fatal(err)
		}
		checks, err := json.Marshal(duty.Ask(time.Now(), w.session))
		if err != nil {
			t.Fatal(err)
		}
		shown := map[string]string{
			"log": w.log.String(), "status": string(status), "events": string(events), "checks": string(checks),
			"metrics": fmt.Sprintf("%+v", w.session.Metrics().Snapshot()), "session": fmt.Sprintf("%+v", w.session.Status()),
		}
		for len(lost) > 0 {
			shown["losses"] += fmt.Sprintln(<-lost)
		}
		for where, text := range shown {
			if len(text) < 20 {
				t.Errorf("%s is empty", where)
			}
			for _, mark := range marks {
				if strings.Contains(text, mark) {
					t.Errorf("%s holds %q", where, mark)
				}
			}
			if where != "losses" && strings.Contains(text, "[withheld]") {
				t.Errorf("%s holds something that had to be withheld", where)
			}
		}
	})
}

// The status is a section of the status document, the checks are fit to be shown,
// and the metrics tell what happened.
func TestWhatTheDutyShows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		before := duty.Ask(time.Now(), w.session)
		if before.Ready || len(before.Findings) != 4 {
			t.Fatalf("before the start: %+v", before)
		}
		w.wantState("registered")
		if after := duty.Ask(time.Now(), w.session); !after.Ready {
			t.Fatalf("not ready: %+v", after.Against())
		}
		sections, err := duty.Assemble(w.session)
		if err != nil || sections[0].Name != "cloudly" {
			t.Fatalf("%v %v", sections, err)
		}
		w.refuse(registration, "relay-node-foreign", "{}")
		w.change(1)
		w.settle()
		after := duty.Ask(time.Now(), w.session)
		if got := fmt.Sprintln(len(after.Against()), after.Against()[0].Reason, after.Against()[1].Reason); got != "2 custody-ended relay-node-foreign\n" {
			t.Fatalf("against: %s", got)
		}
		values := map[string]float64{}
		for _, f := range w.session.Metrics().Snapshot() {
			for _, s := range f.Samples {
				name := f.Name
				for _, l := range s.Labels {
					name += " " + l.Value
				}
				values[strings.TrimPrefix(name, "relay_cloudly_")] = s.Value
			}
		}
		for name, want := range map[string]float64{
			"attempts_started_total": 1, "registrations_accepted_total": 1, "sessions_lost_total": 1,
			"custody_ended_total relay-node-foreign": 1, "custody_ended_total relay-node-unknown": 0,
			"attempts_failed_total custody-ended": 1, "registered_sessions": 0, "next_attempt_seconds": 300,
		} {
			if got, ok := values[name]; !ok || got < want-0.01 || got > want+0.01 {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		time.Sleep(30 * time.Second)
		w.session.Kick() // is looked at and changes nothing
		time.Sleep(30 * time.Second)
		for _, f := range duty.Ask(time.Now(), w.session).Against() {
			if f.AgeSeconds < 59 || f.AgeSeconds > 61 {
				t.Errorf("check %s is %v s old", f.Check, f.AgeSeconds)
			}
		}
	})
}
