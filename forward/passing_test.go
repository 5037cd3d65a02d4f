package forward

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"serve.zone/relay/contract"
)

// R28: many nodes share one socket to Cloudly, and each gets its own answer.
func TestR28_ManyNodesOverOneSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		nodes := map[string]*wire{}
		sessions := map[string]string{}
		for i := range 100 {
			id := fmt.Sprintf("node-%d", i)
			nodes[id], sessions[id] = r.bound(cloud, id)
		}
		for id, n := range nodes {
			n.send("reportRuntimeAssignmentObservation", body(sessions[id], `"of":"`+id+`"`))
		}
		for range nodes {
			f := cloud.recv()
			id := strings.TrimSuffix(strings.Split(string(f.Request), `"of":"`)[1], `"}`)
			cloud.answer(f, `"response":{"for":"`+id+`"}`)
		}
		for id, n := range nodes {
			if f := n.recv(); string(f.Response) != `{"for":"`+id+`"}` {
				t.Errorf("%s got %s", id, f.text)
			}
		}
		if n := len(r.Bindings()); n != 100 {
			t.Errorf("%d bindings", n)
		}
	})
}

// R29: bodies pass unchanged in both directions, and no other member of the envelope
// crosses.
func TestR29_BytesPassUnchangedAndNothingElseCrosses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const more = `"z":1.50 ,"a":[ 1e3,-0,"\u0041\/", {"deep":"\ud800","deep":2} ],"":null`
		const response = "[\t{\"b\":2,\"a\":1.0}\n , \"\\ud83d\\ude00\" ]"
		const extra = `"authInfo":{"jwt":"secret-of-a-peer"},"localData":{"l":1},"novel":[1]`
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		request := body(session, more)
		check := func(from, to *wire, method string) {
			t.Helper()
			from.write(`{"correlation":{"phase":"request","id":"c\u0031"},` + extra + `,"request":` + request +
				`,"requestInstanceId":"i\u0031","method":"` + strings.Replace(method, "t", `\u0074`, 1) + `"}`)
			f := to.recv()
			id, instance := f.Correlation.ID, f.RequestInstanceID
			if want := `{"method":"` + method + `","request":` + request + `,"response":null,"requestInstanceId":"` + instance +
				`","correlation":{"id":"` + id + `","phase":"request"}}`; f.text != want || len(id) != 28 || len(instance) != 28 {
				t.Fatalf("forwarded\n%s\nwant\n%s", f.text, want)
			}
			to.write(fmt.Sprintf(`{%s,"response":%s,"request":%s,"correlation":{"id":%q,"phase":"response","more":1},"requestInstanceId":%q,"method":%q}`,
				extra, response, request, id, instance, method))
			if got, want := from.recv().text, `{"method":"`+method+`","request":null,"response":`+response+
				`,"requestInstanceId":"i\u0031","correlation":{"id":"c\u0031","phase":"response"}}`; got != want {
				t.Fatalf("answered\n%s\nwant\n%s", got, want)
			}
		}
		check(node, cloud, "reportRuntimeAssignmentLogs")
		check(cloud, node, "applyRuntimeAssignment")
	})
}

// R29: request and answer of a registration pass byte for byte.
func TestR29_ARegistrationPassesUnchanged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const request = "{ \"resolvedAuthorities\":[ ],\"node\\u0049d\":\"-a\\u0062c\" ,\"bearer\":\"\\ud83d\\ude00\", \"protocol\":{\"x\":1e2}}"
		r := newRig(t)
		cloud, node := r.cloudly(), r.dialNode()
		node.send(register, request)
		f := cloud.recv()
		if string(f.Request) != request {
			t.Fatalf("forwarded %s", f.Request)
		}
		const response = "{\"protocol\":{ \"novel\":\"\\ud800\"} ,\"session\": {\"nodeId\":\"-abc\",\"controller\":{\"kind\":\"cloudly\"},\"clusterId\":\"c\",\"runtimeNamespace\":\"n\"}\n}"
		cloud.answer(f, `"response":`+response)
		if f := node.recv(); string(f.Response) != response || f.Error != nil {
			t.Fatalf("answered %s", f.text)
		}
		if _, ok := r.Binding("-abc"); !ok {
			t.Fatal("not bound")
		}
	})
}

// named returns the catalogue's forwarded methods of one hop, without the
// registration.
func named(hop contract.Hop) (names []string) {
	for _, m := range contract.Methods() {
		if m.Class == contract.Forwarded && m.Takes(hop) && m.Name != register {
			names = append(names, m.Name)
		}
	}
	return names
}

// R36, R37: each method that the contract names, and each configured one, passes in its
// direction with request and answer byte for byte.
func TestR36_R37_EachNamedMethodPassesInItsDirection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			c.NodeToCloudly, c.CloudlyToNode = []string{"reportFleetBundle"}, []string{"pushSignedProjection", "pushSigningAuthority"}
		})
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		ups, downs := named(contract.NodeToRelay), named(contract.RelayToNode)
		if len(ups) != 11 || len(downs) != 4 {
			t.Fatalf("%d and %d methods; the contract names 12 with the registration, and 4", len(ups), len(downs))
		}
		pass := func(from, to *wire, method string) {
			t.Helper()
			request := body(session, `"m": "`+method+`"`)
			id := from.send(method, request)
			f := to.recv()
			if f.Method != method || string(f.Request) != request {
				t.Fatalf("%s: forwarded %s", method, f.text)
			}
			to.answer(f, `"response":{"ok" :"`+method+`"}`)
			if f := from.recv(); string(f.Response) != `{"ok" :"`+method+`"}` || f.Correlation.ID != id || f.Error != nil {
				t.Fatalf("%s: answered %s", method, f.text)
			}
		}
		for _, method := range append(ups, "reportFleetBundle") {
			pass(node, cloud, method)
		}
		for _, method := range append(downs, "pushSignedProjection", "pushSigningAuthority") {
			pass(cloud, node, method)
		}
	})
}

// R38, R39: of the whole catalogue, and of names outside of it, what does not pass in a
// direction is refused by its name and not delivered.
func TestR38_R39_WhatDoesNotPassIsRefusedAndNotDelivered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.NodeToCloudly, c.CloudlyToNode = []string{"upExtra"}, []string{"downExtra"} })
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		names := []string{"nope", "upExtra", "downExtra", "registerpalletruntimesession", "__proto__"}
		for _, m := range contract.Methods() {
			names = append(names, m.Name)
		}
		for _, name := range names {
			m, known := contract.LookupMethod(name)
			forwarded := known && m.Class == contract.Forwarded
			if !(forwarded && m.Takes(contract.NodeToRelay)) && name != "upExtra" {
				want := contract.RelayMethodNotForwarded
				switch {
				case name == contract.MethodHoldDNSLeaseRenewals:
					want = contract.EscrowCloudlyOnly
				case known && m.Class == contract.Own && m.Takes(contract.CloudlyToRelay):
					want = contract.RelayCloudlyOnly
				}
				node.send(name, body(session, `"x":1`))
				refused(t, node.recv(), want)
			}
			if !(forwarded && m.Takes(contract.RelayToNode)) && name != "downExtra" {
				cloud.send(name, body(session, `"x":1`))
				refused(t, cloud.recv(), contract.RelayMethodNotForwarded)
			}
		}
		cloud.none()
		node.none()
	})
}

// R44: a body that holds an earlier session passes under the current one: sessions
// inside a body are nobody's business.
func TestR44_HistoricalBodiesPass(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		request := body(session, `"observation":{"session":`+sessionOf("node-a", 0)+`,"nodeId":"node-z","historical":[{"session":{"nodeId":"node-q"}}]}`)
		node.send("reportRuntimeAssignmentObservation", request)
		if f := cloud.recv(); string(f.Request) != request {
			t.Fatalf("forwarded %s", f.text)
		}
	})
}

// TestErrorsAndRetriesGoBackUntouched: the relay does not act on a retry.
func TestErrorsAndRetriesGoBackUntouched(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		for members, want := range map[string]string{
			`"response":null,"error":{"text":"relay-node-unknown: x","data":{"code":"relay-node-unknown", "n":1.0}}`: `"error":{"text":"relay-node-unknown: x","data":{"code":"relay-node-unknown", "n":1.0}}`,
			`"response":null,"retry":{"waitForMs":5, "reason":"r"}`:                                                  `"retry":{"waitForMs":5, "reason":"r"}`,
			`"response":null,"error":"secret"`:                                                                       `"error":{"text":"Internal server error","data":{}}`,
		} {
			node.send("reportRuntimeAssignmentLogs", body(session, `"batch":1`))
			cloud.answer(cloud.recv(), members)
			if f := node.recv(); !strings.HasSuffix(f.text, `"phase":"response"},`+want+`}`) {
				t.Errorf("%s: answered %s", members, f.text)
			}
		}
		cloud.none()
		if told := r.told(); len(told) != 1 {
			t.Errorf("told %q: a name other than the stale credential's means nothing here", told)
		}
	})
}

// TestRequestsOfOneNodeKeepTheirOrder while others' are between them.
func TestRequestsOfOneNodeKeepTheirOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		a, sessionA := r.bound(cloud, "node-a")
		b, sessionB := r.bound(cloud, "node-b")
		cloud.gate.shut()
		pad := strings.Repeat("x", 20<<10)
		for i := range 40 {
			size := (i * 7919) % len(pad)
			a.send("reportRuntimeAssignmentLogs", body(sessionA, fmt.Sprintf(`"n":"a%02d","pad":%q`, i, pad[:size])))
			b.send("reportRuntimeAssignmentLogs", body(sessionB, fmt.Sprintf(`"n":"b%02d"`, i)))
		}
		synctest.Wait()
		cloud.gate.open()
		next := map[string]int{}
		for range 80 {
			f := cloud.recv()
			n := strings.Split(string(f.Request), `"n":"`)[1][:3]
			if want := fmt.Sprintf("%s%02d", n[:1], next[n[:1]]); n != want {
				t.Fatalf("%s came where %s was due", n, want)
			}
			next[n[:1]]++
		}
	})
}

// TestStreamMarkersDoNotPass, in requests and answers, in either direction, at
// any depth.
func TestStreamMarkersDoNotPass(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		const marker = `"x":[{"y":{"_isVirtualStream":true,"streamId":"s"}}]`
		node.send("reportRuntimeAssignmentLogs", body(session, marker))
		refused(t, node.recv(), contract.RelayMethodNotForwarded)
		cloud.send("applyRuntimeAssignment", body(session, marker))
		refused(t, cloud.recv(), contract.RelayMethodNotForwarded)
		cloud.none()
		node.none()

		node.send("reportRuntimeAssignmentLogs", body(session, `"x":1`))
		cloud.answer(cloud.recv(), `"response":{`+marker+`}`)
		unnamed(t, node.recv())
		cloud.send("applyRuntimeAssignment", body(session, `"x":1`))
		node.answer(node.recv(), `"response":{`+marker+`}`)
		unnamed(t, cloud.recv())
		node.send(register, `{"nodeId":"node-a",`+marker+`}`)
		refused(t, node.recv(), contract.RelayMethodNotForwarded)
	})
}
