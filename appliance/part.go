package appliance

import (
	"context"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/forward"
	"serve.zone/relay/listener"
	"serve.zone/relay/typedsocket"
)

// part is one duty with the ends by which it is joined to the others. A new duty
// is a folder of its own and one part in duties. All ends but the duty itself may
// be left out.
type part struct {
	duty    duty.Duty
	metrics *duty.Metrics

	// run does the duty's standing work until the context ends. An error of its
	// own accord ends the relay.
	run func(ctx context.Context) error
	// suspend is told that custody is about to end on this socket to Cloudly, on
	// whichever goroutine read so: nothing of what is held leaves any more. It must
	// neither block nor call anything but the duty. DropCustody follows, or lost.
	suspend func(sock *typedsocket.Socket)

	// behindNodes says that the duty is drained once the sockets of all nodes are
	// closed, and not beside them (design §8).
	behindNodes bool
	// quiesce tells that the relay is about to end, before the first node's socket
	// is closed. It must not block; the duty's Drain follows.
	quiesce func()

	// reload reads files again, as on SIGHUP. It may wait for a file system.
	reload func()

	// serves are the methods of Cloudly that have the relay as their endpoint
	// (contract §8.4), as served on the registered socket.
	serves map[string]func(*typedsocket.Request)
	// routes are what it serves on the node listener.
	routes []listener.Route
	// pulls run after every accepted registration (contract §5.6, step 9).
	pulls []func(ctx context.Context, sock *typedsocket.Socket) error

	// What follows is told in the order of the parts, under the rules of
	// cloudly.Hooks and forward.Config: nothing of it may block. A panic in bound
	// or unbound is logged and keeps nobody else from being told; one in the
	// others ends the relay.
	registered func(sock *typedsocket.Socket, accepted cloudly.Accepted)
	lost       func(why error)
	configured func(contract.ClusterConfiguration)
	bound      func(forward.Binding)
	unbound    func(nodeID string)
}
