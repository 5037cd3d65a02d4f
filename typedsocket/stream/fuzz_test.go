package stream

import (
	"encoding/binary"
	"errors"
	"testing"

	"serve.zone/relay/typedsocket/buffer"
)

// counter is a carrier that counts and lets everything leave at once.
type counter struct{ frames int }

func (c *counter) Control(b *buffer.Buffer) error {
	c.frames++
	b.Release()
	return nil
}

func (c *counter) Bulk(_ string, b *buffer.Buffer, sent func()) error {
	c.frames++
	b.Release()
	sent()
	return nil
}

// FuzzReceive gives a Mux with a stream of each shape arbitrary messages: each
// is two bytes of length and so many of content, cut at the end. Whatever they
// are, it neither panics nor answers more than once each, holds no more than
// its windows allow, and gives everything back at the end.
func FuzzReceive(f *testing.F) {
	message := func(kind Kind, number uint32, value uint64, payload string) []byte {
		h := header(kind, number, value)
		m := binary.BigEndian.AppendUint16(nil, uint16(HeaderSize+len(payload)))
		return append(append(m, h[:]...), payload...)
	}
	seed := func(messages ...[]byte) {
		var all []byte
		for _, m := range messages {
			all = append(all, m...)
		}
		f.Add(all)
	}
	seed(message(kindOpenAck, 2, 0, "id2"), message(kindData, 2, 0, "abc"), message(kindEnd, 2, 3, ""), message(kindEnd, 2, 3, ""))
	seed(message(kindOpenAck, 2, 9, "id1"), message(kindCredit, 2, 10, ""), message(kindAccept, 2, 0, "{}"))
	seed(message(kindData, 1, 0, "abc"), message(kindData, 1, 3, "d"), message(kindAbort, 1, 0, "why"))
	seed(message(kindCredit, 3, 1<<20, ""), message(kindReject, 3, 0, "no"), message(kindData, 3, 0, "x"))
	seed(message(kindData, 9, 0, "x"), []byte{0, 3, 'a', 'b', 'c'})
	f.Fuzz(func(t *testing.T, all []byte) {
		before := buffer.Lent()
		c := &counter{}
		sc := newScript(t, Config{Window: 1 << 10})
		sc.m.cfg.Carrier = c
		sc.offer(Send)
		sc.offer(Receive)
		sc.opened(Receive)
		sc.opened(Send)
		messages, said := 0, c.frames
		for len(all) >= 2 {
			n := min(int(binary.BigEndian.Uint16(all)), len(all)-2)
			err := sc.message(all[2 : 2+n])
			all = all[2+n:]
			messages++
			var foreign *FrameError
			var broken *ProtocolError
			if err != nil && !errors.As(err, &foreign) && !errors.As(err, &broken) {
				t.Fatalf("untyped error %v", err)
			}
		}
		if n := c.frames - said; n > messages {
			t.Fatalf("%d frames said to %d messages", n, messages)
		}
		stats := sc.m.Stats()
		if limit := MaxStreams * (3<<10 + chunkMemory); stats.Held > limit || stats.Live > 4 {
			t.Fatalf("stats %+v", stats)
		}
		sc.m.Close(nil)
		if stats := sc.m.Stats(); stats.Held != 0 || buffer.Lent() != before {
			t.Fatalf("%d bytes held, %d buffers lent", stats.Held, buffer.Lent()-before)
		}
	})
}
