package tunnel

// A window remembers which counters of one epoch have been seen (RFC 6479):
// a ring of blocks, so that moving on clears whole blocks and shifts nothing.
// It is no lock's owner; callers ask it only about packets that opened.
type window struct {
	next   uint64 // one above the highest counter seen
	blocks [windowBlocks]uint64
}

const (
	// windowBlocks is a power of two. The ring holds one block more than the
	// span, since the newest block is rarely full.
	windowBlocks = 128

	// windowSpan is how far below the newest a counter may be: more than
	// 2,048 (design §5.2), and at 800 thousand packets/s 10 ms.
	windowSpan = (windowBlocks - 1) * 64
)

// see marks a counter and reports whether it is new. One that is too far below
// the newest may have been seen.
func (w *window) see(counter uint64) OpenResult {
	block := counter / 64
	switch {
	case counter >= w.next:
		// Blocks between the newest one so far and this one hold counters that
		// nobody has seen; a jump over the whole ring clears each once.
		from := (w.next + 63) / 64
		if block >= windowBlocks {
			from = max(from, block-windowBlocks+1)
		}
		for b := from; b <= block; b++ {
			w.blocks[b%windowBlocks] = 0
		}
		w.next = counter + 1
	case w.next-counter > windowSpan:
		return OpenTooOld
	}
	bit := uint64(1) << (counter % 64)
	at := &w.blocks[block%windowBlocks]
	if *at&bit != 0 {
		return OpenReplayed
	}
	*at |= bit
	return OpenNew
}
