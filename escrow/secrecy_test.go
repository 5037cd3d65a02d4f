package escrow

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket"
)

// R94, contract §18: nothing of a record, a session or a peer's text is shown, however
// a hold or a push ends.
func TestR94_NothingHeldIsShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const markerText = "marked-text"
		var shown strings.Builder
		look := func(r *rig) {
			synctest.Wait()
			status, err := json.Marshal(r.Status())
			if err != nil {
				t.Fatal(err)
			}
			events, err := json.Marshal(r.events.Since(0))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&shown, "%s\n%s\n%+v\n%+v\n%+v\n", status, events, r.Status(), r.Checks(time.Now()), r.Metrics().Snapshot())
		}
		r := newRig(t)
		r.attached("node-a")
		wrong := []string{`{"nodeId":"` + markerText + `"}`, `{"` + markerText + `":1}`, markerText,
			strings.Replace(string(bodyOf(grid(spec{}, begin, 2))), markerDigest[:12], "sha256:`"+markerText, 1),
			string(bodyOf(grid(spec{namespace: markerText}, begin, 2))), string(bodyOf(grid(spec{controller: `{"kind":"` + markerText + `"}`}, begin, 2)))}
		for _, body := range wrong {
			_, refused := r.hold([]byte(body))
			if refused == nil {
				t.Fatalf("accepted %s", body)
			}
			shown.WriteString(refused.Text())
		}
		r.must(grid(spec{}, begin, 23))
		r.SessionLost()
		for i, answer := range []func(context.Context, pushed) ([]byte, error){
			func(context.Context, pushed) ([]byte, error) { panic(markerText) },
			refusing, gone, silent,
			func(_ context.Context, p pushed) ([]byte, error) { return []byte(p.signed), nil },
			func(_ context.Context, p pushed) ([]byte, error) {
				return nil, fmt.Errorf("%s: %w", p.session+p.signed, errBroken)
			},
			func(_ context.Context, p pushed) ([]byte, error) {
				return nil, &typedsocket.RemoteError{Peer: "node", Text: p.signed, Data: []byte(p.session)}
			},
			func(_ context.Context, p pushed) ([]byte, error) {
				return contract.ApplyDNSLeaseRenewalAnswer{Status: markerText, Renewal: p.renewal.Reference()}.AppendJSON(nil), nil
			},
		} {
			r.answering(answer)
			time.Sleep(slotEvery)
			look(r)
			if n := len(r.take()); n == 0 {
				t.Errorf("answer %d was never given", i)
			}
			r.SessionRegistered()
			r.Bound(bindingOf("node-a", 2+i))
			r.SessionLost()
		}
		r.DropCustody("relay-node-foreign")
		look(r)
		shown.WriteString(r.log.String())
		for _, marker := range []string{markerSignature, markerAuthority, markerSession, markerDigest[7:], markerText, `"kind"`, "sessionEpoch", "sign\\u0061ture"} {
			if at := strings.Index(shown.String(), marker); at >= 0 {
				t.Errorf("%q is shown: %.200s", marker, shown.String()[max(at-100, 0):])
			}
		}
		if !strings.Contains(shown.String(), "node-a") || !strings.Contains(r.log.String(), "renewal-released") || !strings.Contains(r.log.String(), "panic-recovered") {
			t.Error("nothing is shown at all")
		}
	})
}

// The events are declared, each with its duty.
func TestEventsAreDeclared(t *testing.T) {
	if _, err := duty.NewCatalogue(EventKinds); err != nil {
		t.Fatal(err)
	}
	for _, kind := range EventKinds {
		if kind.Duty != Name {
			t.Errorf("%s is of %s", kind.Type, kind.Duty)
		}
	}
}
