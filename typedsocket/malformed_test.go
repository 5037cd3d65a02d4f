package typedsocket

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// R03: a text that was cut in the middle of a character costs its own request, not the
// socket: the peer would send it again over the next one, for ever.
func TestR03_ABodyThatBreaksARuleCostsItsRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		served := 0
		peer, s := newRig(t, Config{Peer: "raw", Handler: HandlerFunc(func(r *Request) { served++; r.Answer(nil) })}).raw()
		for i, body := range []string{`{"text":"cut \ud83d"}`, `{"a":1,"\u0061":2}`, `{"session":{"__proto__":1}}`} {
			write(t, peer, fmt.Sprintf(`{"method":"m","request":%s,"requestInstanceId":"i%d","correlation":{"id":"c%d","phase":"request"}}`, body, i, i))
			got := read(t, peer)
			for _, part := range []string{`"text":"request-malformed: `, `"data":{"code":"request-malformed"}`, fmt.Sprintf(`"id":"c%d"`, i), fmt.Sprintf(`"requestInstanceId":"i%d"`, i)} {
				if !strings.Contains(got, part) {
					t.Errorf("%s: the answer lacks %s: %s", body, part, got)
				}
			}
		}
		write(t, peer, `{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		if got := read(t, peer); !strings.Contains(got, `"id":"c"`) || served != 1 {
			t.Errorf("%d served, %s", served, got)
		}
		if stats := s.Stats(); stats.Malformed != 3 || stats.Serving != 0 {
			t.Errorf("%+v", stats)
		}
		peer.CloseNow()
		<-s.Done()
	})
}

// R03: an answer that breaks a rule fails the call that waits for it at once, by the
// rule and without its text; one that nobody waits for is counted.
func TestR03_AnAnswerThatBreaksARuleFailsItsCallAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		peer, s := newRig(t, Config{Peer: "raw", KeepMalformed: true}).raw()
		go func() {
			id, instance := readCall(t, peer)
			write(t, peer, fmt.Sprintf(`{"method":"m","response":{"s":"\udc00 SECRET"},"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, instance, id))
		}()
		start := time.Now()
		_, err := s.Call(context.Background(), "m", nil, CallOptions{})
		invalid, ok := errors.AsType[*AnswerError](err)
		if !ok || time.Since(start) != 0 || !strings.Contains(invalid.Error(), "lone-surrogate") || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		// One that nobody waits for is counted, and nothing else.
		write(t, peer, `{"method":"m","response":{"a":1,"a":1},"requestInstanceId":"x","correlation":{"id":"x","phase":"response"}}`)
		peer.Close(websocket.StatusNormalClosure, "")
		<-s.Done()
		if stats := s.Stats(); stats.Unmatched != 1 || stats.Malformed != 2 {
			t.Errorf("%+v", stats)
		}
	})
}
