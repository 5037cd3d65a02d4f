package queue

import "slices"

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
	i := slices.IndexFunc(f.items[f.head:], func(item Item) bool { return item.Owner == owner })
	if i < 0 {
		return Item{}, false
	}
	item := f.items[f.head+i]
	f.items = slices.Delete(f.items, f.head+i, f.head+i+1)
	f.bytes -= item.Buf.Size()
	return item, true
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
