package forward

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket/carriertest"
)

// marker stands for a secret. It is long, so that memory used again for another
// message still shows some of it.
var marker = strings.Repeat("a-secret-marker.", 180)

// checkNotKept looks for the marker in everything that is retained or shown.
func checkNotKept(t *testing.T, r *rig) {
	t.Helper()
	synctest.Wait()
	word := []byte("a-secret-marker.")
	r.seen.mu.Lock()
	for _, p := range r.seen.all {
		if bytes.Contains(p, word) {
			t.Errorf("a message's memory still holds it: %.80q", p[bytes.Index(p, word)-min(40, bytes.Index(p, word)):])
		}
	}
	if len(r.seen.all) == 0 {
		t.Error("no message was seen")
	}
	r.seen.all = nil
	r.seen.mu.Unlock()
	if at := carriertest.Reachable(r.Forward, string(word), "forward"); at != "" {
		t.Errorf("it is reachable at %s", at)
	}
	status, err := json.Marshal(r.Status())
	if err != nil {
		t.Fatal(err)
	}
	events, err := json.Marshal(r.events.Since(0))
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{"log": r.log.String(), "status": string(status), "events": string(events),
		"hooks": fmt.Sprint(r.told()), "metrics": fmt.Sprint(r.Metrics().Snapshot()), "checks": fmt.Sprint(r.Checks(time.Now()))}
	for where, text := range shown {
		if strings.Contains(text, string(word)) {
			t.Errorf("it is shown by the %s", where)
		}
		if text == "" {
			t.Errorf("there is no %s", where)
		}
	}
}

// R30: the bearer of a node is not retained, whatever becomes of the registration.
func TestR30_BearerIsNotRetained(t *testing.T) {
	request := `{"nodeId":"node-a","bearer":"` + marker + `"}`
	for name, run := range map[string]func(r *rig, cloud, node *wire){
		"accepted": func(r *rig, cloud, node *wire) {
			node.send(register, request)
			cloud.answer(cloud.recv(), accepted(sessionOf("node-a", 1)))
			node.recv()
		},
		"refused by Cloudly": func(r *rig, cloud, node *wire) {
			node.send(register, request)
			cloud.answer(cloud.recv(), `"response":null,"error":{"text":"no"}`)
			node.recv()
		},
		"answered wrongly": func(r *rig, cloud, node *wire) {
			node.send(register, request)
			cloud.answer(cloud.recv(), `"response":{}`)
			node.recv()
		},
		"refused here": func(r *rig, cloud, node *wire) {
			node.send(register, strings.Replace(request, "node-a", "node.a", 1))
			node.recv()
		},
		"detached": func(r *rig, cloud, node *wire) {
			r.UpstreamLost()
			node.send(register, request)
			node.recv()
		},
		"not answered": func(r *rig, cloud, node *wire) {
			node.send(register, request)
			cloud.recv()
			node.recv()
		},
		"in flight when custody ends": func(r *rig, cloud, node *wire) {
			node.send(register, request)
			cloud.recv()
			r.DropCustody("relay-node-unknown")
			node.closed()
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				cloud, node := r.cloudly(), r.dialNode()
				_, _ = r.bound(cloud, "node-b")
				r.seen.keep = true
				run(r, cloud, node)
				checkNotKept(t, r)
			})
		})
	}
}

// R43: secret bodies are forwarded and not kept: requests and answers of contract §18,
// and both of a configured method, of which nothing is known.
func TestR43_SecretBodiesAreForwardedAndNotKept(t *testing.T) {
	for _, c := range []struct {
		method          string
		request, answer bool
	}{
		{"getRuntimeManagedVpnCredential", false, true},
		{"getRuntimeRegistryCredential", false, true},
		{"getRuntimeAssignmentSecretMaterial", true, true},
		{"beginRuntimeSecretRecipientEnrollment", true, true},
		{"completeRuntimeSecretRecipientEnrollment", true, true},
		{"exchangeFleetGrant", true, true},
		{"pushSigningKey", true, true},
	} {
		t.Run(c.method, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, func(c *Config) {
					c.NodeToCloudly, c.CloudlyToNode = []string{"exchangeFleetGrant"}, []string{"pushSigningKey"}
				})
				cloud := r.cloudly()
				node, session := r.bound(cloud, "node-a")
				from, to := node, cloud
				if c.method == "pushSigningKey" {
					from, to = cloud, node
				}
				text := func(secret bool) string {
					if secret {
						return `"privateKey" : "` + marker + `"`
					}
					return `"x":1`
				}
				r.seen.keep = true
				from.send(c.method, body(session, text(c.request)))
				f := to.recv()
				if string(f.Request) != body(session, text(c.request)) {
					t.Fatal("the request changed")
				}
				to.answer(f, `"response":{`+text(c.answer)+`}`)
				if f := from.recv(); string(f.Response) != `{`+text(c.answer)+`}` {
					t.Fatal("the answer changed")
				}
				checkNotKept(t, r)
			})
		})
	}
}

// R94: refusals of every kind show nothing of what a peer wrote, with a marker in every
// text that it can choose, also in method names.
func TestR94_NothingOfABodyIsShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		short := "a-secret-marker."
		for _, q := range []struct {
			from         *wire
			method, body string
		}{
			{node, short, body(session, `"x":1`)},
			{node, report, body(strings.Replace(session, "ns:1", short, 1), `"x":1`)},
			{node, report, `{"nodeId":"` + short + `"}`},
			{node, report, `{"session":{"nodeId":"` + short + `"}}`},
			{node, report, body(session, `"x":{"_isVirtualStream":true,"y":"`+short+`"}`)},
			{node, register, `{"nodeId":"` + short + `"}`},
			{node, register, `{"nodeId":"node-b","x":"` + short + `"}`},
			{node, "applyRuntimeAssignment", body(session, `"x":"`+short+`"`)},
			{cloud, short, body(session, `"x":1`)},
			{cloud, report, body(session, `"x":"`+short+`"`)},
			{cloud, "applyRuntimeAssignment", body(strings.Replace(session, "ns:1", short, 1), `"x":1`)},
			{cloud, "applyRuntimeAssignment", `{"session":{"nodeId":"` + short + `"}}`},
		} {
			q.from.send(q.method, q.body)
			if f := q.from.recv(); f.Error == nil || strings.Contains(f.Error.Text+string(f.Error.Data), short) {
				t.Errorf("%s %s answered %s", q.method, q.body, f.text)
			}
		}
		cloud.none()
		node.none()
		status, _ := json.Marshal(r.Status())
		events, _ := json.Marshal(r.events.Since(0))
		if all := r.log.String() + string(status) + string(events); strings.Contains(all, short) {
			t.Errorf("shown: %s", all)
		}
	})
}

// TestStatusIsOneSchema, and shows what happened.
func TestStatusIsOneSchema(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		if _, err := duty.Assemble(r.Forward); err != nil {
			t.Fatal(err)
		}
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-b")
		r.bound(cloud, "node-a")
		request := body(session, `"x":1`)
		node.send(report, request)
		cloud.answer(cloud.recv(), `"response":{"y":2}`)
		node.recv()
		node.send(report, `{}`)
		refused(t, node.recv(), contract.RelayNodeSessionNotCurrent)
		cloud.send("applyRuntimeAssignment", request)
		node.recv()
		synctest.Wait()
		got, err := json.Marshal(r.Status())
		if err != nil {
			t.Fatal(err)
		}
		answers := len(accepted(session)) - len(`"response":`)
		want := fmt.Sprintf(`{"attached":true,"draining":false,"nodes":[`+
			`{"id":"node-a","since":"2000-01-01T00:00:00Z","confirmed":true,"moves":0,"inFlight":{"nodeRequests":0,"cloudlyRequests":0,"bytes":0},`+
			`"toCloudly":{"requests":1,"bytes":%d},"fromCloudly":{"requests":0,"bytes":%d},"refused":0},`+
			`{"id":"node-b","since":"2000-01-01T00:00:00Z","confirmed":true,"moves":0,"inFlight":{"nodeRequests":0,"cloudlyRequests":1,"bytes":%d},`+
			`"toCloudly":{"requests":2,"bytes":%d},"fromCloudly":{"requests":1,"bytes":%d},`+
			`"refused":1,"lastRefusal":"relay-node-session-not-current","lastRefusedAt":"2000-01-01T00:00:00Z"}],`+
			`"sockets":2,"inFlight":{"nodeRequests":0,"cloudlyRequests":1,"bytes":%d},"inFlightLimitBytes":268435456}`,
			len(registrationOf("node-a")), answers, r.total.bytes,
			len(registrationOf("node-b"))+len(request), answers+len(`{"y":2}`)+len(request), r.total.bytes)
		if string(got) != want {
			t.Errorf("status\n%s\nwant\n%s", got, want)
		}
	})
}

// TestChecksAreAdvice and say what goes on.
func TestChecksAreAdvice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		show := func() (states [2]string) {
			for i, c := range r.Checks(time.Now()) {
				states[i] = c.State.String()
				if c.Reason != "" {
					states[i] += " " + c.Reason
				}
				if !c.Advice || c.State != duty.OK && c.Hint == "" {
					t.Errorf("%+v", c)
				}
			}
			return states
		}
		want := func(sessions, load string) {
			t.Helper()
			if got := show(); got != [2]string{sessions, load} {
				t.Errorf("checks %q", got)
			}
		}
		want("ok", "ok")
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		for range 65 {
			node.send(report, body(session, `"x":1`))
		}
		node.recv()
		want("ok", "failing relay-overloaded")
		time.Sleep(time.Minute)
		want("ok", "ok")
		r.lose(cloud)
		want("ok", "ok")
		cloud = r.cloudly()
		want("pending nodes-returning", "ok")
		since := r.Checks(time.Now())[0].Since
		time.Sleep(time.Second)
		if got := r.Checks(time.Now())[0].Since; got != since || got.IsZero() {
			t.Errorf("since %s, want %s", got, since)
		}
		r.lose(cloud)
		want("pending cloudly-away", "ok")
		if got := r.Checks(time.Now())[0].Since; got == since {
			t.Error("another reason has the same age")
		}
	})
}

// TestAgesOfChecks are those of what happened, not of when somebody asked.
func TestAgesOfChecks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		want := func(check int, reason string, since time.Time) {
			t.Helper()
			if c := r.Checks(time.Now())[check]; c.Reason != reason || !c.Since.Equal(since) {
				t.Errorf("%s: %q since %s, want %q since %s", c.Name, c.Reason, c.Since, reason, since)
			}
		}
		// happens lets something happen now, and some time pass before anybody asks.
		happens := func(do func()) time.Time {
			at := time.Now()
			do()
			if took := time.Since(at); took != 0 {
				t.Errorf("it took %s", took)
			}
			time.Sleep(recallSettle / 8) // so that nobody is recalled meanwhile
			return at
		}
		const sessions, load = 0, 1
		begin := happens(func() {})
		want(sessions, "", begin)
		want(load, "", begin)

		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		happens(func() { r.lose(cloud) }) // the binding is confirmed, by the session that stood last
		want(sessions, "", begin)
		want(sessions, "nodes-returning", happens(func() { cloud = r.cloudly() }))
		want(sessions, "cloudly-away", happens(func() { r.lose(cloud) }))
		want(sessions, "nodes-returning", happens(func() { cloud = r.cloudly() }))
		want(sessions, "cloudly-away", happens(func() { r.Suspend(cloud.sock) }))
		want(sessions, "nodes-returning", happens(func() { r.UpstreamRegistered(cloud.sock) }))
		want(sessions, "", happens(func() { r.register(cloud, node, "node-a", 1) }))
		happens(func() { r.UpstreamLost() })
		want(sessions, "nodes-returning", happens(func() { r.UpstreamRegistered(cloud.sock) }))
		want(sessions, "", happens(func() { r.DropCustody("relay-node-foreign") }))
		cloud = r.cloudly()
		node, session = r.bound(cloud, "node-a")
		happens(func() { r.UpstreamLost() })
		want(sessions, "nodes-returning", happens(func() { r.UpstreamRegistered(cloud.sock) }))
		want(sessions, "", happens(func() { node.hangUp(); <-node.sock.Done() }))

		node, session = r.bound(cloud, "node-a")
		one := func() { node.send(report, body(session, `"x":1`)) }
		for range requestsInFlight {
			one()
		}
		want(load, "", begin)
		first := happens(func() { one(); node.recv() })
		last := happens(func() { one(); node.recv() })
		want(load, "relay-overloaded", first)
		time.Sleep(overloadedFor)
		want(load, "", last.Add(overloadedFor))
		for range requestsInFlight { // no answer came in time
			node.recv()
			one()
		}
		want(load, "relay-overloaded", happens(func() { one(); node.recv() }))
	})
}

// TestMetricsCount what happened.
func TestMetricsCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		node.send(report, body(session, `"x":1`))
		f := cloud.recv()
		time.Sleep(3 * time.Second)
		cloud.answer(f, `"response":{}`)
		node.recv()
		node.send(report, body(session, `"x":1`))
		cloud.answer(cloud.recv(), `"response":null,"error":{"text":"no"}`)
		node.recv()
		node.send("nope", `{}`)
		node.recv()
		cloud.send("applyRuntimeAssignment", body(session, `"x":1`))
		node.recv()
		synctest.Wait()
		got := map[string]float64{}
		for _, family := range r.Metrics().Snapshot() {
			for _, s := range family.Samples {
				name := strings.TrimPrefix(family.Name, "relay_forward_")
				for _, l := range s.Labels {
					name += " " + l.Value
				}
				if s.Value != 0 {
					got[name] = s.Value
				}
			}
		}
		request, answer := float64(len(body(session, `"x":1`))), float64(len(accepted(session))-len(`"response":`))
		want := map[string]float64{
			"accepted_registrations_total first":                                1,
			"bound_nodes":                                                       1,
			"carried_requests_total node-to-cloudly answered":                   2,
			"carried_requests_total node-to-cloudly declined":                   1,
			"refused_requests_total node-to-cloudly relay-method-not-forwarded": 1,
			"inflight_requests cloudly-to-node":                                 1,
			"inflight_bytes":                                                    float64(r.total.bytes),
			"carried_bytes_total node-to-cloudly":                               float64(len(registrationOf("node-a"))) + 2*request,
			"carried_bytes_total cloudly-to-node":                               answer + 2 + 4 + request,
			"waited_seconds_total node-to-cloudly":                              3,
		}
		for name := range want {
			if got[name] != want[name] {
				t.Errorf("%s is %v, want %v", name, got[name], want[name])
			}
			delete(got, name)
		}
		if len(got) != 0 {
			t.Errorf("and %v", got)
		}
	})
}
