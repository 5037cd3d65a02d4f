package hub

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The answer to SO_MEMINFO is nine numbers (linux/sock_diag.h, since Linux 4.12).
const (
	meminfoVars    = 9
	meminfoReceive = 1 // SK_MEMINFO_RCVBUF
	meminfoSend    = 3 // SK_MEMINFO_SNDBUF
	meminfoDrops   = 8 // SK_MEMINFO_DROPS
)

// inspect asks the kernel about a socket.
func inspect(conn syscall.RawConn) (s kernelSocket, err error) {
	var answer [meminfoVars]uint32
	var errno syscall.Errno
	err = conn.Control(func(fd uintptr) {
		size := uint32(unsafe.Sizeof(answer))
		_, _, errno = unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&answer)), uintptr(unsafe.Pointer(&size)), 0)
	})
	if err != nil {
		return kernelSocket{}, err
	}
	if errno != 0 {
		return kernelSocket{}, errno
	}
	return kernelSocket{
		receive: int(answer[meminfoReceive]), send: int(answer[meminfoSend]), dropped: answer[meminfoDrops],
	}, nil
}
