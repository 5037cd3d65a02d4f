package forward

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// R01: nodes that register are named by the node's vocabulary, not the canonical one;
// another name is refused.
func TestR01_NodeIDs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		for _, id := range []string{"-abc", "_abc", strings.Repeat("a", 128)} {
			r.bound(cloud, id)
		}
		node := r.dialNode()
		for _, request := range []string{
			`{"nodeId":"a.b"}`, `{"nodeId":"a:b"}`, `{"nodeId":""}`, `{"nodeId":"` + strings.Repeat("a", 129) + `"}`,
			`{"nodeId":7}`, `{}`, `[]`, `{"x":{"nodeId":"node-a"}}`, `{"nodeId":"node-a "}`, `{"nodeid":"node-a"}`, `{"session":{"nodeId":"node-a"}}`,
		} {
			node.send(register, request)
			if reason := refused(t, node.recv(), contract.RelayNodeNotCarried); reason != "nodeId is not a node id" {
				t.Errorf("%s: %s", request, reason)
			}
		}
		cloud.none()
	})
}

// TestBindingStandsBeforeTheAnswer: the node may send, and Cloudly push, as soon
// as they have it; and a report larger than a stranger's frame passes.
func TestBindingStandsBeforeTheAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		var atHook []string
		r.cfg.OnBound = func(b Binding) {
			held, ok := r.Binding(b.NodeID)
			conn := r.conn(b.Socket)
			atHook = append(atHook, fmt.Sprintln(ok, held.Confirmed, conn.Role(), conn.Bound(), string(held.Session.Received) == string(b.Session.Received)))
		}
		cloud, node := r.cloudly(), r.dialNode()
		session := sessionOf("node-a", 1)
		node.send(register, registrationOf("node-a"))
		f := cloud.recv()
		node.gate.shut() // the answer waits; the binding does not
		cloud.answer(f, accepted(session))
		cloud.send("applyRuntimeAssignment", body(session, `"x":1`))
		synctest.Wait()
		if want := []string{"true true node node-a true\n"}; !slices.Equal(atHook, want) {
			t.Fatalf("at the hook: %q, want %q", atHook, want)
		}
		node.gate.open()
		if f := node.recv(); f.Method != register || f.Error != nil {
			t.Fatalf("first came %s", f.text)
		}
		if f := node.recv(); f.Method != "applyRuntimeAssignment" {
			t.Fatalf("then came %s", f.text)
		}
		large := body(session, `"pad":"`+strings.Repeat("x", 3<<20)+`"`)
		node.send("reportRuntimeAssignmentLogs", large)
		if f := cloud.recv(); string(f.Request) != large {
			t.Fatal("the report changed")
		}
	})
}

// TestHookThatPanics costs neither the registration nor the other hooks.
func TestHookThatPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.OnBound = func(Binding) { panic("a-secret-marker") }
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		node.send(report, body(session, `"x":1`))
		cloud.recv()
		node.ws.Close(1000, "")
		synctest.Wait()
		if told := r.told(); !slices.Equal(told, []string{"unbound node-a"}) {
			t.Errorf("hooks %q", told)
		}
		if log := r.log.String(); !strings.Contains(log, "panic-recovered") || strings.Contains(log, "a-secret-marker") {
			t.Errorf("log %s", log)
		}
	})
}

// R93: a frame above the node's bound costs that one socket.
func TestR93_FramesAboveTheNodesBound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		other, _ := r.bound(cloud, "node-b")
		go node.ws.Write(t.Context(), 1, []byte(`{"method":"reportRuntimeAssignmentLogs","request":`+body(session, `"pad":"`+strings.Repeat("x", 4<<20)+`"`)+`}`))
		if code := node.closed(); code != typedsocket.CloseTooBig {
			t.Fatalf("closed with %d", code)
		}
		cloud.none()
		if other.sock.Err() != nil || cloud.sock.Err() != nil {
			t.Fatal("it cost another socket")
		}
	})
}

// TestRefusedRegistrationChangesNothing: whatever Cloudly says, it reaches the
// node untouched.
func TestRefusedRegistrationChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		stranger := r.dialNode()
		node, session := r.bound(cloud, "node-a")
		r.told()
		for _, w := range []*wire{stranger, node} {
			for _, members := range []string{
				`"response":null,"error":{"text":"credential-refused","data":{"a":1}}`,
				`"response":{"session":` + sessionOf("node-a", 9) + `},"error":{"text":"no"}`,
				`"response":{"session":` + sessionOf("node-a", 9) + `},"retry":{"waitForMs":5,"reason":"r"}`,
			} {
				w.send(register, registrationOf("node-a"))
				cloud.answer(cloud.recv(), members)
				if f := w.recv(); f.Error == nil && f.Retry == nil || strings.Contains(f.text, "relay-") {
					t.Fatalf("%s: answered %s", members, f.text)
				}
			}
		}
		b, _ := r.Binding("node-a")
		if string(b.Session.Received) != session || b.Socket != node.sock || len(r.told()) != 0 {
			t.Fatal("a refusal changed what is held")
		}
		if conn := r.conn(stranger.sock); conn.Role() != RoleUnbound {
			t.Fatal("a refusal gave the socket a role")
		}
		// The stranger may still become any node.
		r.register(cloud, stranger, "node-b", 1)
	})
}

// TestAnswerWithoutAnAcceptableSession closes the socket and holds nothing.
func TestAnswerWithoutAnAcceptableSession(t *testing.T) {
	whole := sessionOf("node-a", 2)
	for name, response := range map[string]string{
		"no session":         `{"protocol":{}}`,
		"session null":       `{"session":null}`,
		"session text":       `{"session":"node-a"}`,
		"response null":      `null`,
		"other node":         `{"session":` + sessionOf("node-b", 2) + `}`,
		"no node":            `{"session":` + strings.Replace(whole, `"nodeId"`, `"nodeid"`, 1) + `}`,
		"onebox":             `{"session":` + strings.Replace(whole, `"kind" : "cloudly"`, `"kind":"onebox"`, 1) + `}`,
		"no controller":      `{"session":` + strings.Replace(whole, `"controller"`, `"c"`, 1) + `}`,
		"session too large":  `{"session":` + strings.Replace(whole, `"sessionEpoch"`, `"pad":"`+strings.Repeat("x", maximumSession)+`","sessionEpoch"`, 1) + `}`,
		"a stream beside it": `{"session":` + whole + `,"x":{"_isVirtualStream":true}}`,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				cloud := r.cloudly()
				// A socket that was bound before loses that as well, a new one has
				// nothing; a binding on another socket stays.
				older, _ := r.bound(cloud, "node-a")
				fresh := r.dialNode()
				r.told()
				streams := name == "a stream beside it"
				for i, w := range []*wire{fresh, older} {
					w.send(register, registrationOf("node-a"))
					cloud.answer(cloud.recv(), `"response":`+response)
					unnamed(t, w.recv())
					if streams {
						continue
					}
					if code := w.closed(); code != typedsocket.CloseInternal {
						t.Errorf("closed with %d", code)
					}
					if _, ok := r.Binding("node-a"); ok != (i == 0) {
						t.Errorf("after socket %d: bound %v", i, ok)
					}
				}
				if want := []string{"unbound node-a"}; !streams && !slices.Equal(r.told(), want) {
					t.Errorf("hooks were told otherwise than %q", want)
				}
				if n := len(r.eventsOf(NodeAnswerRefused)); !streams && n != 2 {
					t.Errorf("%d events", n)
				}
			})
		})
	}
}

// TestSocketThatTookAnotherRoleMeanwhile is not bound.
func TestSocketThatTookAnotherRoleMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, node := r.cloudly(), r.dialNode()
		node.send(register, registrationOf("node-a"))
		f := cloud.recv()
		r.conn(node.sock).become("ingress")
		cloud.answer(f, accepted(sessionOf("node-a", 1)))
		refused(t, node.recv(), contract.RelayNodeSessionNotCurrent)
		if len(r.Bindings()) != 0 || node.sock.Err() != nil || len(r.told()) != 0 {
			t.Fatal("bound, told or closed")
		}
		if n := len(r.eventsOf(NodeRegistrationVoid)); n != 1 {
			t.Errorf("%d events", n)
		}
		ingress := r.dialNode()
		r.conn(ingress.sock).become("ingress")
		ingress.send(register, registrationOf("node-a"))
		refused(t, ingress.recv(), contract.RelayMethodNotForwarded)
		cloud.none()
	})
}

// R32: a rotation and a replay on the live socket hold the session that each was
// answered with, and leave other nodes alone.
func TestR32_RotationAndReplayOnTheLiveSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, first := r.bound(cloud, "node-a")
		other, otherSession := r.bound(cloud, "node-b")
		second := r.register(cloud, node, "node-a", 2)
		if again := r.register(cloud, node, "node-a", 2); again != second {
			t.Fatal("the replay's answer differs")
		}
		b, _ := r.Binding("node-a")
		if string(b.Session.Received) != second || b.Socket != node.sock {
			t.Fatal("the binding is not the last accepted one")
		}
		node.send("reportRuntimeAssignmentLogs", body(first, `"x":1`))
		refused(t, node.recv(), contract.RelayNodeSessionNotCurrent)
		cloud.send("applyRuntimeAssignment", body(first, `"x":1`))
		refused(t, cloud.recv(), contract.RelayNodeSessionNotCurrent)
		node.send("reportRuntimeAssignmentLogs", body(second, `"x":1`))
		cloud.answer(cloud.recv(), `"response":{}`)
		other.send("reportRuntimeAssignmentLogs", body(otherSession, `"x":1`))
		cloud.recv()
		if node.sock.Err() != nil || other.sock.Err() != nil {
			t.Fatal("a socket was closed")
		}
		want := []string{"node-bound node=node-a outcome=first", "node-bound node=node-b outcome=first",
			"node-bound node=node-a outcome=rotation"}
		if got := r.eventsOf(NodeBound); !slices.Equal(got, want) {
			t.Errorf("events %q", got)
		}
		told := r.told()
		if len(told) != 4 || told[3] != "bound node-a "+second {
			t.Errorf("hooks %q", told)
		}
	})
}

// R33: a second node on one socket is refused, whether the first is bound or on its way
// to be.
func TestR33_SecondNodeOnOneSocketIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		node.send(register, registrationOf("node-b"))
		refused(t, node.recv(), contract.RelayNodeSessionNotCurrent)
		cloud.none()
		node.send("reportRuntimeAssignmentLogs", body(session, `"x":1`))
		cloud.recv()

		fresh := r.dialNode()
		fresh.send(register, registrationOf("node-c"))
		f := cloud.recv()
		fresh.send(register, registrationOf("node-d"))
		refused(t, fresh.recv(), contract.RelayNodeSessionNotCurrent)
		cloud.none()
		cloud.answer(f, `"response":null,"error":{"text":"no"}`)
		fresh.recv()
		r.register(cloud, fresh, "node-d", 1) // the claim ended with its refusal
		if _, ok := r.Binding("node-c"); ok {
			t.Fatal("node-c is bound")
		}
	})
}

// R34: the newer socket of a node supersedes the older one: what was queued for the
// older one does not leave, and pushes go to the newer one, also under the very same
// session.
func TestR34_NewerSocketSupersedes(t *testing.T) {
	for _, epoch := range []int{1, 2} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			cloud := r.cloudly()
			older, session := r.bound(cloud, "node-a")
			newer := r.dialNode()
			older.gate.shut()
			for range 3 {
				cloud.send("applyRuntimeAssignment", body(session, `"pad":"`+strings.Repeat("x", 100<<10)+`"`))
			}
			synctest.Wait()
			r.told()
			current := r.register(cloud, newer, "node-a", epoch)
			for range 3 {
				refused(t, cloud.recv(), contract.RelayNodeSessionNotCurrent)
			}
			older.gate.open()
			cloud.send("applyRuntimeAssignment", body(current, `"x":1`))
			newer.answer(newer.recv(), `"response":{"from":"newer"}`)
			if f := cloud.recv(); string(f.Response) != `{"from":"newer"}` {
				t.Fatalf("answered %s", f.text)
			}
			older.closed()
			older.none()
			if told := r.told(); !slices.Equal(told, []string{"bound node-a " + current}) {
				t.Errorf("hooks %q", told)
			}
			if s := r.Status().(Status); len(s.Nodes) != 1 || s.Nodes[0].Moves != 1 {
				t.Errorf("status %+v", s.Nodes)
			}
		})
	}
}

// R34: an older socket that rests is told by its close code why it ends.
func TestR34_IdleOlderSocketIsToldWhy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		older, _ := r.bound(cloud, "node-a")
		r.bound(cloud, "node-a")
		if code := older.closed(); code != typedsocket.CloseSuperseded {
			t.Fatalf("closed with %d", code)
		}
		if _, ok := r.Binding("node-a"); !ok {
			t.Fatal("the end of the older socket took the binding with it")
		}
	})
}

// TestConcurrentRegistrationsOfOneNode are forwarded as they arrive, and the last
// acceptance wins, whatever came first.
func TestConcurrentRegistrationsOfOneNode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		one, two := r.dialNode(), r.dialNode()
		one.send(register, `{"nodeId":"node-a","n":1}`)
		synctest.Wait()
		two.send(register, `{"nodeId":"node-a","n":2}`)
		synctest.Wait()
		one.send(register, `{"nodeId":"node-a","n":3}`)
		var f []frame
		for i := range 3 {
			f = append(f, cloud.recv())
			if want := fmt.Sprintf(`{"nodeId":"node-a","n":%d}`, i+1); string(f[i].Request) != want {
				t.Fatalf("%s came, want %s", f[i].Request, want)
			}
		}
		cloud.answer(f[1], accepted(sessionOf("node-a", 2)))
		two.recv()
		cloud.answer(f[0], accepted(sessionOf("node-a", 1)))
		one.recv()
		if code := two.closed(); code != typedsocket.CloseSuperseded {
			t.Fatalf("closed with %d", code)
		}
		cloud.answer(f[2], accepted(sessionOf("node-a", 3)))
		one.recv()
		b, _ := r.Binding("node-a")
		if b.Socket != one.sock || string(b.Session.Received) != sessionOf("node-a", 3) {
			t.Fatalf("bound to the wrong socket or session")
		}
	})
}

// TestAcceptanceForASocketThatIsGone changes nothing: the newer socket stays.
func TestAcceptanceForASocketThatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		older, _ := r.bound(cloud, "node-a")
		older.send(register, registrationOf("node-a"))
		late := cloud.recv()
		newer, session := r.bound(cloud, "node-a")
		older.closed()
		synctest.Wait()
		cloud.answer(late, accepted(sessionOf("node-a", 9)))
		synctest.Wait()
		b, ok := r.Binding("node-a")
		if !ok || b.Socket != newer.sock || string(b.Session.Received) != session || newer.sock.Err() != nil {
			t.Fatal("a dead socket's acceptance changed what is held")
		}

		stranger := r.dialNode()
		stranger.send(register, registrationOf("node-b"))
		late = cloud.recv()
		stranger.hangUp()
		<-stranger.sock.Done()
		cloud.answer(late, accepted(sessionOf("node-b", 1)))
		synctest.Wait()
		if _, ok := r.Binding("node-b"); ok {
			t.Fatal("bound to a dead socket")
		}
		if s := cloud.sock.Stats(); s.Unmatched != 2 || s.Pending != 0 {
			t.Errorf("%+v", s)
		}
		if s := r.Status().(Status); s.InFlight != (InFlight{}) {
			t.Errorf("%+v is still in flight", s.InFlight)
		}
	})
}

// B017: a node whose socket is half dead comes back and wins at once.
func TestB017_GhostDoesNotKeepItsNodeAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		ghost, _ := r.bound(cloud, "node-a")
		ghost.gate.shut() // unplugged
		time.Sleep(5 * time.Second)
		start := time.Now()
		node, session := r.bound(cloud, "node-a")
		node.send("reportRuntimeAssignmentLogs", body(session, `"x":1`))
		cloud.answer(cloud.recv(), `"response":{}`)
		if node.recv(); time.Since(start) != 0 {
			t.Fatalf("it took %s", time.Since(start))
		}
		ghost.gate.open()
	})
}

// TestEndOfASocketEndsItsBinding, and nothing is sent to Cloudly for it.
func TestEndOfASocketEndsItsBinding(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		r.told()
		node.ws.Close(1000, "")
		synctest.Wait()
		if _, ok := r.Binding("node-a"); ok {
			t.Fatal("still bound")
		}
		if told := r.told(); !slices.Equal(told, []string{"unbound node-a"}) {
			t.Errorf("hooks %q", told)
		}
		if got, want := r.eventsOf(NodeUnbound), []string{"node-unbound node=node-a reason=socket-ended closeCode=1000"}; !slices.Equal(got, want) {
			t.Errorf("events %q", got)
		}
		cloud.send("applyRuntimeAssignment", body(session, `"x":1`))
		refused(t, cloud.recv(), contract.RelayNodeNotCarried)
		cloud.none()
		time.Sleep(5 * time.Second) // the closing handshake
		if s := r.Status().(Status); s.Sockets != 0 {
			t.Errorf("%d sockets are still known", s.Sockets)
		}
	})
}
