package typedsocket

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"serve.zone/relay/typedsocket/buffer"
	"serve.zone/relay/typedsocket/queue"
)

// TestDropFlowsBreaksOffAHalfWrittenFrame: its message ends where it stands, as
// text that is UTF-8 and no JSON, and own frames follow it.
func TestDropFlowsBreaksOffAHalfWrittenFrame(t *testing.T) {
	for _, character := range []string{"x", "é", "€", "😀"} {
		for shift := range len(character) {
			bubble(t, func(t *testing.T) {
				written, release, returned := 0, make(chan struct{}), make(chan struct{})
				hook := &hookConn{}
				hook.before = func() {
					switch written++; written {
					case 2:
						<-release
					case 3: // the message's end, which it need not wait for
						<-returned
					}
				}
				w, s := newRig(t, Config{Peer: "raw"}).wired(func(c net.Conn) net.Conn { hook.Conn = c; return hook })
				synctest.Wait()
				text := `{"` + strings.Repeat("y", shift) + strings.Repeat(character, 300<<10/len(character)) + `":1}`
				told := make(chan bool, 1)
				if err := s.push("node-a", queue.Item{Buf: buffer.Of([]byte(text)), Sent: func(ok bool) { told <- ok }}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // in the second fragment
				time.AfterFunc(dropWait/2, func() { close(release) })
				start := time.Now()
				s.DropFlows(CloseCustodyEnded, "custody ended")
				if d := time.Since(start); d != dropWait/2 {
					t.Errorf("returned %s before the write in progress was over", dropWait/2-d)
				}
				close(returned)
				if err := s.push("", itemOf(buffer.Of([]byte("own")))); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if ok := <-told; ok || s.Err() != nil || s.Stats().Dropped != 1 {
					t.Errorf("left %v, %v, %+v", ok, s.Err(), s.Stats())
				}
				w.conn.Close()
				<-s.Done()
				messages := messagesOf(t, <-w.done)
				if len(messages) != 2 || messages[1] != "own" {
					t.Fatalf("%d messages, the last %.20q", len(messages), messages[len(messages)-1])
				}
				broken := messages[0]
				if !strings.HasPrefix(text, broken) || !utf8.ValidString(broken) || json.Valid([]byte(broken)) {
					t.Errorf("not a part of the text, or no UTF-8, or JSON")
				}
				if n := len(broken) - 2*writeStep; n < 0 || n >= len(character) {
					t.Errorf("%d bytes followed the write in progress", n)
				}
			})
		}
	}
}

// messagesOf joins unmasked frames to messages.
func messagesOf(t testing.TB, wire []byte) (messages []string) {
	t.Helper()
	message := ""
	for len(wire) > 0 {
		first, n, head := wire[0], int(wire[1]), 2
		switch n {
		case 126:
			n, head = int(wire[2])<<8|int(wire[3]), 4
		case 127:
			n, head = int(wire[7])<<16|int(wire[8])<<8|int(wire[9]), 10
		}
		if first&0x8 != 0 { // a ping is due at a random time
			wire = wire[head+n:]
			continue
		}
		if (message == "") != (first&0xf == opText) {
			t.Fatalf("a frame of opcode %d after %d bytes of a message", first&0xf, len(message))
		}
		message += string(wire[head : head+n])
		wire = wire[head+n:]
		if first&finBit != 0 {
			messages = append(messages, message)
			message = ""
		}
	}
	return messages
}

// TestABrokenOffFrameCostsAPeerNothing that ignores what is no JSON, as TypedSocket
// servers do (typedsocket.md §1.5); here the sender masks.
func TestABrokenOffFrameCostsAPeerNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g *gate
		served := 0
		c, s := newRig(t, Config{Peer: "relay", KeepMalformed: true, Handler: handlers{"echo": echo, "report": func(r *Request) { served++; r.Answer(nil) }}}).connect(
			Config{Peer: "cloudly"}, func(c, s net.Conn) (net.Conn, net.Conn) { g = newGate(s); return c, g })
		g.shut()
		done := make(chan error, 1)
		go func() {
			_, err := c.Call(context.Background(), "report", []byte(`{"x":"`+strings.Repeat("x", 1<<20)+`"}`), CallOptions{Flow: "node-a"})
			done <- err
		}()
		synctest.Wait()
		time.AfterFunc(dropWait/2, g.open)
		c.DropFlows(CloseCustodyEnded, "custody ended")
		if err := <-done; !errors.Is(err, ErrDropped) {
			t.Errorf("%v", err)
		}
		call(t, c, "echo", `{}`)
		if st := s.Stats(); served != 0 || st.Malformed != 1 || s.Err() != nil {
			t.Errorf("%d served, %+v, %v", served, st, s.Err())
		}
	})
}

// watchedConn refuses bytes of flows in writes that begin after the drop.
type watchedConn struct {
	net.Conn
	mu      sync.Mutex
	dropped bool
	late    int
}

func (c *watchedConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.dropped {
		c.late += bytes.Count(p, []byte("F"))
	}
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// TestNothingOfAFlowIsWrittenAfterDropFlows, whatever waits, wherever the peer
// stalls and whether it reads on in time. Own frames arrive all, in order, unless
// the socket is cut.
func TestNothingOfAFlowIsWrittenAfterDropFlows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sizes := rapid.SampledFrom([]int{1, 100, 5000, 15 << 10, 20 << 10, 63 << 10, 70 << 10, 200 << 10})
		frames := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			flow := rapid.SampledFrom([]string{"own", "a", "b", "c"}).Draw(t, "flow")
			letter := "F"
			if flow == "own" {
				letter = "O"
			}
			return fmt.Sprint(flow, " ", letter, " ", sizes.Draw(t, "size"))
		}), 1, 12).Draw(rt, "frames")
		taken := rapid.IntRange(0, 300<<10).Draw(rt, "taken")
		pause := rapid.SampledFrom([]time.Duration{0, 1, dropWait / 2, 2 * dropWait}).Draw(rt, "pause")
		flush := rapid.Bool().Draw(rt, "flush")
		bubble(t, func(t *testing.T) {
			r := newRig(t, Config{Peer: "raw"})
			watched := &watchedConn{}
			conn, err := r.listener.dial(func(c, s net.Conn) (net.Conn, net.Conn) { watched.Conn = s; return c, watched })(context.Background(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(conn, upgradeRequest)
			for one, head := make([]byte, 1), []byte(nil); !bytes.HasSuffix(head, []byte("\r\n\r\n")); head = append(head, one...) {
				conn.Read(one)
			}
			s := <-r.accepted
			synctest.Wait()
			got := make(chan []byte, 1)
			go func() {
				first := make([]byte, taken)
				n, _ := io.ReadFull(conn, first)
				if n == taken {
					time.Sleep(pause)
				}
				rest, _ := io.ReadAll(conn)
				got <- append(first[:n], rest...)
			}()
			var left tally
			pushAll(t, s, &left, frames...)
			if flush {
				s.Close(CloseRestart, "draining")
			}
			synctest.Wait()
			s.DropFlows(CloseCustodyEnded, "custody ended")
			watched.mu.Lock()
			watched.dropped = true
			watched.mu.Unlock()
			if st := s.Stats(); st.QueuedFlow != 0 {
				t.Errorf("%d bytes of flows are queued", st.QueuedFlow)
			}
			cut := s.Err() != nil && !flush
			time.Sleep(time.Second)
			s.Cut(CloseNormal, "")
			conn.Close()
			<-s.Done()
			wire := <-got
			if watched.late != 0 {
				t.Errorf("%d bytes of flows were written after the drop", watched.late)
			}
			var own, want int
			for _, f := range frames {
				var size int
				if fmt.Sscanf(f, "own O %d", &size); size > 0 {
					want += size
				}
			}
			own = bytes.Count(wire, []byte("O"))
			if !cut && pause <= dropWait/2 && own < want {
				t.Errorf("%d bytes of own frames arrived, want %d", own, want)
			}
			if n := len(left.sorted()); n != len(frames) {
				t.Errorf("%d owners of %d were told", n, len(frames))
			}
		})
		if t.Failed() {
			rt.FailNow()
		}
	})
}
