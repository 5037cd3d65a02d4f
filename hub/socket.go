package hub

import (
	"net"
	"sync"
	"syscall"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// wantedBuffer is what QUIC asks of the kernel for the hub's socket, in each direction
// and in bytes (quic-go 0.65, 7 MiB). As the kernel counts, a packet of 1,280 bytes
// takes 2 KiB, so that it is what comes in 50 ms at 70,000 packets a second. The hints
// below say it in full: they are constants.
const wantedBuffer = 7 << 20

// kernelSocket is what the kernel says of a socket.
type kernelSocket struct {
	receive, send int    // bytes of its buffers, what the kernel adds for itself included
	dropped       uint32 // datagrams that came and had no room, modulo 2^32
}

// socketWatch looks at what the kernel does with the hub's socket. The zero value
// watches none.
type socketWatch struct {
	mu      sync.Mutex // guards what follows; a leaf
	conn    syscall.RawConn
	known   bool         // the kernel has said it at least once
	last    kernelSocket // as it was said last
	dropped uint64       // that have been counted
}

// watch begins to watch a socket, where the system has an answer.
func (w *socketWatch) watch(socket net.PacketConn) {
	c, ok := socket.(syscall.Conn)
	if !ok {
		return
	}
	conn, err := c.SyscallConn()
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn = conn
}

// look asks the kernel, and tells counted how many datagrams it has dropped since the
// last look. Once the socket is closed it returns what was said last.
func (w *socketWatch) look(counted *duty.Counter) (s *Socket) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn == nil {
		return nil
	}
	if now, err := inspect(w.conn); err == nil {
		lost := now.dropped - w.last.dropped
		w.known, w.last, w.dropped = true, now, w.dropped+uint64(lost)
		counted.Add(uint64(lost))
	}
	if !w.known {
		return nil
	}
	return &Socket{
		ReceiveBuffer: w.last.receive, SendBuffer: w.last.send, WantedBuffer: wantedBuffer, DroppedPackets: w.dropped,
	}
}

// judge fills a check in: whether the kernel gave the buffers that were asked for.
func (s *Socket) judge(c *duty.Check) {
	if s == nil {
		return
	}
	shortIn, shortOut := s.ReceiveBuffer < wantedBuffer, s.SendBuffer < wantedBuffer
	switch {
	case shortIn && shortOut:
		c.Hint = "The kernel gives the hub's socket less buffer than it asks for, and drops packets that come in a burst. " +
			"Run sysctl -w net.core.rmem_max=7340032 net.core.wmem_max=7340032 on the host, keep it in /etc/sysctl.d, and restart the relay."
	case shortIn:
		c.Hint = "The kernel gives the hub's socket less receive buffer than it asks for, and drops packets that come in a burst. " +
			"Run sysctl -w net.core.rmem_max=7340032 on the host, keep it in /etc/sysctl.d, and restart the relay."
	case shortOut:
		c.Hint = "The kernel gives the hub's socket less send buffer than it asks for. " +
			"Run sysctl -w net.core.wmem_max=7340032 on the host, keep it in /etc/sysctl.d, and restart the relay."
	default:
		return
	}
	c.State, c.Reason = duty.Failing, "socket-buffer-small"
	c.Facts = field.List{field.Bytes(min(s.ReceiveBuffer, s.SendBuffer)), field.Limit(wantedBuffer), field.Count(s.DroppedPackets)}
}
