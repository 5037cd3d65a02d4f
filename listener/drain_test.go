package listener

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket"
)

// TestDrainAtRestIsSpreadAndShort: every socket is told to dial again with 1012,
// no two at once, and all of it takes less than the three seconds of design §8.
func TestDrainAtRestIsSpreadAndShort(t *testing.T) {
	for _, test := range []struct {
		sockets int
		most    time.Duration
	}{{0, 0}, {1, 0}, {3, 30 * time.Millisecond}, {60, 600 * time.Millisecond}, {300, 2 * time.Second}} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			var ends []time.Duration
			done := make(chan time.Duration, test.sockets)
			var begin time.Time
			for i := range test.sockets {
				client, c := r.connect()
				if i%2 == 0 {
					c.BindNode(fmt.Sprintf("node-%d", i))
				}
				go func() {
					<-client.Done()
					if code := client.Err().(*typedsocket.EndError).Code; code != typedsocket.CloseRestart {
						t.Errorf("closed with %d", code)
					}
					done <- time.Since(begin)
				}()
			}
			begin = time.Now()
			if err := r.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took > test.most {
				t.Errorf("%d sockets: took %s, want at most %s", test.sockets, took, test.most)
			}
			synctest.Wait()
			for range test.sockets {
				ends = append(ends, <-done)
			}
			slices.Sort(ends)
			for i := 1; i < len(ends); i++ {
				if ends[i] == ends[i-1] {
					t.Errorf("%d sockets: two ended at %s", test.sockets, ends[i]) // B004
				}
			}
			r.wantMetric(float64(test.sockets), "relay_listener_closed_sockets_total", "restart")
			wantDrained(t, r, "finished")
			// B112: a clean stop says nothing that an operator should look at.
			for _, level := range []string{"WARN", "ERROR"} {
				if strings.Contains(r.log.String(), level) {
					t.Errorf("log: %s", r.log)
				}
			}
		})
	}
}

func wantDrained(t *testing.T, r *rig, outcome string) {
	t.Helper()
	events := r.events.Since(0).Events
	for _, e := range events {
		if e.Type != EventDrained {
			continue
		}
		for _, f := range e.Fields {
			if f.Key().String() == "outcome" && f.String() == outcome {
				return
			}
		}
	}
	t.Errorf("no event says that the drain %s: %+v", outcome, events)
}

// B116, B110: while the listener drains, what is in flight finishes, and nothing new
// begins: no request, no socket, no connection.
func TestB116_WhatIsInFlightFinishes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		held := make(chan *typedsocket.Request, 1)
		r := newRig(t, func(c *Config) {
			c.Routes = append(c.Routes, Route{Role: Node, Method: "hold", Serve: func(_ *Conn, q *typedsocket.Request) { held <- q }})
			c.Registry = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, "first ")
				http.NewResponseController(w).Flush()
				time.Sleep(6 * time.Second)
				io.WriteString(w, "last")
			})
		})
		busy, _ := r.node("node-a")
		asked, askedConn := r.node("node-b")
		rests, _ := r.node("node-c")
		kept := r.raw()
		kept.send(plain("GET", "/"))
		kept.response(nil)
		pull := r.raw()
		pull.send(plain("GET", "/v2/x"))
		go func() {
			if a, err := busy.Call(context.Background(), "hold", []byte(`{}`), typedsocket.CallOptions{}); err != nil {
				t.Errorf("the request in flight: %v", err)
			} else {
				a.Release()
			}
		}()
		q := <-held
		pending := make(chan error, 1)
		go func() {
			a, err := askedConn.Socket().Call(context.Background(), "echo", []byte(`{}`), typedsocket.CallOptions{})
			if err == nil {
				a.Release()
			}
			pending <- err
		}()
		synctest.Wait()
		if err := <-pending; err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		drained := make(chan error, 1)
		go func() { drained <- r.Drain(ctx) }()
		time.Sleep(time.Second)

		wantEnd(t, rests, typedsocket.CloseRestart, true)
		wantEnd(t, asked, typedsocket.CloseRestart, true)
		text, data := refused(t, busy, "reportRuntimeAssignmentLogs", `{}`)
		if text != "relay-not-ready: the relay is leaving" || data != `{"code":"relay-not-ready"}` {
			t.Errorf("a new request: %q %s", text, data)
		}
		if _, err := r.memory.dial(t.Context()); err == nil {
			t.Error("a new connection was taken")
		}
		kept.send(handshake("/"))
		if response, _ := kept.response(nil); response.StatusCode != 503 || response.Header.Get("Retry-After") == "" {
			t.Errorf("a new socket: %s", response.Status)
		}
		checks := r.Checks(time.Now())
		if checks[0].State != duty.Failing || checks[0].Reason != "draining" {
			t.Errorf("check %+v", checks[0])
		}
		if busy.Err() != nil {
			t.Fatal("the busy socket has ended:", busy.Err())
		}
		time.Sleep(2 * time.Second)
		q.Answer([]byte(`{}`))
		wantEnd(t, busy, typedsocket.CloseRestart, true)
		if took := time.Since(begin); took > 3*time.Second+2*closeStep {
			t.Errorf("the busy socket was closed after %s", took)
		}
		if _, body := pull.response(&http.Request{Method: "GET"}); body != "first last" {
			t.Errorf("the pull ended with %q", body)
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took < 5*time.Second || took > 6*time.Second+time.Second {
			t.Errorf("took %s", took)
		}
		wantDrained(t, r, "finished")
	})
}

// TestADrainEndsWithItsContext: what is busy then is told to dial again all the
// same.
func TestADrainEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		held := make(chan *typedsocket.Request, 1)
		r := newRig(t, func(c *Config) {
			c.Routes = append(c.Routes, Route{Role: Node, Method: "hold", Serve: func(_ *Conn, q *typedsocket.Request) { held <- q }})
			c.Registry = http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
		})
		busy, _ := r.node("node-a")
		rests, _ := r.node("node-b")
		go busy.Call(context.Background(), "hold", []byte(`{}`), typedsocket.CallOptions{})
		q := <-held
		pull := r.raw()
		pull.send(plain("GET", "/v2/x"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		begin := time.Now()
		err := r.Drain(ctx)
		if err == nil || !strings.Contains(err.Error(), "1 sockets were busy") || time.Since(begin) != 4*time.Second {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
		wantEnd(t, busy, typedsocket.CloseRestart, true)
		wantEnd(t, rests, typedsocket.CloseRestart, true)
		if got, _ := io.ReadAll(pull.reader); len(got) > 0 {
			t.Errorf("the pull was answered %q", got)
		}
		q.Answer([]byte(`{}`))
		wantDrained(t, r, "cut-short")
	})
}

// A push that waits for the node's answer is in flight as well.
func TestAPushInFlightKeepsItsSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		answer := make(chan struct{})
		client, err := typedsocket.Connect(t.Context(), typedsocket.Dial{URL: "wss://relay.test/", TLS: clientTLS(), Net: r.net,
			Config: typedsocket.Config{Peer: "relay", Handler: typedsocket.HandlerFunc(func(q *typedsocket.Request) {
				go func() { <-answer; q.Answer([]byte(`{}`)) }()
			})}})
		if err != nil {
			t.Fatal(err)
		}
		call(t, client, "hello", `{}`)
		c := <-r.conns
		c.BindNode("node-a")
		pushed := make(chan error, 1)
		go func() {
			a, err := c.Socket().Call(context.Background(), "applyRuntimeAssignment", []byte(`{}`), typedsocket.CallOptions{})
			if err == nil {
				a.Release()
			}
			pushed <- err
		}()
		synctest.Wait()
		drained := make(chan error, 1)
		go func() { drained <- r.Drain(t.Context()) }()
		time.Sleep(3 * time.Second)
		if client.Err() != nil {
			t.Fatal("closed while it was asked:", client.Err())
		}
		close(answer)
		if err := <-pushed; err != nil {
			t.Error(err)
		}
		wantEnd(t, client, typedsocket.CloseRestart, true)
		if err := <-drained; err != nil {
			t.Error(err)
		}
	})
}

// TestDropCustodyIsSynchronous: every socket ends with 4002, and nothing that
// was queued for one leaves afterwards. New sockets are welcome.
func TestDropCustodyIsSynchronous(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		node, _ := r.node("node-a")
		stranger, _ := r.connect()
		// It does not read, so that a push is half sent and half queued.
		deaf := r.upgraded()
		hello := envelope("hello", `{}`, "c")
		deaf.send(frame(0x81, uint64(len(hello)), hello))
		c := <-r.conns
		deaf.message()
		c.BindNode("node-b")
		secret := `{"s":"` + strings.Repeat("PROJECTION", 20000) + `"}`
		go c.Socket().Call(context.Background(), "applyRuntimeAssignment", []byte(secret), typedsocket.CallOptions{})
		synctest.Wait()
		begin := time.Now()
		r.DropCustody("relay-cluster-not-enabled")
		if took := time.Since(begin); took > 0 {
			t.Errorf("took %s", took)
		}
		got, _ := io.ReadAll(deaf.reader)
		if len(got) > 2*wireRoom {
			t.Errorf("%d bytes left, more than the wire held", len(got))
		}
		wantEnd(t, node, typedsocket.CloseCustodyEnded, true)
		wantEnd(t, stranger, typedsocket.CloseCustodyEnded, true)
		time.Sleep(5 * time.Second)
		r.wantMetric(3, "relay_listener_closed_sockets_total", "custody-ended")
		again, _ := r.node("node-a")
		call(t, again, "echo", `{}`)
	})
}

// Close ends at once what a drain would wait for, and a second one does nothing.
func TestCloseEndsEverything(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		node, _ := r.node("node-a")
		pull := r.raw()
		r.upgraded()
		begin := time.Now()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > 4*time.Second {
			t.Errorf("took %s", took) // the bare socket does not answer the close frame
		}
		wantEnd(t, node, typedsocket.CloseGoingAway, true)
		if _, err := pull.reader.ReadByte(); err == nil {
			t.Error("a plain connection is still open")
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if r.Bind(t.Context()) == nil {
			t.Error("bound again")
		}
		if since := r.Checks(time.Now())[0].Since; !since.Equal(begin) {
			t.Errorf("closed since %s, want %s", since, begin)
		}
		if err := r.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
