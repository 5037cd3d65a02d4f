package forward

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
	"serve.zone/relay/typedsocket/envelope"
)

// TestCustodyDropIsSynchronous: when it returns nothing is held, and nothing of
// what was queued or comes later leaves.
func TestCustodyDropIsSynchronous(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		a, sessionA := r.bound(cloud, "node-a")
		b, sessionB := r.bound(cloud, "node-b")
		stranger := r.dialNode()
		stranger.send(register, registrationOf("node-c"))
		pending := cloud.recv()
		untouched := r.dialNode()
		synctest.Wait()

		a.gate.shut()
		cloud.send("applyRuntimeAssignment", body(sessionA, `"pad":"`+strings.Repeat("x", 500<<10)+`"`))
		cloud.send("applyRuntimeAssignment", body(sessionA, `"marker":"pushed-before"`))
		cloud.send("applyRuntimeAssignment", body(sessionB, `"x":1`))
		push := b.recv()
		synctest.Wait()
		r.told()
		r.DropCustody("relay-node-foreign")

		if n := len(r.Bindings()); n != 0 {
			t.Fatalf("%d bindings are held", n)
		}
		told := r.told()
		slices.Sort(told)
		if want := []string{"unbound node-a", "unbound node-b"}; !slices.Equal(told, want) {
			t.Errorf("hooks were told %q before it returned", told)
		}
		a.gate.open()
		for _, w := range []*wire{a, b, stranger} {
			if err := w.sock.Err(); err == nil || !strings.Contains(err.Error(), "4002") {
				t.Errorf("a socket ended with %v", err)
			}
		}
		for range 3 { // the pushes that were under way
			refused(t, cloud.recv(), contract.RelayNodeNotCarried)
		}
		cloud.answer(pending, accepted(sessionOf("node-c", 1)))
		b.ws.Write(t.Context(), 1, fmt.Appendf(nil, `{"method":%q,"response":{},"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`,
			push.Method, push.RequestInstanceID, push.Correlation.ID))
		cloud.send("applyRuntimeAssignment", body(sessionB, `"x":1`))
		refused(t, cloud.recv(), contract.RelayNotReady)
		if code := b.closed(); code != typedsocket.CloseCustodyEnded {
			t.Errorf("closed with %d", code)
		}
		a.closed()
		for _, w := range []*wire{a, b, cloud} {
			w.none()
		}
		if len(r.Bindings()) != 0 {
			t.Fatal("bound after the drop")
		}

		// A socket that had no part in it may register once Cloudly takes the relay
		// again, on the very socket.
		untouched.send(register, registrationOf("node-d"))
		refused(t, untouched.recv(), contract.RelayNotReady)
		r.UpstreamLost()
		r.UpstreamRegistered(cloud.sock)
		r.register(cloud, untouched, "node-d", 1)
		if s := r.Status().(Status); len(s.Nodes) != 1 || !s.Nodes[0].Confirmed || s.InFlight != (InFlight{}) {
			t.Errorf("%+v", s)
		}
		if got, want := r.eventsOf(NodesDropped), []string{"nodes-dropped count=2 reason=relay-node-foreign"}; !slices.Equal(got, want) {
			t.Errorf("events %q", got)
		}
	})
}

// TestCustodyDropReachesSocketsThatAreEnding and still send what was queued.
func TestCustodyDropReachesSocketsThatAreEnding(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, cloud, nodes, _ := recalled(t, 1)
		node := nodes[0]
		node.gate.shut()
		for range 3 { // answers that Cloudly refused wait for a node that does not read
			node.send(register, registrationOf("node-000"))
			cloud.answer(cloud.recv(), `"response":null,"error":{"text":"`+strings.Repeat("x", 300<<10)+`"}`)
		}
		<-node.sock.Ending() // recalled: a Close, which goes on sending
		synctest.Wait()
		before := node.sock.Stats().BytesOut
		r.DropCustody("relay-node-unknown")
		node.gate.open()
		<-node.sock.Done()
		if after := node.sock.Stats().BytesOut; after != before {
			t.Errorf("%d bytes left after the drop", after-before)
		}
	})
}

// TestCustodyDropBetweenJudgementAndSending: what was judged under the old
// custody is not sent on, in either direction.
func TestCustodyDropBetweenJudgementAndSending(t *testing.T) {
	for name, change := range map[string]struct {
		do   func(r *rig, cloud, newer *wire)
		want contract.RefusalName
	}{
		"custody dropped": {func(r *rig, _, _ *wire) { r.DropCustody("relay-node-unknown") }, contract.RelayNotReady},
		"session lost":    {func(r *rig, _, _ *wire) { r.UpstreamLost() }, contract.RelayNotReady},
		"session new":     {func(r *rig, cloud, _ *wire) { r.UpstreamLost(); r.UpstreamRegistered(cloud.sock) }, contract.RelayNotReady},
		"draining":        {func(r *rig, _, _ *wire) { r.Forward.mu.Lock(); r.draining = true; r.Forward.mu.Unlock() }, contract.RelayNotReady},
		"socket ended":    {func(r *rig, _, newer *wire) { newer.hangUp(); <-newer.sock.Done() }, contract.RelayNodeSessionNotCurrent},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				cloud := r.cloudly()
				node, session := r.bound(cloud, "node-a")
				conn := r.conn(node.sock)
				rt, _ := r.routes.find(up, report)
				seen := r.look(conn)
				r.serveNode = func(_ *testConn, q *typedsocket.Request) {
					refused := r.sendUp(conn, q, rt, seen)
					if refused == nil || refused.Name != change.want {
						t.Errorf("up: %v", refused)
					}
					q.Drop()
				}
				push, _ := r.routes.find(down, "applyRuntimeAssignment")
				to := r.lookFor("node-a", cloud.sock)
				r.serveCloudly = func(q *typedsocket.Request) {
					refused := r.sendDown(q, push, to)
					if refused == nil || refused.Name != change.want {
						t.Errorf("down: %v", refused)
					}
					q.Drop()
				}
				asks := r.dialNode() // any socket whose requests can be had
				change.do(r, cloud, node)
				synctest.Wait()
				asks.send(report, body(session, `"x":1`))
				cloud.send("applyRuntimeAssignment", body(session, `"x":1`))
				cloud.none()
				if node.sock.Err() == nil {
					node.none()
				}
				if r.total != (total{}) {
					t.Errorf("%+v is still counted", r.total)
				}
			})
		})
	}
}

// TestRotationBetweenJudgementAndSending: the session that was judged is not the
// one that is held.
func TestRotationBetweenJudgementAndSending(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		conn := r.conn(node.sock)
		rt, _ := r.routes.find(up, report)
		seen, to := r.look(conn), r.lookFor("node-a", cloud.sock)
		r.register(cloud, node, "node-a", 2)
		r.serveNode = func(_ *testConn, q *typedsocket.Request) {
			if refused := r.sendUp(conn, q, rt, seen); refused == nil || refused.Name != contract.RelayNodeSessionNotCurrent {
				t.Errorf("up: %v", refused)
			}
			q.Drop()
		}
		r.serveCloudly = func(q *typedsocket.Request) {
			if refused := r.sendDown(q, rt, to); refused == nil || refused.Name != contract.RelayNodeSessionNotCurrent {
				t.Errorf("down: %v", refused)
			}
			q.Drop()
		}
		node.send(report, body(session, `"x":1`))
		cloud.send("applyRuntimeAssignment", body(session, `"x":1`))
		cloud.none()
		node.none()
	})
}

// TestReplayBetweenJudgementAndSending: the session that was judged is the one
// that is held, so what was judged under it passes.
func TestReplayBetweenJudgementAndSending(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		conn := r.conn(node.sock)
		rt, _ := r.routes.find(up, report)
		push, _ := r.routes.find(down, "applyRuntimeAssignment")
		seen, to := r.look(conn), r.lookFor("node-a", cloud.sock)
		r.register(cloud, node, "node-a", 1)
		r.serveNode = func(_ *testConn, q *typedsocket.Request) {
			if refused := r.sendUp(conn, q, rt, seen); refused != nil {
				t.Errorf("up: %v", refused)
				q.Drop()
			}
		}
		r.serveCloudly = func(q *typedsocket.Request) {
			if refused := r.sendDown(q, push, to); refused != nil {
				t.Errorf("down: %v", refused)
				q.Drop()
			}
		}
		node.send(report, body(session, `"x":1`))
		cloud.send("applyRuntimeAssignment", body(session, `"x":1`))
		cloud.recv()
		node.recv()
	})
}

// pushing is a push that is on its way to a node.
func (r *rig) pushing(cloud, node *wire) *carried {
	r.Forward.mu.Lock()
	defer r.Forward.mu.Unlock()
	c := &carried{f: r.Forward, p: r.peers[node.sock], from: cloud.sock, to: node.sock, node: "node-a",
		epoch: r.table.epoch, cost: cost{direction: down, bytes: 1}}
	if refused := r.total.admit(&c.p.load, c.cost); refused != nil {
		r.t.Fatal(refused)
	}
	return c
}

// TestWhatARequestHeldIsGivenBackBeforeItsAnswer leaves, or a peer that keeps to
// its bound would be refused for being quick. A drain still waits for the answer.
func TestWhatARequestHeldIsGivenBackBeforeItsAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, _ := r.bound(cloud, "node-a")
		synctest.Wait()
		for name, answer := range map[string]func(c *carried){
			"an answer":  func(c *carried) { c.judge(&typedsocket.ForwardedAnswer{Facts: &envelope.Body{}}) },
			"a failure":  func(c *carried) { c.failed(typedsocket.ErrClosed) },
			"a judgment": func(c *carried) { c.failed(c.judge(&typedsocket.ForwardedAnswer{Facts: &envelope.Body{Streams: 1}})) },
		} {
			c := r.pushing(cloud, node)
			if r.total == (total{}) {
				t.Fatal("nothing is counted")
			}
			answer(c)
			if r.total != (total{}) {
				t.Errorf("%s: %+v is still counted", name, r.total)
			}
			if c.p.idle() {
				t.Errorf("%s: a drain would not wait for it", name)
			}
			c.ended(nil)
			if !c.p.idle() || r.total != (total{}) {
				t.Errorf("%s: %+v is counted, idle %v", name, r.total, c.p.idle())
			}
		}
	})
}

// TestCustodyDropWaitsForAnswersUnderWay: an answer of a node that was judged
// before the drop reaches Cloudly's queue before it returns, or not at all.
func TestCustodyDropWaitsForAnswersUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, _ := r.bound(cloud, "node-a")
		synctest.Wait()
		answer := &typedsocket.ForwardedAnswer{Accepted: true, Facts: &envelope.Body{}}
		before, after := r.pushing(cloud, node), r.pushing(cloud, node)
		if err := before.judge(answer); err != nil {
			t.Fatal(err)
		}
		returned := make(chan struct{})
		go func() { r.DropCustody("relay-node-unknown"); close(returned) }()
		synctest.Wait()
		select {
		case <-returned:
			t.Fatal("it returned while an answer is between its judgement and the queue")
		default:
		}
		if err := after.judge(answer); err == nil {
			t.Error("an answer passed after the drop began")
		}
		before.ended(nil)
		<-returned
		after.ended(errors.New("withheld"))
	})
}

// TestCustodyDropAgainstTraffic: whatever the moment, nothing of a node goes up
// after it has returned.
func TestCustodyDropAgainstTraffic(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		const nodes = 6
		var running sync.WaitGroup
		var wires []*wire
		var sessions []string
		for i := range nodes {
			w, session := r.bound(cloud, fmt.Sprintf("node-%d", i))
			wires, sessions = append(wires, w), append(sessions, session)
		}
		stop := make(chan struct{})
		flood := func(from *wire, method, session string) {
			for {
				select {
				case <-stop:
					return
				case <-from.ended:
					return
				case <-time.After(time.Microsecond):
				}
				from.ws.Write(t.Context(), 1, fmt.Appendf(nil, `{"method":%q,"request":%s,"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`, method, body(session, `"x":1`)))
			}
		}
		for i, w := range wires {
			running.Go(func() { flood(w, report, sessions[i]) })
			running.Go(func() { flood(cloud, "applyRuntimeAssignment", sessions[i]) })
			running.Go(func() {
				for {
					select {
					case <-w.ended:
						return
					case f := <-w.frames:
						if f.Correlation.Phase == "request" {
							w.ws.Write(t.Context(), 1, fmt.Appendf(nil, `{"method":%q,"response":{"of":"node"},"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`,
								f.Method, f.RequestInstanceID, f.Correlation.ID))
						}
					}
				}
			})
		}
		time.Sleep(40*time.Microsecond + 1)
		r.DropCustody("relay-node-unknown")
		carried := r.metrics.bytes.Of(up).Value()
		time.Sleep(20 * time.Microsecond)
		close(stop)
		running.Wait()
		synctest.Wait()
		if after := r.metrics.bytes.Of(up).Value(); after != carried || carried == 0 {
			t.Errorf("%d bytes of nodes went up before the drop, %d after", carried, after-carried)
		}
		if s := r.Status().(Status); s.InFlight != (InFlight{}) || len(s.Nodes) != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestO10_StaleCredentialInAnAnswerToANode tells the hook and goes on to the
// node; nothing else does.
func TestO10_StaleCredentialInAnAnswerToANode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		const stale = `{ "code":"relay-credential-generation-stale","n":1.0}`
		for _, c := range []struct {
			members string
			heard   bool
		}{
			{`"response":null,"error":{"text":"x","data":` + stale + `}`, true},
			{`"response":null,"error":{"text":"relay-credential-generation-stale: y","data":{}}`, false},
			{`"response":null,"error":{"text":"x","data":{"reason":"relay-credential-generation-stale"}}`, false},
			{`"response":null,"error":{"text":"x","data":{"code":"relay-node-unknown"}}`, false},
			{`"response":null,"error":{"text":"x","data":{"in":{"code":"relay-credential-generation-stale"}}}`, false},
			{`"response":{"code":"relay-credential-generation-stale"}`, false},
		} {
			for _, method := range []string{report, register} {
				r.told()
				request := body(session, `"x":1`)
				if method == register {
					request = registrationOf("node-a")
					if strings.HasPrefix(c.members, `"response":{`) {
						continue // no answer to a registration
					}
				}
				node.send(method, request)
				cloud.answer(cloud.recv(), c.members)
				f := node.recv()
				_, want, _ := strings.Cut(c.members, `null,`)
				if want != "" && !strings.HasSuffix(f.text, `,`+want+`}`) {
					t.Errorf("%s: %s answered %s", method, c.members, f.text)
				}
				var told []string
				if c.heard {
					told = []string{"stale cloudly " + stale}
				}
				if got := r.told(); !slices.Equal(got, told) {
					t.Errorf("%s: %s told %q", method, c.members, got)
				}
			}
		}
		// A node cannot end custody with its answers.
		r.told()
		cloud.send("applyRuntimeAssignment", body(session, `"x":1`))
		node.answer(node.recv(), `"response":null,"error":{"text":"x","data":`+stale+`}`)
		if f := cloud.recv(); string(f.Error.Data) != stale {
			t.Errorf("answered %s", f.text)
		}
		if got := r.told(); len(got) != 0 {
			t.Errorf("a node's answer told %q", got)
		}
	})
}
