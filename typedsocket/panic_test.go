package typedsocket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
)

// B184: a panic in a handler fails its request alone, and is counted and told.
func TestB184_APanicInAHandlerFailsItsRequestAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told []any
		c, s := pair(t, Config{Peer: "server"}, Config{Peer: "client",
			Panicked: func(v any, stack []byte) { told = append(told, v, len(stack) > 0) },
			Handler: handlers{"echo": echo, "bad": func(r *Request) { panic("boom") },
				"late": func(r *Request) { r.Answer([]byte(`{"n":1}`)); panic(r.Size()) }}})
		_, err := c.Call(context.Background(), "bad", []byte(`{}`), CallOptions{})
		var remote *RemoteError
		if !errors.As(err, &remote) || remote.Text != "Internal server error" {
			t.Fatalf("%v", err)
		}
		if got := call(t, c, "late", `{}`); got != `{"n":1}` {
			t.Fatal(got)
		}
		if got := call(t, c, "echo", `{}`); got != `{}` || s.Err() != nil {
			t.Fatalf("%s, socket %v", got, s.Err())
		}
		if fmt.Sprint(told) != "[boom true 0 true]" || s.Stats().Panics != 2 {
			t.Fatalf("told %v, %+v", told, s.Stats())
		}
	})
}

// TestAPanicAfterAForwardLeavesTheForwardAlone: its memory is the other
// socket's by then, and its answer is on its way.
func TestAPanicAfterAForwardLeavesTheForwardAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := &chain{}
		c.cloud, c.up = newRig(t, Config{Peer: "cloudly"}).raw()
		c.node, c.down = newRig(t, Config{Peer: "node", Handler: HandlerFunc(func(r *Request) {
			if err := r.Forward(c.up, Forward{Method: "m"}); err != nil {
				t.Error(err)
			}
			panic("boom")
		})}).raw()
		defer c.end()
		write(t, c.node, `{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		id, instance, _ := ids(t, read(t, c.cloud))
		write(t, c.cloud, fmt.Sprintf(`{"method":"m","response":{"n":1},"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, instance, id))
		got := read(t, c.node)
		synctest.Wait() // the handler may panic after the answer
		if !strings.Contains(got, `"response":{"n":1}`) || c.down.Stats().Panics != 1 {
			t.Fatalf("%s, %+v", got, c.down.Stats())
		}
	})
}

func TestAPanicInACallbackFailsItsForwardAlone(t *testing.T) {
	boom := func() { panic("boom") }
	for name, f := range map[string]Forward{
		"judge":  {Judge: func(*ForwardedAnswer) error { boom(); return nil }},
		"failed": {Judge: func(*ForwardedAnswer) error { return ErrClosed }, Failed: func(error) (string, []byte) { boom(); return "", nil }},
		"ended":  {Judge: func(*ForwardedAnswer) error { return ErrClosed }, Ended: func(error) { boom() }},
	} {
		bubble(t, func(t *testing.T) {
			f.Method = "m"
			c := newChain(t, f)
			defer c.end()
			for range 2 {
				write(t, c.node, `{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
				id, instance, _ := ids(t, read(t, c.cloud))
				write(t, c.cloud, fmt.Sprintf(`{"method":"m","response":{},"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, instance, id))
				if got := read(t, c.node); !strings.HasSuffix(got, `"error":{"text":"Internal server error","data":{}}}`) {
					t.Errorf("%s: answered %s", name, got)
				}
			}
			synctest.Wait() // Ended runs behind the answer
			if c.up.Err() != nil || c.down.Err() != nil || c.down.Stats().Panics != 2 {
				t.Errorf("%s: %v %v %+v", name, c.up.Err(), c.down.Err(), c.down.Stats())
			}
		})
	}
}

// R30: after the forward neither the read buffer, nor the message's memory, nor what it
// outgrew, holds the bearer.
func TestR30_NothingOfAnErasedRequestStays(t *testing.T) {
	for _, size := range []int{100, 6 << 10, 100 << 10} {
		bubble(t, func(t *testing.T) {
			bearer := "BEARER-" + strings.Repeat("s", size)
			var mems [][]byte
			up, cloud := (*Socket)(nil), (*chain)(nil)
			cloud = &chain{}
			cloud.cloud, up = newRig(t, Config{Peer: "cloudly"}).raw()
			w, s := newRig(t, Config{Peer: "node", Handler: HandlerFunc(func(r *Request) {
				r.Erase()
				mems = append(mems, r.buf.Bytes()[:cap(r.buf.Bytes())])
				if err := r.Forward(up, Forward{Method: "register"}); err != nil {
					t.Error(err)
				}
			})}).wired(same) // unmasked, so that what is read is text from the start
			w.send(opText, []byte(`{"method":"register","request":{"bearer":"`+bearer+`"},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`))
			if got := read(t, cloud.cloud); !strings.Contains(got, bearer) {
				t.Fatal("not forwarded")
			}
			synctest.Wait() // the frame has arrived; now the writer lets go of it
			mems = append(mems, reflect.ValueOf(s.link.reader).Elem().FieldByName("buf").Bytes())
			if len(mems) != 2 {
				t.Fatalf("%d memories", len(mems))
			}
			for i, mem := range mems {
				if bytes.Contains(mem, []byte("BEARER")) {
					t.Errorf("size %d: memory %d still holds the bearer", size, i)
				}
			}
			w.conn.Close()
			cloud.cloud.CloseNow()
			<-s.Done()
			<-up.Done()
			<-w.done
		})
	}
}

// TestNoBearerStaysInTheReadBuffer of a socket that ended inside a message, or
// that was closing when the message came.
func TestNoBearerStaysInTheReadBuffer(t *testing.T) {
	text := `{"method":"register","request":{"bearer":"BEARER"},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`
	for name, during := range map[string]func(w *wire, s *Socket){
		"cut off": func(w *wire, s *Socket) {
			w.conn.Write(append(appendHeader(nil, finBit|opText, 1000, new([4]byte)), text...))
			synctest.Wait()
			w.conn.Close()
		},
		"closing": func(w *wire, s *Socket) {
			s.Close(CloseRestart, "draining")
			synctest.Wait()
			w.send(opText, []byte(text))
			synctest.Wait()
			w.conn.Close()
		},
	} {
		bubble(t, func(t *testing.T) {
			w, s := newRig(t, Config{Peer: "node", Handler: HandlerFunc(func(r *Request) { t.Error("served"); r.Drop() })}).wired(same)
			synctest.Wait()
			buf := reflect.ValueOf(s.link.reader).Elem().FieldByName("buf").Bytes()
			during(w, s)
			<-s.Done()
			<-w.done
			if bytes.Contains(buf, []byte("BEARER")) {
				t.Errorf("%s: the read buffer still holds the bearer", name)
			}
		})
	}
}

// TestTheAnswerToAnErasedRequestIsErasedToo: it may repeat what it answers.
func TestTheAnswerToAnErasedRequestIsErasedToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		seen := &sentMemory{}
		// A bare peer, which takes no memory from the same pools.
		w, s := newRig(t, Config{Peer: "client", Recorder: seen, Handler: HandlerFunc(func(r *Request) {
			r.Erase()
			echo(r)
		})}).wired(same)
		w.send(opText, []byte(`{"method":"echo","request":{"s":"SECRET"},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`))
		synctest.Wait()
		if len(seen.mem) == 0 || bytes.Contains(seen.mem, []byte("SECRET")) {
			t.Errorf("%d bytes of the answer's memory are still there", len(seen.mem))
		}
		w.conn.Close()
		<-s.Done()
		if got := <-w.done; !bytes.Contains(got, []byte("SECRET")) {
			t.Errorf("answered %q", got)
		}
	})
}

// sentMemory keeps the very memory of the last message sent, against the rule
// of Recorder, to look at it later.
type sentMemory struct{ mem []byte }

func (*sentMemory) Received(bool, []byte)   {}
func (s *sentMemory) Sent(_ bool, p []byte) { s.mem = p }

func TestTheFrameLimitGrowsWithTheRole(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, Config{Peer: "unbound", Limits: Limits{Frame: 64 << 10}, Handler: HandlerFunc(func(r *Request) {
			r.Socket().SetFrameLimit(4<<20, 0)
			r.Answer([]byte(`{}`))
		})})
		peer, s := r.raw()
		small := `{"method":"register","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`
		write(t, peer, small)
		read(t, peer)
		write(t, peer, `{"method":"report","request":{"x":"`+strings.Repeat("x", 3<<20)+`"},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		read(t, peer)
		go write(t, peer, `{"method":"report","request":{"x":"`+strings.Repeat("x", 4<<20)+`"},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		if closed := closeSeen(t, peer); closed.Code != 1009 || closed.Reason != "message larger than 4194304 bytes" {
			t.Fatalf("%v", closed)
		}
		<-s.Done()
	})
}
