package buffer

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestComposeInPlaceCopiesNoPayload(t *testing.T) {
	b := Of([]byte(`{"method":"m","request":{"a":1},"response":null}`))
	at := bytes.Index(b.Bytes(), []byte(`{"a":1}`))
	first := &b.Bytes()[at]
	b.Keep(at, len(`{"a":1}`))
	b.Wrap([]byte(`<head>`), []byte(`<tail>`))
	if got := string(b.Bytes()); got != `<head>{"a":1}<tail>` {
		t.Fatalf("payload %q", got)
	}
	if &b.Bytes()[len(`<head>`)] != first {
		t.Fatal("the kept bytes moved although there was room")
	}
	if got := string(b.Framed([]byte{0x81, 0x13})); got != "\x81\x13"+`<head>{"a":1}<tail>` {
		t.Fatalf("framed %q", got)
	}
}

func TestWrapWithoutRoomMovesAndKeepsContent(t *testing.T) {
	for _, c := range []struct{ head, tail int }{{HeadRoom, 0}, {0, TailRoom + 1}, {9000, 9000}, {HeadRoom - 13, 0}} {
		b := Of(bytes.Repeat([]byte("x"), 4<<10))
		head, tail := strings.Repeat("h", c.head), strings.Repeat("t", c.tail)
		b.Wrap([]byte(head), []byte(tail))
		if got := string(b.Bytes()); got != head+strings.Repeat("x", 4<<10)+tail {
			t.Fatalf("head %d tail %d: wrong payload of %d bytes", c.head, c.tail, len(got))
		}
		b.Framed(make([]byte, 14)) // must still have room for a header
		b.Release()
	}
}

func TestGrowMovesThroughTheClasses(t *testing.T) {
	b := Get(1)
	var want []byte
	for i := 0; b.Len() < largestClass+1; i++ {
		b.Grow()
		free := b.Free()
		for j := range free {
			free[j] = byte(i + j)
		}
		want = append(want, free...)
		b.Grown(len(free))
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Fatal("content changed while growing")
	}
	b.Release()
}

func TestEraseZeroesTheMemory(t *testing.T) {
	b := Of([]byte("secret"))
	mem := b.mem
	b.Erase()
	if !b.Secret() {
		t.Fatal("not marked")
	}
	b.Grow()
	b.Wrap([]byte("h"), []byte("t"))
	b.Release()
	if bytes.Contains(mem, []byte("secret")) {
		t.Fatal("memory still holds the secret")
	}
}

func TestEraseFollowsAMove(t *testing.T) {
	b := Of(append([]byte("secret"), make([]byte, 4<<10-6)...))
	old := b.mem
	b.Append([]byte("more"))
	b.Erase() // only after the move, as for a message that was still being read
	if bytes.Contains(old, []byte("secret")) {
		t.Fatal("the memory left behind still holds the secret")
	}
	last := b.mem
	b.Release()
	if bytes.Contains(last, []byte("secret")) {
		t.Fatal("the mark was lost in the move")
	}
}

func TestMisuseIsCaught(t *testing.T) {
	for name, misuse := range map[string]func(b *Buffer){
		"released twice":     func(b *Buffer) { b.Release(); b.Release() },
		"kept too much":      func(b *Buffer) { b.Keep(1, b.Len()) },
		"kept before start":  func(b *Buffer) { b.Keep(-1, 1) },
		"grown past the end": func(b *Buffer) { b.Grown(len(b.Free()) + 1) },
		"header too long":    func(b *Buffer) { b.Framed(make([]byte, HeadRoom+1)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Fatal("not caught")
				}
			}()
			misuse(Of([]byte("x")))
		})
	}
}

// TestModel compares any sequence of operations with plain slices.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Get(rapid.IntRange(0, 70_000).Draw(t, "size"))
		var model []byte
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "op") {
			case 0:
				p := rapid.SliceOfN(rapid.Byte(), 0, 6000).Draw(t, "append")
				b.Append(p)
				model = append(model, p...)
			case 1:
				b.Grow()
				n := copy(b.Free(), bytes.Repeat([]byte{7}, rapid.IntRange(0, 5000).Draw(t, "grown")))
				b.Grown(n)
				model = append(model, bytes.Repeat([]byte{7}, n)...)
			case 2:
				at := rapid.IntRange(0, b.Len()).Draw(t, "at")
				n := rapid.IntRange(0, b.Len()-at).Draw(t, "n")
				b.Keep(at, n)
				model = model[at : at+n]
			case 3:
				head := rapid.SliceOfN(rapid.Byte(), 0, 600).Draw(t, "head")
				tail := rapid.SliceOfN(rapid.Byte(), 0, 600).Draw(t, "tail")
				b.Wrap(head, tail)
				model = append(append(append([]byte{}, head...), model...), tail...)
			case 4:
				b.Reset()
				model = nil
			}
			if !bytes.Equal(b.Bytes(), model) || b.Len() != len(model) {
				t.Fatalf("payload of %d bytes, want %d", b.Len(), len(model))
			}
			if b.start < headerRoom {
				t.Fatal("no room left for a frame header")
			}
		}
		b.Release()
	})
}

func TestPooledMemoryIsNotAllocatedAgain(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool drops at random under the race detector")
	}
	p := make([]byte, 3000)
	got := testing.AllocsPerRun(1000, func() { Of(p).Release() })
	if got > 1 { // the small header that Release puts around the memory
		t.Fatalf("%v allocations a message, want at most 1", got)
	}
}
