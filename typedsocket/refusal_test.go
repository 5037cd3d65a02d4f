package typedsocket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/typedsocket/buffer"
	"serve.zone/relay/typedsocket/envelope"
)

// TestEraseRefusal: nothing of a refusal's data stays once its owner is done with it.
func TestEraseRefusal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		answerRaw(t, `"response":null,"error":{"text":"no","data":{"x":"SECRET"}}`, func(_ *Answer, err error) {
			var refused *RemoteError
			if !errors.As(err, &refused) || string(refused.Data) != `{"x":"SECRET"}` {
				t.Fatalf("%v: %+v", err, refused)
			}
			data := refused.Data
			EraseRefusal(fmt.Errorf("call: %w", err))
			if !bytes.Equal(data, make([]byte, len(data))) || refused.Data != nil || refused.Text != "no" {
				t.Errorf("left: %q, %+v", data, refused)
			}
		})
	})
	for _, err := range []error{nil, ErrClosed, &RemoteError{}, &TimeoutError{}} {
		EraseRefusal(err)
	}
}

// TestARefusalHasAnOwner: the caller, also when it comes at the very moment at which the
// caller has given up, so that there is somebody to erase it.
func TestARefusalHasAnOwner(t *testing.T) {
	bubble(t, func(t *testing.T) {
		seen := &cancelling{}
		peer, s := newRig(t, Config{Peer: "raw", Recorder: seen}).raw()
		const calls = 200 // which of the two the caller sees first is chance
		answered := 0
		for i := range calls {
			ctx, cancel := context.WithCancel(context.Background())
			seen.cancel = cancel
			go func() {
				id, instance := readCall(t, peer)
				write(t, peer, fmt.Sprintf(`{"method":"m","response":null,"error":{"text":"no","data":{"s":"SECRET"}},"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, instance, id))
			}()
			var told *RemoteError
			_, err := s.Call(ctx, "m", nil, CallOptions{Refused: func(r *RemoteError) { told = r }})
			switch {
			case told != nil && err == error(told):
				answered++
			case told != nil || err != context.Canceled: // taken out before the answer was looked at
				t.Fatalf("call %d: told of %v, returned %v", i, told, err)
			}
			synctest.Wait()
		}
		if answered == 0 {
			t.Error("no call had its answer looked at")
		}
		peer.CloseNow()
		<-s.Done()
	})
}

// TestTheRefusalOfAnErasedRequestIsErasedToo: it may repeat what it refuses.
func TestTheRefusalOfAnErasedRequestIsErasedToo(t *testing.T) {
	for name, size := range map[string]int{"small": 0, "beyond the room of an envelope": 1000} {
		bubble(t, func(t *testing.T) {
			seen := &sentMemory{}
			w, s := newRig(t, Config{Peer: "client", Recorder: seen, Handler: HandlerFunc(func(r *Request) {
				r.Erase()
				r.Refuse("no", r.Body())
			})}).wired(same)
			w.send(opText, fmt.Appendf(nil, `{"method":"m","request":{"p":"%s","s":"SECRET"},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`,
				strings.Repeat("p", size)))
			synctest.Wait()
			if len(seen.mem) == 0 || bytes.Contains(seen.mem, []byte("SECRET")) {
				t.Errorf("%s: %d bytes of the refusal's memory are still there", name, len(seen.mem))
			}
			w.conn.Close()
			<-s.Done()
			if got := <-w.done; !bytes.Contains(got, []byte("SECRET")) {
				t.Errorf("%s: answered %q", name, got)
			}
		})
	}
}

// TestNothingStaysOfWhatAnErrorWasComposedFrom: whoever answers gives the values away.
func TestNothingStaysOfWhatAnErrorWasComposedFrom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		errorValue := envelope.AppendError(nil, "no", []byte(`{"s":"SECRET"}`))
		retryValue := []byte(`{"waitForMs":1,"reason":"SECRET"}`)
		w, s := newRig(t, Config{Peer: "client", Handler: HandlerFunc(func(r *Request) {
			r.end(requestOpen)
			r.answer(buffer.Of(null), errorValue, retryValue, "")
		})}).wired(same)
		w.send(opText, []byte(`{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`))
		synctest.Wait()
		for _, value := range [][]byte{errorValue, retryValue} {
			if !bytes.Equal(value, make([]byte, len(value))) {
				t.Errorf("%q is left", value)
			}
		}
		w.conn.Close()
		<-s.Done()
		if got := <-w.done; bytes.Count(got, []byte("SECRET")) != 2 {
			t.Errorf("answered %q", got)
		}
	})
}

// TestTheAnswerToAnErasedForwardIsErasedToo, a refusal or not, on both sockets.
func TestTheAnswerToAnErasedForwardIsErasedToo(t *testing.T) {
	for name, members := range map[string]string{
		"accepted": `"response":{"x":"SECRET"}`,
		"refused":  `"response":null,"error":{"text":"no","data":{"x":"SECRET"}}`,
	} {
		bubble(t, func(t *testing.T) {
			came, went := &receivedMemory{}, &sentMemory{}
			cloud, up := newRig(t, Config{Peer: "cloudly", Recorder: came}).raw()
			w, down := newRig(t, Config{Peer: "node", Recorder: went, Handler: HandlerFunc(func(r *Request) {
				r.Erase()
				if err := r.Forward(up, Forward{Method: "m", Timeout: time.Second}); err != nil {
					t.Error(err)
				}
			})}).wired(same)
			w.send(opText, []byte(`{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`))
			id, instance, _ := ids(t, read(t, cloud))
			write(t, cloud, fmt.Sprintf(`{"method":"m",%s,"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, members, instance, id))
			synctest.Wait()
			if len(came.all) != 1 || bytes.Contains(came.all[0], []byte("SECRET")) {
				t.Errorf("%s: the memory that it came in still holds it", name)
			}
			if len(went.mem) == 0 || bytes.Contains(went.mem, []byte("SECRET")) {
				t.Errorf("%s: the memory that it left from still holds it", name)
			}
			w.conn.Close()
			cloud.CloseNow()
			<-down.Done()
			<-up.Done()
			if got := <-w.done; !bytes.Contains(got, []byte("SECRET")) {
				t.Errorf("%s: answered %q", name, got)
			}
		})
	}
}
