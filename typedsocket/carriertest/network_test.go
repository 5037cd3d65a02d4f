package carriertest

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDialReachesAccept(t *testing.T) {
	Bubble(t, func(t *testing.T) {
		n := NewNetwork()
		defer n.Close()
		go func() {
			far, err := n.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			io.WriteString(far, "hello")
			far.Close()
		}()
		near, err := n.Dial(t.Context(), "tcp", "anywhere")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(near); err != nil || string(got) != "hello" {
			t.Fatalf("%q, %v", got, err)
		}
	})
}

func TestDialEndsWithItsContextAndWithTheNetwork(t *testing.T) {
	Bubble(t, func(t *testing.T) {
		n := NewNetwork()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Dial(ctx, "", ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nobody accepts: %v", err)
		}
		n.Close()
		n.Close()
		if _, err := n.Dial(t.Context(), "", ""); !errors.Is(err, net.ErrClosed) {
			t.Errorf("dial: %v", err)
		}
		if _, err := n.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept: %v", err)
		}
	})
}
