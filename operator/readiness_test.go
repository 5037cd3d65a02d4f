package operator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket/carriertest"
)

func ok(name string) duty.Check { return duty.Check{Name: name, State: duty.OK} }

var (
	unknownNode = duty.Check{Name: "session", State: duty.Failing, Reason: "relay-node-unknown", Hint: "Enrol the node first."}
	noCert      = duty.Check{Name: "certificate", State: duty.Pending, Reason: "certificate-pending", Hint: "Wait for the certificate."}
	smallBuffer = duty.Check{Name: "udp-buffers", Advice: true, State: duty.Failing, Reason: "buffer-small", Hint: "Raise net.core.rmem_max."}
)

// R95: what makes the relay not ready is named, one cause a line, and nothing else
// makes it so.
func TestR95_ReadinessByCause(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	mistake := "which is a mistake in the relay; report it with the line panic-recovered of the log.\n"
	tests := []struct {
		name   string
		duties []duty.Duty
		do     func(*rig)
		want   string // "ok\n" is 200
	}{
		{"nothing to show", nil, nil, "not ready\n"},
		{"advice alone is nothing to show", []duty.Duty{says("hub", smallBuffer)}, nil, "not ready\n"},
		{"all is well", []duty.Duty{says("cloudly", ok("session")), says("hub", ok("network"))}, nil, "ok\n"},
		{"a duty without checks", []duty.Duty{says("cloudly", ok("session")), says("forward")}, nil, "ok\n"},
		{"advice never counts", []duty.Duty{says("cloudly", ok("session")), says("hub", smallBuffer)}, nil, "ok\n"},
		{"failing", []duty.Duty{says("cloudly", unknownNode)}, nil, "not ready\ncloudly session: relay-node-unknown: Enrol the node first.\n"},
		{"pending", []duty.Duty{says("cloudly", ok("session")), says("tls", noCert)}, nil,
			"not ready\ntls certificate: certificate-pending: Wait for the certificate.\n"},
		{"several, in the order of the duties", []duty.Duty{says("tls", noCert), says("hub", smallBuffer, ok("network")), says("cloudly", unknownNode)}, nil,
			"not ready\ntls certificate: certificate-pending: Wait for the certificate.\ncloudly session: relay-node-unknown: Enrol the node first.\n"},
		{"no reason given", []duty.Duty{says("hub", duty.Check{Name: "network"})}, nil, "not ready\nhub network: unstated\n"},
		{"texts that are no names", []duty.Duty{says("hub", duty.Check{Name: "a secret!", Reason: "another secret!"})}, nil,
			"not ready\nhub [withheld]: [withheld]\n"},
		{"draining", []duty.Duty{says("cloudly", ok("session"))}, func(r *rig) { r.SetDraining() },
			"not ready\noperator staying: draining: The relay is leaving; nothing is to be done unless it should stay.\n"},
		{"a panic", []duty.Duty{&stub{name: "hub", checks: func() []duty.Check { panic("a secret!") }}, says("cloudly", ok("session"))}, nil,
			"not ready\nhub panicked: checks: The duty panicked when it was asked, " + mistake},
		{"no answer", []duty.Duty{says("cloudly", ok("session")), &stub{name: "hub", checks: func() []duty.Check { <-block; return nil }}}, nil,
			"not ready\nhub unresponsive: checks: The duty does not answer, which is a mistake in the relay; keep the goroutine profile and restart the relay.\n"},
		{"a panic of a section is advice", []duty.Duty{says("cloudly", ok("session")), &stub{name: "hub", status: func() any { panic("x") }}},
			func(r *rig) { r.get("/status") }, "ok\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			carriertest.Bubble(t, func(t *testing.T) {
				block = make(chan struct{}) // of this bubble
				defer close(block)
				r := newRig(t, duties(test.duties...))
				if test.do != nil {
					test.do(r)
				}
				want, became := 503, notReady
				if test.want == "ok\n" {
					want, became = 200, served
				}
				if got := r.get("/readyz"); got.status != want || got.body != test.want {
					t.Errorf("%d %s\nwant %d %s", got.status, got.body, want, test.want)
				}
				if r.count(routeReady, became) != 1 {
					t.Error("not counted")
				}
				if got := r.get("/livez"); got.status != 200 || got.body != "ok\n" {
					t.Errorf("the process lives, but: %d %s", got.status, got.body)
				}
			})
		})
	}
}

func TestReadinessFollowsTheDuties(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		check := unknownNode
		r := newRig(t, duties(&stub{name: "cloudly", checks: func() []duty.Check { return []duty.Check{check} }}))
		for range 2 {
			check = unknownNode
			if got := r.get("/readyz"); got.status != 503 {
				t.Errorf("red: %d", got.status)
			}
			check = ok("session")
			if got := r.get("/readyz"); got.status != 200 {
				t.Errorf("green: %d", got.status)
			}
		}
	})
}

func TestReadyVerbose(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		since := time.Now()
		session := unknownNode
		session.Since = since
		buffer := smallBuffer
		buffer.Facts = []field.Field{field.Bytes(212992), field.Limit(4194304)}
		r := newRig(t, duties(says("cloudly", session), says("hub", ok("network"), buffer)))
		time.Sleep(61 * time.Second)
		want := "not ready\n" +
			"failing cloudly session: relay-node-unknown: Enrol the node first. [required, for 1m1s since 2000-01-01T00:00:00Z]\n" +
			"ok hub network [required, for 1m1s since 2000-01-01T00:00:00Z]\n" +
			"failing hub udp-buffers: buffer-small: Raise net.core.rmem_max. [advice, for 1m1s since 2000-01-01T00:00:00Z, bytes=212992 limit=4194304]\n" +
			"ok operator staying [advice, for 1m1s since 2000-01-01T00:00:00Z]\n" +
			"ok operator bound [advice, for 1m1s since 2000-01-01T00:00:00Z, address=127.0.0.1:9465]\n" +
			"ok operator connections [advice, for 1m1s since 2000-01-01T00:00:00Z, count=1 limit=64]\n"
		for _, target := range []string{"/readyz?verbose", "/readyz?verbose=1", "/readyz?verbose=true&format=text"} {
			if diff := cmp.Diff(want, r.get(target, "Accept: text/plain").body); diff != "" {
				t.Errorf("%s: %s", target, diff)
			}
		}

		wantJSON := `{"ready":false,"findings":[` +
			`{"duty":"cloudly","check":"session","advice":false,"state":"failing","reason":"relay-node-unknown","hint":"Enrol the node first.","since":"2000-01-01T00:00:00Z","ageSeconds":61}`
		if diff := cmp.Diff(wantJSON+"]}\n", r.get("/readyz?format=json").body); diff != "" {
			t.Error(diff)
		}
		wantJSON += `,{"duty":"hub","check":"network","advice":false,"state":"ok","since":"2000-01-01T00:00:00Z","ageSeconds":61}` +
			`,{"duty":"hub","check":"udp-buffers","advice":true,"state":"failing","reason":"buffer-small","hint":"Raise net.core.rmem_max.","facts":{"bytes":212992,"limit":4194304},"since":"2000-01-01T00:00:00Z","ageSeconds":61}` +
			`,{"duty":"operator","check":"staying","advice":true,"state":"ok","since":"2000-01-01T00:00:00Z","ageSeconds":61}` +
			`,{"duty":"operator","check":"bound","advice":true,"state":"ok","facts":{"address":"127.0.0.1:9465"},"since":"2000-01-01T00:00:00Z","ageSeconds":61}` +
			`,{"duty":"operator","check":"connections","advice":true,"state":"ok","facts":{"count":1,"limit":64},"since":"2000-01-01T00:00:00Z","ageSeconds":61}`
		got := r.get("/readyz?verbose", "Accept: application/json")
		if diff := cmp.Diff(wantJSON+"]}\n", got.body); diff != "" || got.status != 503 {
			t.Error(got.status, diff)
		}
	})
}

func TestReadyWithoutFindingsIsJSONToo(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t, duties(says("cloudly", ok("session"))))
		if got := r.get("/readyz?format=json"); got.status != 200 || got.body != `{"ready":true,"findings":[]}`+"\n" {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}

func TestAcceptsJSON(t *testing.T) {
	for _, test := range []struct {
		accept string
		want   bool
	}{
		{"", false}, {"*/*", false}, {"text/html,application/xhtml+xml,*/*;q=0.8", false}, {"application/*", false}, {"text/json", false},
		{"application/json", true}, {"Application/JSON", true}, {"text/plain, application/json;q=0.5", true},
		{"application/json;q=0", false}, {"application/json;q=0.0", false}, {"application/json;q=x", false}, {"application/jsonp", false}, {"application/json; charset=utf-8", true}, {";;;", false},
	} {
		if got := acceptsJSON([]string{"image/png", test.accept}); got != test.want {
			t.Errorf("%q: %v", test.accept, got)
		}
	}
}

// A fault is shown with its age while it lasts, and forgotten after.
func TestFaultsAreShownWithTheirAge(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		fails := true
		r := newRig(t, duties(says("cloudly", ok("session")), &stub{name: "hub", status: func() any {
			if fails {
				panic("x")
			}
			return StubStatus{}
		}}))
		r.get("/status")
		time.Sleep(10 * time.Second)
		r.get("/status")
		want := "failing hub panicked: status: The duty panicked when it was asked, which is a mistake in the relay; report it with the line panic-recovered of the log. " +
			"[advice, for 10s since 2000-01-01T00:00:00Z]"
		if got := line(r.get("/readyz?verbose").body, 2); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		fails = false
		r.get("/status")
		if got := line(r.get("/readyz?verbose").body, 2); got != "ok operator staying [advice, for 10s since 2000-01-01T00:00:00Z]" {
			t.Errorf("after it: %s", got)
		}
	})
}
