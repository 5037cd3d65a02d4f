package typedsocket

import (
	"testing"
	"testing/synctest"
)

// FuzzBytesAfterTheUpgrade gives a socket whatever a peer may send. It must
// end or go on, and leave no goroutine and no buffer.
func FuzzBytesAfterTheUpgrade(f *testing.F) {
	request := `{"method":"echo","request":{"a":1},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`
	f.Add(masked([]byte(request)))
	f.Add(append(masked([]byte(request)), masked([]byte(`{"method":"m","response":1,"correlation":{"id":"c","phase":"response"}}`))...))
	f.Add(append(appendControl(nil, opPing, []byte("p"), new([4]byte)), appendControl(nil, opClose, closePayload(CloseNormal, "bye"), new([4]byte))...))
	f.Add(append(appendHeader(nil, finBit|opBinary, 16, new([4]byte)), make([]byte, 16)...))
	f.Add([]byte{0x01, 0x81, 0, 0, 0, 0, '{', 0x80, 0x81, 0, 0, 0, 0, '}'}) // one message in two frames
	f.Add([]byte{0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, p []byte) {
		bubble(t, func(t *testing.T) {
			w, s := newRig(t, Config{Peer: "raw", Streams: true, Limits: Limits{Frame: 64 << 10}, Handler: handlers{"echo": echo}}).wired(same)
			w.conn.Write(p)
			synctest.Wait()
			w.conn.Close()
			<-w.done
			<-s.Done()
			if st := s.Stats(); st.Panics != 0 || st.Pending != 0 || st.Serving != 0 {
				t.Fatalf("%+v", st)
			}
		})
	})
}
