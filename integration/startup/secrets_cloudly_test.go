package startup_test

import (
	"errors"
	"strings"
	"testing"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// R94: of whatever Cloudly answers to the relay's own calls, one call after the other,
// nothing secret is shown anywhere.
func TestR94_AnswersOfCloudly(t *testing.T) {
	t.Parallel()
	// What a relay asks on the way is not what this test is about.
	r := rig.New(t, rig.NotStarted(), rig.TolerateViolations())
	refuse := func(text, data string) func(string) simulate.Step {
		return func(marker string) simulate.Step {
			return simulate.Refuse(strings.ReplaceAll(text, "%", marker), []byte(strings.ReplaceAll(data, "%", marker)))
		}
	}
	respond := func(body string) func(string) simulate.Step {
		return func(marker string) simulate.Step {
			return simulate.Step{Unjudged: true, Response: []byte(strings.ReplaceAll(body, "%", marker))}
		}
	}
	offer := strings.ReplaceAll(offerText, "%s", "")
	reference := strings.ReplaceAll(refText, "%s", "")
	failures := 0
	for _, c := range []struct {
		where, method string
		step          func(string) simulate.Step
	}{
		{"text", exchange, refuse("%", `{"code":"%","%":["%"]}`)},
		{"identity without an identity", exchange, respond(`{"%":"%"}`)},
		{"identity that is no token", exchange, respond(`{"identity":{"jwt":"% %","name":"%"}}`)},
		{"a whole identity that nobody knows", exchange, respond(`{"identity":{"jwt":"%","expiresAt":1,"userId":"%"}}`)},
		{"no JSON", openSession, refuse("%: %", `{"reason":"%"}`)},
		{"offer", openSession, respond(`{"protocol":{"interfacesVersion":"%","minimumPeerVersion":"%"}}`)},
		{"no offer", openSession, respond(`{"%":{"%":"%"}}`)},
		{"text", register, refuse("% is not welcome", `{"code":"%","text":"%"}`)},
		{"protocol refusal that is none", register, refuse("protocol-incompatible: %", `{"code":"protocol-incompatible","reason":"%","refusing":`+offer+`,"refused":`+offer+`}`)},
		{"a name of custody with a reason", register, refuse("relay-sequence-not-advancing: %", `{"code":"%"}`)},
		{"origin", register, respond(`{"origin":"https://%.example/%","protocol":` + offer + `,"credential":` + reference + `,"acceptedRegistration":` + reference + `}`)},
		{"reference", register, respond(`{"origin":"` + elsewhere + `","protocol":` + offer + `,"credential":{"id":"% %","generation":1,"digest":"sha256:%"},"acceptedRegistration":` + reference + `}`)},
		{"foreign members", register, respond(`{"origin":"` + elsewhere + `","protocol":{"%":"%"},"credential":` + reference + `,"acceptedRegistration":` + reference + `}`)},
	} {
		marker := r.Marker(c.method + ", " + c.where)
		r.Cloudly.Script(c.method, c.step(marker))
		if failures == 0 {
			r.Start()
		} else {
			afresh(r)
		}
		failures++
		waitFailures(r, failures)
		if n := r.Cloudly.Scripted(c.method); n != 0 {
			t.Errorf("%s, %s: it was not asked for", c.method, c.where)
		}
	}
	// Acceptance, and pulls that are refused or answered with anything.
	for i, step := range []simulate.Step{
		refuse("% %", `{"code":"%"}`)(r.Marker("refused pull")),
		respond(`{"%":"%"}`)(r.Marker("pulled document that is none")),
	} {
		r.Cloudly.Script(pull, step)
		if i == 0 {
			afresh(r)
			r.WaitEvent(string(cloudly.EventPullFailed), 0)
			continue
		}
		r.WaitEvent(string(cloudly.EventConfigurationUnrecognised), 0)
	}
	r.WaitReady()
	wantNoPanic(t, r)
}

// R94: of whatever Cloudly asks of a relay and pushes to it, nothing secret is shown
// anywhere.
func TestR94_RequestsOfCloudly(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	waitConfigured(r)
	r.Node("node-a")
	call := func(where, method, body string) {
		marker := r.Marker("Cloudly's request, " + where)
		_, err := r.Cloudly.Call(r.Soon(), strings.ReplaceAll(method, "%", marker), []byte(strings.ReplaceAll(body, "%", marker)))
		var refused *typedsocket.RemoteError
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v, want a refusal", where, err)
			return
		}
		wantQuiet(t, where, marker, []byte(refused.Text+string(refused.Data)))
	}
	call("method", "%", `{"session":{"nodeId":"node-a"}}`)
	call("no session", assign, `{"%":"%"}`)
	call("node", assign, `{"session":{"nodeId":"%","%":"%"}}`)
	call("session", assign, `{"session":{"nodeId":"node-a","epoch":"%"},"token":"%"}`)
	call("a stream", assign, `{"session":{"nodeId":"node-a"},"x":{"_isVirtualStream":true,"streamId":"%"}}`)
	call("a method that never passes", "openRuntimeAssignmentExec", `{"session":{"nodeId":"node-a"},"command":["%"]}`)
	call("a table that breaks a rule", contract.MethodPushRouteTable, `{"table":{"revision":1,"routes":[{"key":"%"}]}}`)
	call("a duty of a later build", "applyClusterVpnNetwork", `{"network":{"revision":1,"nodes":[{"key":"%"}]}}`)
	call("no document", push, `{"%":"%","data":"%"}`)
	call("document of another kind", push, `["%"]`)

	// Configurations of which a part is not valid are taken, and the part is named.
	for where, document := range map[string]string{
		"relay block":    `{"configData":{"data":{"relay":{"origin":"https://%:%@relay.example/%"}}}}`,
		"foreign member": `{"configData":{"data":{"relay":{"origin":"` + r.Origin() + `","%":"%"}}}}`,
		"node ids":       `{"configData":{"data":{"relay":` + blockOf(r.Origin()) + `,"nodes":[{"id":"%.%"},{"id":"%:"},{"%":1},"%"]}}}`,
		"endpoints":      `{"configData":{"data":{"relay":` + blockOf(r.Origin()) + `,"nodes":[{"id":"node-a","data":{"corestore":{"endpoint":"http://user:%@192.0.2.1:9000"}}}]}}}`,
		"secrets beside": `{"configData":{"data":{"relay":` + blockOf(r.Origin()) + `,"sshKeys":["%"],"nodes":"%","token":"%"}},"services":[{"env":"%"}]}`,
	} {
		from := r.NextSeq()
		r.Configure([]byte(strings.ReplaceAll(document, "%", r.Marker("configuration, "+where))))
		r.WaitEvent(string(cloudly.EventConfigurationFaulty), from)
	}
	r.Configure(nil)
	if got, _ := r.Metrics().Sum("relay_forward_refused_requests_total"); got < 7 {
		t.Errorf("%v requests were refused", got)
	}
	wantNoPanic(t, r)
}
