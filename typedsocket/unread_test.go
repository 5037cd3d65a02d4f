package typedsocket

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

const unreadLimit = 64 << 10

// asker asks n times and reads nothing by itself. The channel is closed when all
// it asked was taken, or the socket has ended.
func asker(t *testing.T, n int) (peer *websocket.Conn, s *Socket, asked <-chan struct{}) {
	peer, s = newRig(t, Config{Peer: "raw", Limits: Limits{Unread: unreadLimit}, Handler: handlers{"echo": echo}}).raw()
	done := make(chan struct{})
	text := `{"method":"echo","request":{"x":"` + strings.Repeat("x", 500) + `"},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`
	go func() {
		defer close(done)
		for range n {
			if peer.Write(t.Context(), websocket.MessageText, []byte(text)) != nil {
				return
			}
		}
	}()
	synctest.Wait()
	return peer, s, done
}

// TestAPeerThatDoesNotReadIsNotRead: what it makes us answer ends at the limit,
// and reading goes on when it reads.
func TestAPeerThatDoesNotReadIsNotRead(t *testing.T) {
	const n = 1000
	bubble(t, func(t *testing.T) {
		peer, s, asked := asker(t, n)
		st := s.Stats()
		// One answer may come after the limit was met; a batch is in the writer's hand.
		if st.QueuedOwn <= unreadLimit || st.QueuedOwn > unreadLimit+8<<10 || st.FramesIn >= n || st.Pauses == 0 {
			t.Fatalf("%+v", st)
		}
		for range n {
			read(t, peer)
		}
		<-asked
		if st := s.Stats(); st.FramesIn != n || st.QueuedOwn != 0 {
			t.Errorf("%+v", st)
		}
		peer.CloseNow()
		<-s.Done()
	})
}

// TestAnUnreadLimitThatIsLiftedLetsReadOn, for a peer that has a role now.
func TestAnUnreadLimitThatIsLiftedLetsReadOn(t *testing.T) {
	const n = 1000
	bubble(t, func(t *testing.T) {
		peer, s, asked := asker(t, n)
		s.SetUnreadLimit(unreadLimit + 16<<10)
		synctest.Wait()
		if st := s.Stats(); st.QueuedOwn <= unreadLimit+16<<10 || st.FramesIn >= n {
			t.Errorf("after the limit grew: %+v", st)
		}
		s.SetUnreadLimit(0)
		<-asked
		synctest.Wait()
		if st := s.Stats(); st.FramesIn != n {
			t.Errorf("after the limit went: %+v", st)
		}
		peer.CloseNow()
		<-s.Done()
	})
}

// TestAPeerThatNeverReadsIsGivenUp, as one that is silent: what it sends is not
// heard while it is not read.
func TestAPeerThatNeverReadsIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		start := time.Now()
		_, s, asked := asker(t, 1000)
		<-s.Ending()
		if d := time.Since(start); d < DeadAfter-PingEvery || d > DeadAfter+PingEvery || !errors.Is(s.Err(), ErrClosed) {
			t.Errorf("ended after %s with %v", d, s.Err())
		}
		<-asked
		<-s.Done()
	})
}

// TestASocketThatEndsIsReadAgain: the peer's half of the closing handshake is
// waited for, and the reader does not stay behind.
func TestASocketThatEndsIsReadAgain(t *testing.T) {
	for name, end := range map[string]func(*Socket){
		"closed": func(s *Socket) { s.Close(CloseRestart, "draining") },
		"cut":    func(s *Socket) { s.Cut(CloseCustodyEnded, "custody ended") },
	} {
		bubble(t, func(t *testing.T) {
			_, s, asked := asker(t, 1000)
			start := time.Now()
			end(s)
			<-s.Done()
			if d := time.Since(start); d > flushWait+2*closeWait {
				t.Errorf("%s: took %s", name, d)
			}
			<-asked
		})
	}
}
