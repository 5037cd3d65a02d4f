package hub

import (
	"net"
	"sync"
	"syscall"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// wantedBuffer is what QUIC asks of the kernel for the hub's socket, in each direction
// and in bytes (quic-go 0.65). As Linux counts, any packet from 1,000 bytes on takes 2,304,
// so that 3,185 find room: what comes in 45 ms at 70,000 a second. The hints below say it
// in full: they are constants.
const wantedBuffer = 7 << 20

// recently is for how long a drop is advice: longer than anybody takes between two looks
// at the checks.
const recently = time.Minute

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
	at      time.Time    // of the look that counted the last of them
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
		if lost > 0 {
			w.at = time.Now()
		}
	}
	if !w.known {
		return nil
	}
	return &Socket{
		ReceiveBuffer: w.last.receive, SendBuffer: w.last.send, WantedBuffer: wantedBuffer, DroppedPackets: w.dropped,
		dropping: w.dropped > 0 && time.Since(w.at) < recently,
	}
}

// judge fills a check in: whether the kernel gave the buffers that were asked for, and
// whether they are enough.
func (s *Socket) judge(c *duty.Check) {
	if s == nil {
		return
	}
	shortIn, shortOut := s.ReceiveBuffer < wantedBuffer, s.SendBuffer < wantedBuffer
	why := "socket-buffer-small"
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
	case s.dropping:
		why = "socket-overrun"
		c.Hint = "Packets come faster than the relay reads them, and the kernel dropped some within the last minute. " +
			"The buffer is as large as it asks for: it needs more of the processors, or members that send less."
	default:
		return
	}
	c.State, c.Reason = duty.Failing, why
	c.Facts = field.List{field.Bytes(min(s.ReceiveBuffer, s.SendBuffer)), field.Limit(wantedBuffer), field.Count(s.DroppedPackets)}
}
