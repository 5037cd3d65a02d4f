//go:build failpoints

package failpoint

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"serve.zone/relay/duty/failpoint/control"
)

// attachWait bounds the connection to it. Who waits there is on the same machine.
const attachWait = 10 * time.Second

// points is the state of this process. It is the one such state that the program
// has, since a place in the code has nobody to be given it by.
var points = func() *control.Points {
	var names []string
	for _, n := range Names() {
		names = append(names, string(n))
	}
	return control.New(names...)
}()

// Attach connects to whoever is named by Variable, and does what is asked for there
// until that socket ends. A program that is to be attached and cannot be ends.
func Attach() {
	path := os.Getenv(Variable)
	if path == "" {
		return
	}
	conn, err := net.DialTimeout("unix", path, attachWait)
	if err != nil {
		fmt.Fprintln(os.Stderr, "failpoints: attach:", err)
		os.Exit(2)
	}
	go points.Serve(conn)
}

// Reach marks a place, where a goroutine waits when that is asked for.
func Reach(place Name) { points.Reach(string(place)) }

// Wall returns the clock, as far off as is asked for.
func Wall(_ Name, wall func() time.Time) func() time.Time {
	return func() time.Time { return points.Now(wall()) }
}

// Dial returns a dialler of connections that can be cut and stalled.
func Dial(conns Name, dial func(ctx context.Context, network, address string) (net.Conn, error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return points.Conn(string(conns), conn), nil
	}
}

// Listen returns a listener of such connections.
func Listen(conns Name, listen func(ctx context.Context, network, address string) (net.Listener, error)) func(ctx context.Context, network, address string) (net.Listener, error) {
	return func(ctx context.Context, network, address string) (net.Listener, error) {
		l, err := listen(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return points.Listener(string(conns), l), nil
	}
}
