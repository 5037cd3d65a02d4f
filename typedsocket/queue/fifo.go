package queue

// fifo is a first-in first-out list of frames that counts their memory.
type fifo struct {
	items []Item
	head  int // items before it have left
	bytes int // memory of the waiting items
}

func (f *fifo) len() int { return len(f.items) - f.head }

func (f *fifo) front() *Item { return &f.items[f.head] }

func (f *fifo) push(item Item) {
	// Without this a list that never runs empty would grow for ever.
	if f.head > 32 && f.head*2 > len(f.items) {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, item)
	f.bytes += item.Buf.Size()
}

// withdraw takes an owner's item out from between the others.
func (f *fifo) withdraw(owner any) (Item, bool) {
	for i := f.head; i < len(f.items); i++ {
		item := f.items[i]
		if item.Owner != owner {
			continue
		}
		last := len(f.items) - 1
		copy(f.items[i:], f.items[i+1:])
		f.items[last] = Item{}
		f.items = f.items[:last]
		f.bytes -= item.Buf.Size()
		return item, true
	}
	return Item{}, false
}

func (f *fifo) pop() Item {
	item := f.items[f.head]
	f.items[f.head] = Item{}
	f.head++
	f.bytes -= item.Buf.Size()
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	}
	return item
}
