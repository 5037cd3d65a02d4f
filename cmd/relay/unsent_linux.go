package main

import (
	"syscall"
)

// unsentLimit is how much of what was written to Cloudly the kernel may hold unsent.
// Beyond it writes wait, and the relay's own queue decides which node is next; the
// kernel's buffer, of some megabytes, knows no nodes, and on a slow path a flood of
// one would stand in it before everybody else's reports and pings. It is what a path
// of 10 Mbit/s takes in a tenth of a second.
const unsentLimit = 128 << 10

// tcpNotSentLowat is TCP_NOTSENT_LOWAT of tcp(7), which package syscall does not
// name.
const tcpNotSentLowat = 25

// boundUnsent is net.Dialer.Control. A kernel that does not know the option leaves
// the connection as it is.
func boundUnsent(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowat, unsentLimit)
	})
}
