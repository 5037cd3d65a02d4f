package node

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// A queue gives what was put in, in order, and takes as much as it has room for: as a slow
// one does that is a slice.
func TestQueueIsASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const room = 100
		q := newQueue(room)
		var slow [][]byte
		used := 0
		dst := make([]byte, room)
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				p := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "packet")
				fits := used+len(p)+lengthSize <= room
				if q.push(p) != fits {
					t.Fatalf("push of %d bytes beside %d: %v", len(p), used, !fits)
				}
				if fits {
					slow = append(slow, p)
					used += len(p) + lengthSize
				}
			},
			"pop": func(t *rapid.T) {
				n := q.pop(dst)
				if len(slow) == 0 {
					if n != 0 {
						t.Fatalf("popped %d bytes of nothing", n)
					}
					return
				}
				if !bytes.Equal(dst[:n], slow[0]) {
					t.Fatalf("popped %x, want %x", dst[:n], slow[0])
				}
				used -= n + lengthSize
				slow = slow[1:]
			},
			"clear": func(t *rapid.T) {
				if !rapid.Bool().Draw(t, "really") {
					return
				}
				if got := q.clear(); got != uint64(len(slow)) {
					t.Fatalf("cleared %d, want %d", got, len(slow))
				}
				slow, used = nil, 0
			},
			"": func(t *rapid.T) {
				if q.bytes() != used {
					t.Fatalf("%d bytes wait, want %d", q.bytes(), used)
				}
			},
		})
	})
}

func TestQueueIsFilledToTheLastByte(t *testing.T) {
	q := newQueue(20)
	for range 2 {
		if !q.push(make([]byte, 8)) {
			t.Fatal("no room for a packet that fits")
		}
	}
	if q.bytes() != 20 || q.push(nil) {
		t.Errorf("%d bytes wait, and there is room for more", q.bytes())
	}
}

func TestQueueWakes(t *testing.T) {
	q := newQueue(100)
	q.push([]byte{1})
	q.push([]byte{2})
	select {
	case <-q.wake:
	default:
		t.Error("nobody was woken")
	}
}
