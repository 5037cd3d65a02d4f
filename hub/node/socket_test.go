package node

import (
	"net"
	"os"
	"syscall"
	"testing"
)

func TestPassing(t *testing.T) {
	for errno, want := range map[syscall.Errno]bool{
		syscall.ENETUNREACH: true, syscall.EHOSTUNREACH: true, syscall.ENETDOWN: true, syscall.EPERM: true,
		syscall.ENOBUFS: true, syscall.EADDRNOTAVAIL: true,
		// quic-go has to know of these: of segments, of the path, of the socket.
		syscall.EIO: false, syscall.EMSGSIZE: false, syscall.EINVAL: false, syscall.EBADF: false,
	} {
		err := &net.OpError{Op: "write", Err: os.NewSyscallError("sendmsg", errno)}
		if got := passing(err); got != want {
			t.Errorf("%v: %v", errno, got)
		}
	}
	if passing(net.ErrClosed) {
		t.Error("a closed socket passes")
	}
}
