package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"serve.zone/relay/duty/field"
	"serve.zone/relay/hub/tunnel"
)

const (
	// deviceRoom is the memory of each packet of a batch. A TUN joins TCP packets of one
	// flow in that of the first one, up to the longest IP packet.
	deviceRoom = Headroom + 1<<16

	// readRoom is that of each packet read from a device: one that is longer than any
	// inner MTU is read whole, to be counted and dropped.
	readRoom = Headroom + 2048

	// maxDeviceErrors is how many reads of a device may fail in a row.
	maxDeviceErrors = 100
)

// readDevice moves packets from the device to the queue of the tunnel, until the device is
// closed. It waits for nothing else. Unless ctx has ended, that ends the client.
func (c *Client) readDevice(ctx context.Context) {
	batch := c.device.BatchSize()
	memory := make([]byte, batch*readRoom)
	bufs, sizes := make([][]byte, batch), make([]int, batch)
	for i := range bufs {
		bufs[i] = memory[i*readRoom : (i+1)*readRoom : (i+1)*readRoom]
	}
	failures := 0
	for {
		n, err := c.device.Read(bufs, sizes, Headroom)
		for i := range n {
			c.offer(bufs[i][Headroom : Headroom+sizes[i]])
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			failures = 0
			continue
		}
		c.traffic.deviceErrors.Add(1)
		failures++
		if errors.Is(err, os.ErrClosed) || failures > maxDeviceErrors {
			c.fail(fmt.Errorf("%w: %w", ErrDevice, err))
			return
		}
		c.log.Debug("node-device-read-failed", field.Error(err))
	}
}

// offer queues one packet for the tunnel, or drops it.
func (c *Client) offer(packet []byte) {
	mtu := int(c.mtu.Load())
	switch {
	case mtu == 0:
		c.traffic.drop(DropOutNoTunnel, 1)
	case len(packet) < tunnel.MinPacket || len(packet) > mtu:
		c.traffic.drop(DropOutLength, 1)
	case packet[0]>>4 != 4:
		c.traffic.drop(DropOutNotIPv4, 1)
	case !c.out.push(packet):
		c.traffic.drop(DropOutQueueFull, 1)
	}
}

// send hands to QUIC what waits, until the connection ends. QUIC makes it wait while its
// own queue is full.
func (l *link) send() {
	packet := make([]byte, tunnel.MaxInnerMTU)
	out := l.client.out
	for {
		for n := out.pop(packet); n > 0; n = out.pop(packet) {
			if !l.sender.send(packet[:n]) {
				return
			}
		}
		select {
		case <-out.wake:
		case <-l.conn.Context().Done():
			return
		}
	}
}

// sender hands packets to QUIC. It belongs to one goroutine.
type sender struct {
	lane interface {
		SendDatagram(datagram []byte) error
	}
	limit    *atomic.Int64 // bytes that a datagram holds, as QUIC said last
	traffic  *traffic
	splitter *tunnel.Splitter
	bufs     [2][]byte
}

// mostTries is how often a packet is cut anew because the path has become smaller
// meanwhile; it hardly does so twice in a row.
const mostTries = 3

// send hands one packet to QUIC, whole or in two parts as the path takes it. It returns
// false when the connection has ended.
func (s *sender) send(packet []byte) (alive bool) {
	for range mostTries {
		first, second, err := s.splitter.Split(packet, int(s.limit.Load()), &s.bufs)
		if err != nil {
			break
		}
		err = s.lane.SendDatagram(first)
		if err == nil && second != nil {
			err = s.lane.SendDatagram(second)
		}
		if err == nil {
			s.traffic.outPackets.Add(1)
			s.traffic.outBytes.Add(uint64(len(packet)))
			if second != nil {
				s.traffic.outSplit.Add(1)
			}
			return true
		}
		size, shrunk := tooLarge(err)
		if !shrunk {
			s.traffic.drop(DropOutLost, 1)
			return false
		}
		// If the first part has left, the two that would be cut now are as long as before,
		// and do not fit either.
		s.limit.Store(size)
	}
	s.traffic.drop(DropOutPath, 1)
	return true
}

// receive takes the datagrams of the connection until it ends. It waits for nothing else:
// QUIC drops what is not read in time, without a count.
func (l *link) receive() {
	var scratch [tunnel.MaxInnerMTU]byte
	for {
		datagram, err := l.conn.ReceiveDatagram(context.Background()) // the connection ends it
		if err != nil {
			return
		}
		l.checker.came.Add(1)
		l.client.take(l.joiner, datagram, &scratch, time.Now())
	}
}

// take queues for the device the packet that a datagram completes, if any.
func (c *Client) take(joiner *tunnel.Joiner, datagram []byte, scratch *[tunnel.MaxInnerMTU]byte, now time.Time) {
	packet, result := joiner.Take(datagram, scratch, now)
	if result.Refused() {
		c.traffic.refused[result].Add(1)
	}
	if result == tunnel.JoinJoined {
		c.traffic.inJoined.Add(1)
	}
	if packet == nil {
		return
	}
	if of, ok := c.mark.answers(packet); ok {
		c.traffic.echoes[of].Add(1)
	} else if !c.in.push(packet) {
		c.traffic.drop(DropInQueueFull, 1)
	}
}

// writeDevice moves packets from the queue to the device, in batches of what waits.
func (c *Client) writeDevice(ctx context.Context) {
	batch := min(c.device.BatchSize(), maxBatch)
	memory := make([]byte, batch*deviceRoom)
	bufs := make([][]byte, 0, batch)
	for {
		bufs = bufs[:0]
		bytes := 0
		for i := range batch {
			room := memory[i*deviceRoom : (i+1)*deviceRoom : (i+1)*deviceRoom]
			n := c.in.pop(room[Headroom:])
			if n == 0 {
				break
			}
			bytes += n
			bufs = append(bufs, room[:Headroom+n])
		}
		if len(bufs) > 0 {
			if _, err := c.device.Write(bufs, Headroom); err != nil {
				c.traffic.drop(DropInDevice, uint64(len(bufs)))
			} else {
				c.traffic.inPackets.Add(uint64(len(bufs)))
				c.traffic.inBytes.Add(uint64(bytes))
			}
			if ctx.Err() != nil {
				return
			}
			continue
		}
		select {
		case <-c.in.wake:
		case <-ctx.Done():
			return
		}
	}
}
