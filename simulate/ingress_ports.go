package simulate

import (
	"io"
	"net"
	"strconv"
	"sync"
)

// ServePort forwards the connections of a listener as the port route of this TCP
// port says, in the table that is held when they come, until Close, which closes
// it. Nothing is terminated, and nothing is counted: counters are a hostname's
// (contract §11.4). A connection to a port that no route names is closed. UDP is
// not forwarded.
func (i *Ingress) ServePort(port int, l net.Listener) error {
	return i.web.accept(l, func(c *clientConn) {
		defer c.Close()
		i.web.forward(int64(port), c)
	})
}

// portRoute returns the destinations of a TCP port.
func (i *Ingress) portRoute(port int64) ([]string, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.table == nil {
		return nil, false
	}
	to, ok := i.table.ports[port]
	return to, ok
}

func (w *web) forward(port int64, c *clientConn) {
	to, ok := w.i.portRoute(port)
	if !ok {
		w.refuse(func(r *ClientRefusals) { r.NoRoute++ })
		return
	}
	for _, destination := range w.next("tcp "+strconv.FormatInt(port, 10), to) {
		if backend, err := w.dial(w.ended, "tcp", destination); err == nil {
			join(c, backend)
			return
		}
	}
}

// join copies in both directions until both have ended, or one has broken.
func join(c *clientConn, backend net.Conn) {
	defer backend.Close()
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		_, err := io.Copy(to, from)
		half, ok := to.(interface{ CloseWrite() error })
		if err != nil || !ok || half.CloseWrite() != nil {
			to.Close()
			from.Close()
		}
	}
	both.Go(func() { pass(backend, c) })
	pass(c, backend)
	both.Wait()
}
