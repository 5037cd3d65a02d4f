package typedsocket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// receivedMemory keeps the very memory of every message received, against the
// rule of Recorder, to look at it later.
type receivedMemory struct{ all [][]byte }

func (m *receivedMemory) Received(_ bool, p []byte) { m.all = append(m.all, p) }
func (*receivedMemory) Sent(bool, []byte)           {}

// R30: nothing stays of messages that the carrier refuses itself: no handler has seen
// them, so none could ask for their memory to be zeroed, and each may be a registration
// (contract §18).
func TestR30_NothingStaysOfWhatTheCarrierRefusesItself(t *testing.T) {
	const body = `{"bearer":"BEARER"}`
	request := func(method string) string {
		return `{"method":"` + method + `","request":` + body + `,"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`
	}
	drop := HandlerFunc(func(r *Request) { r.Drop() })
	for name, c := range map[string]struct {
		cfg    Config
		before func(s *Socket)
		text   string
		binary bool
		want   string // what is answered or why the socket is closed; "" for nothing
	}{
		"too many at once":  {cfg: Config{Limits: Limits{ServingBytes: 1}, Handler: drop}, text: request("register"), want: "overloaded: "},
		"draining":          {cfg: Config{Handler: drop}, before: func(s *Socket) { s.mu.Lock(); s.refusing = "relay-not-ready"; s.mu.Unlock() }, text: request("register"), want: "relay-not-ready: "},
		"too large":         {cfg: Config{Limits: Limits{Frame: 10, Close: 1 << 20}, Handler: drop}, text: request("register"), want: "frame-too-large: "},
		"no handler":        {text: request("register"), want: noMethod},
		"a tag":             {text: strings.Replace(request(setTag), `{"bearer"`, `{"name":"n","bearer"`, 1), want: `"success":true`},
		"a bad tag":         {text: request(setTag), want: "tag-invalid: "},
		"a tag unknown":     {text: request("__typedsocket_x"), want: noMethod},
		"a panic":           {cfg: Config{Handler: HandlerFunc(func(*Request) { panic("before it was looked at") })}, text: request("register"), want: failureText},
		"no JSON":           {cfg: Config{Handler: drop}, text: request("register") + "}", want: "text message refused"},
		"no JSON, kept":     {cfg: Config{Handler: drop, KeepMalformed: true}, text: request("register") + "}"},
		"no envelope":       {cfg: Config{Handler: drop}, text: body},
		"an unknown answer": {cfg: Config{Handler: drop}, text: strings.Replace(strings.Replace(request("register"), `"phase":"request"`, `"phase":"response"`, 1), `"request"`, `"response"`, 1)},
		"binary":            {cfg: Config{Handler: drop}, text: request("register"), binary: true, want: "binary messages"},
	} {
		bubble(t, func(t *testing.T) {
			seen := &receivedMemory{}
			c.cfg.Peer, c.cfg.Recorder = "node", seen
			w, s := newRig(t, c.cfg).wired(same)
			synctest.Wait()
			if c.before != nil {
				c.before(s)
			}
			opcode := byte(opText)
			if c.binary {
				opcode = opBinary
			}
			w.send(opcode, []byte(c.text))
			synctest.Wait()
			if len(seen.all) != 1 || len(seen.all[0]) != len(c.text) {
				t.Fatalf("%s: %d messages", name, len(seen.all))
			}
			if bytes.Contains(seen.all[0], []byte("BEARER")) {
				t.Errorf("%s: the memory still holds the bearer", name)
			}
			w.conn.Close()
			<-s.Done()
			if got := <-w.done; c.want == "" && len(got) > 0 || !bytes.Contains(got, []byte(c.want)) {
				t.Errorf("%s: answered %q", name, got)
			}
		})
	}
}

// lentReader keeps the memory that it was given to read into.
type lentReader struct {
	text string
	err  error
	mem  []byte
}

func (r *lentReader) Read(p []byte) (int, error) {
	if r.text == "" {
		return 0, r.err
	}
	n := copy(p, r.text)
	r.mem, r.text = p[:n], r.text[n:]
	return n, nil
}

// R30: nothing stays in memory of a message that is not read to its end.
func TestR30_NothingStaysOfAMessageThatIsNotReadToItsEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for i, c := range []struct {
			ended bool
			limit int
			err   error
		}{{limit: 1 << 20, err: errors.New("connection reset")}, {limit: 1 << 20, err: io.EOF, ended: true}, {limit: 10}} {
			s := &Socket{link: &link{}}
			s.link.ended.Store(c.ended)
			s.SetFrameLimit(c.limit, c.limit)
			r := &lentReader{text: "a text with a BEARER", err: c.err}
			if b, err := s.message(r); err == nil {
				b.Release()
				t.Errorf("case %d: read", i)
			}
			if len(r.mem) == 0 || bytes.Contains(r.mem, []byte("BEARER")) {
				t.Errorf("case %d: %q is left", i, r.mem)
			}
		}
	})
}

// TestNothingStaysOfAnAnswerThatIsNone for a call, and of one that the Judge of a
// forward refuses.
func TestNothingStaysOfAnAnswerThatIsNone(t *testing.T) {
	for name, members := range map[string]string{
		"refused": `"response":null,"error":{"text":"no","data":{"x":"SECRET"}}`,
		"invalid": `"response":{"x":"SECRET"},"error":5`,
		"retry":   `"response":{"x":"SECRET"},"retry":{"waitForMs":600000,"reason":"r"}`,
		"late":    `"response":{"x":"SECRET"},"other":1`,
	} {
		bubble(t, func(t *testing.T) {
			seen := &receivedMemory{}
			cfg := Config{Peer: "raw", Recorder: seen}
			peer, s := newRig(t, cfg).raw()
			called := callLater(s, "m", CallOptions{Timeout: time.Second})
			id, instance := readCall(t, peer)
			if name == "late" {
				time.Sleep(2 * time.Second)
			}
			write(t, peer, fmt.Sprintf(`{"method":"m",%s,"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, members, instance, id))
			synctest.Wait()
			if len(seen.all) != 1 || bytes.Contains(seen.all[0], []byte("SECRET")) {
				t.Errorf("%s: the memory still holds the answer", name)
			}
			peer.CloseNow()
			<-s.Done()
			if err := <-called; err == nil {
				t.Errorf("%s: taken for an answer", name)
			}
		})
	}
	bubble(t, func(t *testing.T) {
		seen := &receivedMemory{}
		cloud, up := newRig(t, Config{Peer: "cloudly", Recorder: seen}).raw()
		node, down := newRig(t, Config{Peer: "node", Handler: HandlerFunc(func(r *Request) {
			if err := r.Forward(up, Forward{Method: "m", Judge: func(*ForwardedAnswer) error { return errors.New("not one to take") }}); err != nil {
				t.Error(err)
			}
		})}).raw()
		write(t, node, `{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		id, instance, _ := ids(t, read(t, cloud))
		write(t, cloud, fmt.Sprintf(`{"method":"m","response":{"pad":"%s","x":"SECRET"},"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`,
			strings.Repeat("p", 1000), instance, id)) // so that the failure in its place does not lie over it
		synctest.Wait()
		if len(seen.all) != 1 || bytes.Contains(seen.all[0], []byte("SECRET")) {
			t.Error("the memory still holds what was judged")
		}
		node.CloseNow()
		cloud.CloseNow()
		<-up.Done()
		<-down.Done()
	})
}

// cancelling cancels the calls that wait when a message has come.
type cancelling struct {
	receivedMemory
	cancel context.CancelFunc
}

func (m *cancelling) Received(binary bool, p []byte) {
	m.receivedMemory.Received(binary, p)
	m.cancel()
}

// R30: nothing stays of an answer that comes at the very moment at which whoever called
// has given up.
func TestR30_NothingStaysOfAnAnswerThatCameTooLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		seen := &cancelling{}
		peer, s := newRig(t, Config{Peer: "raw", Recorder: seen}).raw()
		const calls = 200 // which of the two the caller sees first is chance
		for range calls {
			ctx, cancel := context.WithCancel(context.Background())
			seen.cancel = cancel
			go func() {
				id, instance := readCall(t, peer)
				write(t, peer, fmt.Sprintf(`{"method":"m","response":{"s":"BEARER"},"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, instance, id))
			}()
			if a, err := s.Call(ctx, "m", nil, CallOptions{}); err == nil {
				a.Erase()
				a.Release()
			}
			synctest.Wait()
		}
		peer.CloseNow()
		<-s.Done()
		if len(seen.all) != calls {
			t.Fatalf("%d answers came", len(seen.all))
		}
		for i, mem := range seen.all {
			if bytes.Contains(mem, []byte("BEARER")) {
				t.Fatalf("answer %d is still there", i)
			}
		}
	})
}
