//go:build !failpoints

package failpoint

import (
	"context"
	"net"
	"time"
)

// Attach does nothing without the build tag.
func Attach() {}

// Reach does nothing without the build tag.
func Reach(Name) {}

// Wall returns the clock that it is given.
func Wall(_ Name, wall func() time.Time) func() time.Time { return wall }

// Dial returns the function that it is given.
func Dial(_ Name, dial func(ctx context.Context, network, address string) (net.Conn, error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	return dial
}

// Listen returns the function that it is given.
func Listen(_ Name, listen func(ctx context.Context, network, address string) (net.Listener, error)) func(ctx context.Context, network, address string) (net.Listener, error) {
	return listen
}
