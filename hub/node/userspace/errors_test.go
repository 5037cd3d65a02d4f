package userspace

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// A port on which nobody listens refuses, as the system's do.
func TestDialRefused(t *testing.T) {
	s, err := New(workload)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	to := net.JoinHostPort(workload.String(), "81")
	conn, err := s.DialContext(t.Context(), "tcp", to)
	if err == nil {
		conn.Close()
		t.Fatal("somebody answered")
	}
	var dial *net.OpError
	if !errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, &dial) || dial.Addr.String() != to {
		t.Errorf("%#v", err)
	}
}

// Whatever else gVisor says stays as it is.
func TestErrorsOfGVisor(t *testing.T) {
	for _, test := range []struct {
		err  tcpip.Error
		want error
	}{
		{&tcpip.ErrConnectionRefused{}, syscall.ECONNREFUSED},
		{&tcpip.ErrHostUnreachable{}, syscall.EHOSTUNREACH},
		{&tcpip.ErrNetworkUnreachable{}, syscall.ENETUNREACH},
		{&tcpip.ErrTimeout{}, syscall.ETIMEDOUT},
		{&tcpip.ErrConnectionAborted{}, nil},
	} {
		got := asOfSystem(&net.OpError{Op: "connect", Net: "tcp", Err: errors.New(test.err.String())})
		var errno error
		if e := syscall.Errno(0); errors.As(got, &e) {
			errno = e
		}
		if errno != test.want {
			t.Errorf("%s became %v, want %v", test.err, got, test.want)
		}
	}
	if plain := errors.New("connection was refused"); asOfSystem(plain) != plain {
		t.Error("an error that is no dial's was changed")
	}
}
