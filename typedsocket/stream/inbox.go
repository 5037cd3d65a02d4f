package stream

import "serve.zone/relay/typedsocket/buffer"

// inbox holds received bytes until they are read. Its memory stays in
// proportion to them: small frames are put together in one buffer, so that a
// peer which spends its credit in frames of one byte costs at most about twice
// the window, and not a buffer a byte.
type inbox struct {
	queue []*buffer.Buffer
	hand  *buffer.Buffer // what the call in progress reads from; only that call touches it
}

// put adds a buffer whose payload is to be read, takes ownership of it, and
// returns by how much the memory held has grown.
func (in *inbox) put(b *buffer.Buffer) int {
	if n := len(in.queue); n > 0 && b.Len() <= len(in.queue[n-1].Free()) {
		if b.Secret() {
			in.queue[n-1].Erase()
		}
		in.queue[n-1].Append(b.Bytes())
		b.Release()
		return 0
	}
	// A reader that met a small frame in a large buffer must not make us hold
	// the large one.
	if b.Size() > chunkMemory {
		small := buffer.Of(b.Bytes())
		if b.Secret() {
			small.Erase()
		}
		b.Release()
		b = small
	}
	in.queue = append(in.queue, b)
	return b.Size()
}

// next makes the first buffer of the queue the one in hand, if there is none,
// and returns its unread bytes: nil when nothing is left to read.
func (in *inbox) next() []byte {
	if in.hand == nil {
		if len(in.queue) == 0 {
			return nil
		}
		in.hand = in.queue[0]
		in.queue[0] = nil
		in.queue = in.queue[1:]
	}
	return in.hand.Bytes()
}

// read marks the first n unread bytes as read and returns the memory given back.
func (in *inbox) read(n int) int {
	if n < in.hand.Len() {
		in.hand.Keep(n, in.hand.Len()-n)
		return 0
	}
	size := in.hand.Size()
	in.hand.Release()
	in.hand = nil
	return size
}

// drop releases everything, except what is in hand while a call reads from it,
// and returns the memory given back.
func (in *inbox) drop(reading bool) (freed int) {
	for _, b := range in.queue {
		freed += b.Size()
		b.Release()
	}
	in.queue = nil
	if in.hand != nil && !reading {
		freed += in.hand.Size()
		in.hand.Release()
		in.hand = nil
	}
	return freed
}
