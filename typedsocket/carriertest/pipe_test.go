package carriertest

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/nettest"
)

func TestAPipeIsAConnection(t *testing.T) {
	nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
		a, b := Pipe(4096)
		return a, b, func() { a.Close(); b.Close() }, nil
	})
}

func TestAPipeHoldsWhatWasWrittenBeforeTheClose(t *testing.T) {
	Bubble(t, func(t *testing.T) {
		a, b := Pipe(8)
		defer b.Close()
		if n, err := a.Write([]byte("last")); n != 4 || err != nil {
			t.Fatalf("write: %d, %v", n, err)
		}
		a.Close()
		if got, err := io.ReadAll(b); string(got) != "last" || err != nil {
			t.Errorf("read: %q, %v", got, err)
		}
		if _, err := b.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write to an end that was closed: %v", err)
		}
	})
}

func TestAFullPipeWaitsUntilItsDeadline(t *testing.T) {
	Bubble(t, func(t *testing.T) {
		a, b := Pipe(8)
		defer a.Close()
		defer b.Close()
		began := time.Now()
		a.SetWriteDeadline(began.Add(time.Second))
		n, err := a.Write([]byte("nine bytes"))
		if n != 8 || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%d bytes, %v, after %s", n, err, time.Since(began))
		}
		a.SetWriteDeadline(time.Time{})
		go io.CopyN(io.Discard, b, 10)
		if n, err := a.Write([]byte("xx")); n != 2 || err != nil {
			t.Errorf("after somebody read: %d, %v", n, err)
		}
	})
}
