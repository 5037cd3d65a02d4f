package typedsocket

import (
	"serve.zone/relay/typedsocket/buffer"
	"serve.zone/relay/typedsocket/queue"
)

// carrier is a socket as its streams see it (stream.Carrier). A stream's bytes
// are a flow of their own, so a closure delays a report by one chunk at most.
type carrier Socket

// streamFlow sets the flows of streams apart from those the socket's owner
// names: no node id contains a slash (contract §2.1).
const streamFlow = "stream/"

// Control queues a frame among the own frames.
func (c *carrier) Control(b *buffer.Buffer) error {
	return c.enqueue("", queue.Item{Buf: b, Binary: true})
}

// Bulk queues a frame of a stream.
func (c *carrier) Bulk(flow string, b *buffer.Buffer, sent func()) error {
	item := queue.Item{Buf: b, Binary: true}
	if sent != nil {
		item.Sent = func(bool) { sent() }
	}
	return c.enqueue(streamFlow+flow, item)
}

func (c *carrier) enqueue(flow string, item queue.Item) error {
	err := (*Socket)(c).push(flow, item)
	if err != nil {
		item.Buf.Release()
	}
	return err
}
