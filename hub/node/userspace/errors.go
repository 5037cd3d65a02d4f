package userspace

import (
	"errors"
	"net"
	"os"
	"syscall"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// errnos are the errors of gVisor that say why nobody could be reached, by their texts:
// its package gonet passes on nothing else of them.
var errnos = map[string]syscall.Errno{
	(&tcpip.ErrConnectionRefused{}).String():  syscall.ECONNREFUSED,
	(&tcpip.ErrHostUnreachable{}).String():    syscall.EHOSTUNREACH,
	(&tcpip.ErrNetworkUnreachable{}).String(): syscall.ENETUNREACH,
	(&tcpip.ErrTimeout{}).String():            syscall.ETIMEDOUT,
}

// asOfSystem gives an error of a dial the cause that the system's would have, where there
// is one, for those who tell causes apart with errors.Is.
func asOfSystem(err error) error {
	var dial *net.OpError
	if !errors.As(err, &dial) || dial.Err == nil {
		return err
	}
	if errno, ok := errnos[dial.Err.Error()]; ok {
		dial.Err = os.NewSyscallError("connect", errno)
	}
	return err
}
