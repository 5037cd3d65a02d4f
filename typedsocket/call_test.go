package typedsocket

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"serve.zone/relay/typedsocket/envelope"
)

func TestBothSidesStartRequestsOnOneSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		double := handlers{"double": func(r *Request) { r.Answer([]byte(`{"twice":` + string(r.Body()) + `}`)) }}
		c, s := pair(t, Config{Peer: "server", Handler: double}, Config{Peer: "client", Handler: handlers{"echo": echo}})
		if got := call(t, c, "echo", ` {"a" : [1, 2.50, "\u0041"]} `); got != `{"a" : [1, 2.50, "\u0041"]}` {
			t.Fatalf("echo gave %s", got)
		}
		if got := call(t, s, "double", `{}`); got != `{"twice":{}}` {
			t.Fatalf("double gave %s", got)
		}
		if st := s.Stats(); st.Pending != 0 || st.Serving != 0 {
			t.Fatalf("left over: %+v", st)
		}
	})
}

func TestErrorAnswersReachTheCallerWhole(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, _ := pair(t, Config{Peer: "server"}, Config{Peer: "client", Handler: handlers{
			"denied": func(r *Request) { r.Refuse("denied: not yours", []byte(`{"code":"E1","n":1.50}`)) },
			"bare":   func(r *Request) { r.Refuse("bare", nil) },
			"fails":  func(r *Request) { r.Fail() },
		}})
		for method, want := range map[string][2]string{
			"denied": {"denied: not yours", `{"code":"E1","n":1.50}`},
			"bare":   {"bare", `{}`},
			"fails":  {"Internal server error", `{}`},
			"other":  {"There is no available method for this call on the server side", `{}`},
		} {
			_, err := c.Call(context.Background(), method, []byte(`{}`), CallOptions{})
			var remote *RemoteError
			if !errors.As(err, &remote) || remote.Text != want[0] || string(remote.Data) != want[1] {
				t.Errorf("%s: %v with text and data %+v", method, err, remote)
			}
			if err != nil && strings.Contains(err.Error(), "not yours") {
				t.Errorf("the error's own message quotes the peer: %v", err)
			}
		}
	})
}

func TestAThousandCallsInFlightAnsweredBackwards(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const n = 1000
		var mu sync.Mutex
		var held []*Request
		all := make(chan struct{})
		c, _ := pair(t, Config{Peer: "server"}, Config{Peer: "client", Handler: HandlerFunc(func(r *Request) {
			mu.Lock()
			defer mu.Unlock()
			if held = append(held, r); len(held) == n {
				close(all)
			}
		})})
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				body := fmt.Sprintf(`{"i":%d}`, i)
				if got := call(t, c, "echo", body); got != body {
					t.Errorf("call %d got %s", i, got)
				}
			})
		}
		<-all
		for i := n - 1; i >= 0; i-- {
			echo(held[i])
		}
		wg.Wait()
	})
}

// retryAfter composes the answer that asks for a retry: no method of ours
// sends one, but peers do.
func retryAfter(r *Request, retry string) {
	r.end(requestOpen)
	r.answer(newNull(), nil, []byte(retry), "")
}

func TestRetryKeepsTheCorrelationAndTakesANewInstance(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var ids, instances []string
		var at []time.Duration
		start := time.Now()
		c, _ := pair(t, Config{Peer: "server"}, Config{Peer: "client", Handler: HandlerFunc(func(r *Request) {
			ids, instances = append(ids, string(r.id)), append(instances, string(r.instance))
			at = append(at, time.Since(start))
			if len(ids) <= 2 {
				retryAfter(r, `{"waitForMs":2000,"reason":"starting"}`)
				return
			}
			echo(r)
		})})
		if got := call(t, c, "m", `{"n":1}`); got != `{"n":1}` {
			t.Fatalf("got %s", got)
		}
		if len(ids) != 3 || ids[0] != ids[1] || ids[1] != ids[2] {
			t.Fatalf("correlation ids %v", ids)
		}
		if instances[0] == instances[1] || instances[1] == instances[2] || instances[0] == instances[2] {
			t.Fatalf("instance ids repeat: %v", instances)
		}
		if at[1]-at[0] != 2*time.Second || at[2]-at[1] != 2*time.Second {
			t.Fatalf("sent at %v", at)
		}
	})
}

func TestRetryIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sends := 0
		c, s := pair(t, Config{Peer: "server"}, Config{Peer: "client", Handler: HandlerFunc(func(r *Request) {
			sends++
			retryAfter(r, `{"waitForMs":1,"reason":"never"}`)
		})})
		_, err := c.Call(context.Background(), "m", []byte(`{}`), CallOptions{})
		var limit *RetryLimitError
		if !errors.As(err, &limit) || limit.Sends != 4 || sends != 4 {
			t.Fatalf("%v after %d sends", err, sends)
		}
		if st := c.Stats(); st.Retries != 3 {
			t.Fatalf("counted %d retries", st.Retries)
		}
		_ = s
	})
}

func TestARetryAfterTooLongATimeIsNotWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, _ := pair(t, Config{Peer: "server"}, Config{Peer: "client", Handler: HandlerFunc(func(r *Request) {
			retryAfter(r, `{"waitForMs":2147483647,"reason":"in 24 days"}`)
		})})
		start := time.Now()
		_, err := c.Call(context.Background(), "m", []byte(`{}`), CallOptions{})
		var limit *RetryLimitError
		if !errors.As(err, &limit) || limit.Sends != 1 || limit.Wait != 2147483647*time.Millisecond || time.Since(start) != 0 {
			t.Fatalf("%v after %s", err, time.Since(start))
		}
	})
}

func TestARetryWaitEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, _ := pair(t, Config{Peer: "server"}, Config{Peer: "client", Handler: HandlerFunc(func(r *Request) {
			r.Retry(5*time.Minute, "busy")
		})})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		start := time.Now()
		if _, err := c.Call(ctx, "m", []byte(`{}`), CallOptions{}); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Fatalf("%v after %s", err, time.Since(start))
		}
	})
}

func TestAnswersThatAreNoneFailTheCallByRule(t *testing.T) {
	cases := map[string]string{
		`"error":null`:                               "it has no member response",
		`"response":{},"error":null`:                 "its error is no object with a text",
		`"response":{},"error":"x"`:                  "its error is no object with a text",
		`"response":{},"error":{"data":1}`:           "its error is no object with a text",
		`"response":{},"retry":{"waitForMs":0}`:      "its retry is not valid",
		`"response":{},"retry":{"waitForMs":1.5}`:    "its retry is not valid",
		`"response":{},"retry":{"waitForMs":"1"}`:    "its retry is not valid",
		`"response":{},"retry":7`:                    "its retry is not valid",
		`"response":{},"retry":{"waitForMs":1e99}`:   "its retry is not valid",
		`"response":{},"retry":{"reason":"no wait"}`: "its retry is not valid",
	}
	for members, rule := range cases {
		bubble(t, func(t *testing.T) {
			answerRaw(t, members, func(_ *Answer, err error) {
				var invalid *AnswerError
				if !errors.As(err, &invalid) || invalid.Rule != rule {
					t.Errorf("%s: %v", members, err)
				}
			})
		})
	}
}

func TestAnswersThatRealPeersSendAreAccepted(t *testing.T) {
	for _, members := range []string{
		`"request":null,"response":{"a":1}`,
		`"response":{"a":1},"localData":null,"extra":{"x":[1]}`,
		`"request":{"q":1},"response":{"a":1},"retry":null`,
	} {
		bubble(t, func(t *testing.T) {
			answerRaw(t, members, func(a *Answer, err error) {
				if err != nil || string(a.Response()) != `{"a":1}` {
					t.Fatalf("%s: %v", members, err)
				}
				a.Release()
			})
		})
	}
	bubble(t, func(t *testing.T) {
		answerRaw(t, `"response":null,"error":{"text":"bad","data":null},"retry":null`, func(_ *Answer, err error) {
			var remote *RemoteError
			if !errors.As(err, &remote) || remote.Text != "bad" || string(remote.Data) != "null" {
				t.Fatalf("%v", err)
			}
		})
	})
}

// answerRaw lets a bare peer answer one call with members beside the ids.
func answerRaw(t *testing.T, members string, check func(*Answer, error)) {
	peer, s := newRig(t, Config{Peer: "raw"}).raw()
	go func() {
		id, instance := readCall(t, peer)
		write(t, peer, fmt.Sprintf(`{"method":"m","requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"},%s}`, instance, id, members))
	}()
	check(s.Call(context.Background(), "m", []byte(`{}`), CallOptions{}))
	s.Close(CloseNormal, "")
	peer.CloseNow()
	<-s.Done()
}

// readCall reads one request as a bare peer and returns its ids.
func readCall(t testing.TB, peer *websocket.Conn) (id, instance string) {
	_, text, err := peer.Read(context.Background())
	if err != nil {
		t.Error(err)
		return
	}
	var f envelope.Frame
	if err := envelope.Scan(text, &f); err != nil || f.Kind() != envelope.KindRequest {
		t.Errorf("no request: %v", err)
	}
	return string(f.ID), string(f.Instance)
}

func write(t testing.TB, peer *websocket.Conn, text string) {
	if err := peer.Write(context.Background(), websocket.MessageText, []byte(text)); err != nil {
		t.Error(err)
	}
}

func TestOnlyTheWholeTripleMatches(t *testing.T) {
	bubble(t, func(t *testing.T) {
		peer, s := newRig(t, Config{Peer: "raw"}).raw()
		go func() {
			id, instance := readCall(t, peer)
			answer := func(method, id, instance, response string) {
				write(t, peer, fmt.Sprintf(`{"method":%q,"response":%q,"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, method, response, instance, id))
			}
			answer("other", id, instance, "wrong method")
			answer("m", "uni_000000000000000000000000", instance, "wrong id")
			answer("m", id, "uni_000000000000000000000000", "wrong instance")
			write(t, peer, fmt.Sprintf(`{"method":"m","response":"no instance","correlation":{"id":%q,"phase":"response"}}`, id))
			time.Sleep(50 * time.Millisecond)
			answer("m", id, instance, "right")
			answer("m", id, instance, "twice")
		}()
		if got := call(t, s, "m", `{}`); got != `"right"` {
			t.Fatalf("got %s", got)
		}
		time.Sleep(time.Second)
		if n := s.Stats().Unmatched; n != 5 {
			t.Fatalf("%d answers counted as unmatched, want 5", n)
		}
		peer.CloseNow()
		<-s.Done()
	})
}

func TestAPeerThatNeverSentAnInstanceIsAnOldOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		peer, s := newRig(t, Config{Peer: "raw", Handler: handlers{"echo": echo}}).raw()
		go func() {
			id, _ := readCall(t, peer)
			write(t, peer, fmt.Sprintf(`{"method":"m","response":{"old":true},"correlation":{"id":%q,"phase":"response"},"localData":null}`, id))
		}()
		if got := call(t, s, "m", `{}`); got != `{"old":true}` {
			t.Fatalf("got %s", got)
		}
		write(t, peer, `{"method":"echo","request":{"a":1},"response":null,"correlation":{"id":"c1","phase":"request"}}`)
		_, text, err := peer.Read(context.Background())
		if want := `{"method":"echo","request":null,"response":{"a":1},"correlation":{"id":"c1","phase":"response"}}`; err != nil || string(text) != want {
			t.Fatalf("answered %s, %v", text, err)
		}
		peer.CloseNow()
		<-s.Done()
	})
}

func TestPendingCallsBelongToOneSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, Config{Peer: "raw"})
		p1, s1 := r.raw()
		p2, s2 := r.raw()
		go func() {
			id, instance := readCall(t, p1)
			write(t, p2, fmt.Sprintf(`{"method":"m","response":"foreign","requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, instance, id))
		}()
		_, err := s1.Call(context.Background(), "m", []byte(`{}`), CallOptions{})
		var timeout *TimeoutError
		if !errors.As(err, &timeout) || timeout.After != 30*time.Second {
			t.Fatalf("%v", err)
		}
		if s2.Stats().Unmatched != 1 || s1.Stats().Unmatched != 0 || s1.Stats().Timeouts != 1 {
			t.Fatalf("stats %+v and %+v", s1.Stats(), s2.Stats())
		}
		p1.CloseNow()
		p2.CloseNow()
		<-s1.Done()
		<-s2.Done()
	})
}

// B034: calls to a peer that accepts and never answers are bounded: the one beyond
// fails at once, and each other one by its deadline.
func TestB034_PendingCallsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, _ := pair(t, Config{Peer: "server", Limits: Limits{Pending: 10}}, Config{Peer: "client", Handler: HandlerFunc(func(r *Request) { r.Drop() })})
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				_, err := c.Call(context.Background(), "m", []byte(`{}`), CallOptions{})
				var timeout *TimeoutError
				if !errors.As(err, &timeout) {
					t.Errorf("%v", err)
				}
			})
		}
		time.Sleep(time.Second)
		if _, err := c.Call(context.Background(), "m", []byte(`{}`), CallOptions{}); !errors.Is(err, ErrPendingFull) {
			t.Fatalf("the eleventh call: %v", err)
		}
		wg.Wait()
		if st := c.Stats(); st.Pending != 0 || st.PendingFull != 1 {
			t.Fatalf("%+v", st)
		}
	})
}

func TestServingIsBoundedAndRefusedByName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var held []*Request
		c, s := pair(t, Config{Peer: "server"}, Config{Peer: "client", OverloadName: "relay-overloaded", Limits: Limits{Serving: 2},
			Handler: HandlerFunc(func(r *Request) { held = append(held, r) })})
		for range 2 {
			go func() {
				if a, err := c.Call(context.Background(), "m", []byte(`{}`), CallOptions{}); err == nil {
					a.Release()
				}
			}()
		}
		time.Sleep(time.Second)
		_, err := c.Call(context.Background(), "m", []byte(`{}`), CallOptions{})
		var remote *RemoteError
		if !errors.As(err, &remote) || !strings.HasPrefix(remote.Text, "relay-overloaded: ") || string(remote.Data) != `{"code":"relay-overloaded"}` {
			t.Fatalf("%v %+v", err, remote)
		}
		for _, r := range held {
			r.Answer([]byte(`{}`))
		}
		time.Sleep(time.Second)
		if st := s.Stats(); st.Serving != 0 || st.Overloaded != 1 {
			t.Fatalf("%+v", st)
		}
	})
}

func TestASecondEndOfARequestDoesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		errs := make(chan error, 6)
		c, s := pair(t, Config{Peer: "server"}, Config{Peer: "client", Handler: HandlerFunc(func(r *Request) {
			errs <- r.Answer([]byte(`{"n":1}`))
			errs <- r.Answer([]byte(`{"n":2}`))
			errs <- r.Refuse("x", nil)
			errs <- r.Retry(time.Second, "x")
			errs <- r.Forward(r.Socket(), Forward{Method: "m"})
			r.Drop()
			errs <- nil
		})})
		if got := call(t, c, "m", `{}`); got != `{"n":1}` {
			t.Fatal(got)
		}
		for i, want := range []error{nil, ErrEnded, ErrEnded, ErrEnded, ErrEnded, nil} {
			if err := <-errs; err != want {
				t.Errorf("end %d gave %v, want %v", i, err, want)
			}
		}
		synctest.Wait()
		if st := s.Stats(); st.Serving != 0 || st.Panics != 0 {
			t.Fatalf("%+v", st)
		}
	})
}

func TestNilBodiesAreWrittenAsJSON(t *testing.T) {
	bubble(t, func(t *testing.T) {
		body := make(chan string, 1)
		c, _ := pair(t, Config{Peer: "server"}, Config{Peer: "client", Handler: HandlerFunc(func(r *Request) {
			body <- string(r.Body())
			r.Answer(nil)
		})})
		a, err := c.Call(context.Background(), "m", nil, CallOptions{})
		if err != nil || string(a.Response()) != "null" || <-body != "{}" {
			t.Fatalf("%v", err)
		}
		a.Release()
	})
}

func TestARetryEndsWithItsSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, s := pair(t, Config{Peer: "server"}, Config{Peer: "client", Handler: HandlerFunc(func(r *Request) { r.Retry(4*time.Minute, "busy") })})
		time.AfterFunc(time.Minute, func() { s.Close(CloseRestart, "draining") })
		start := time.Now()
		if _, err := c.Call(context.Background(), "m", nil, CallOptions{}); !errors.Is(err, ErrClosed) || time.Since(start) != time.Minute {
			t.Fatalf("%v after %s", err, time.Since(start))
		}
	})
}

// TestErasedCallsLeaveNothing: neither the request that left nor the answer
// that was released.
func TestErasedCallsLeaveNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		seen := &sentMemory{}
		peer, s := newRig(t, Config{Peer: "raw", Recorder: seen}).raw()
		go func() {
			id, instance := readCall(t, peer)
			synctest.Wait()
			if len(seen.mem) == 0 || strings.Contains(string(seen.mem), "SECRET") {
				t.Error("the request's memory is still there")
			}
			write(t, peer, fmt.Sprintf(`{"method":"m","response":{"s":"SECRET"},"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, instance, id))
		}()
		a, err := s.Call(context.Background(), "m", []byte(`{"s":"SECRET"}`), CallOptions{Erase: true})
		if err != nil {
			t.Fatal(err)
		}
		mem := a.Response()
		a.Erase()
		a.Release()
		if strings.Contains(string(mem), "SECRET") {
			t.Error("the answer's memory is still there")
		}
		peer.CloseNow()
		<-s.Done()
	})
}

func TestTagsAreAcknowledgedAndBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, _ := pair(t, Config{Peer: "server"}, Config{Peer: "client"})
		for _, body := range []string{`{"name":"relay","payload":{"cluster":"c1"}}`, `{"payload":null,"name":"x"}`} {
			if got := call(t, c, "__typedsocket_setTag", body); got != `{"success":true}` {
				t.Fatalf("%s: %s", body, got)
			}
		}
		if got := call(t, c, "__typedsocket_removeTag", `{"name":"relay"}`); got != `{"success":true}` {
			t.Fatal(got)
		}
		for _, c2 := range []struct{ method, body, text string }{
			{"__typedsocket_setTag", `{"name":"` + strings.Repeat("n", 256) + `"}`, "tag-invalid"},
			{"__typedsocket_setTag", `{"name":"n","payload":"` + strings.Repeat("p", 16<<10) + `"}`, "tag-invalid"},
			{"__typedsocket_setTag", `{"payload":1}`, "tag-invalid"},
			{"__typedsocket_setTag", `[]`, "tag-invalid"},
			{"__typedsocket_cancel", `{}`, "There is no available method"},
		} {
			_, err := c.Call(context.Background(), c2.method, []byte(c2.body), CallOptions{})
			var remote *RemoteError
			if !errors.As(err, &remote) || !strings.HasPrefix(remote.Text, c2.text) {
				t.Errorf("%s: %v", c2.method, err)
			}
		}
	})
}
