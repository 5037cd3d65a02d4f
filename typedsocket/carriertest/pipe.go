package carriertest

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Pipe returns the two ends of a connection that holds size bytes in each
// direction, as the kernel does for a socket. What was written before a Close
// can still be read behind it. TLS needs that: its last words are written to a
// peer that may read no more, and over net.Pipe they would wait for their
// deadline.
func Pipe(size int) (net.Conn, net.Conn) {
	there, back := newHalf(size), newHalf(size)
	return &end{in: back, out: there}, &end{in: there, out: back}
}

// half is one direction of a Pipe.
type half struct {
	size int

	mu      sync.Mutex
	changed *sync.Cond
	held    []byte
	done    bool // the writer has closed: an end after what is held
	broken  bool // the reader has closed: nothing can be written
	reads   deadline
	writes  deadline
}

// deadline is a time after which an operation fails.
type deadline struct {
	timer  *time.Timer
	passed bool
}

func newHalf(size int) *half {
	h := &half{size: size}
	h.changed = sync.NewCond(&h.mu)
	return h
}

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.broken:
			return 0, net.ErrClosed
		case h.reads.passed:
			return 0, os.ErrDeadlineExceeded
		case len(h.held) > 0:
			n := copy(p, h.held)
			h.held = h.held[n:]
			h.changed.Broadcast()
			return n, nil
		case h.done:
			return 0, io.EOF
		case len(p) == 0:
			return 0, nil
		}
		h.changed.Wait()
	}
}

func (h *half) write(p []byte) (written int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.done:
			return written, net.ErrClosed
		case h.broken:
			return written, syscall.EPIPE
		case h.writes.passed:
			return written, os.ErrDeadlineExceeded
		case len(p) == 0:
			return written, nil
		}
		if n := min(len(p), h.size-len(h.held)); n > 0 {
			h.held = append(h.held, p[:n]...)
			p, written = p[n:], written+n
			h.changed.Broadcast()
			continue
		}
		h.changed.Wait()
	}
}

// set sets a deadline of this direction.
func (h *half) set(d *deadline, t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	wait := time.Until(t)
	d.passed = !t.IsZero() && wait <= 0
	if !t.IsZero() && wait > 0 {
		var timer *time.Timer
		timer = time.AfterFunc(wait, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			if d.timer == timer {
				d.passed = true
				h.changed.Broadcast()
			}
		})
		d.timer = timer
	}
	h.changed.Broadcast()
}

// finish ends the direction from its writer's side, or from its reader's.
func (h *half) finish(writer bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := &h.reads
	if writer {
		h.done, d = true, &h.writes
	} else {
		h.broken, h.held = true, nil
	}
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	h.changed.Broadcast()
}

// end is one end of a Pipe.
type end struct{ in, out *half }

func (e *end) Read(p []byte) (int, error)  { return e.in.read(p) }
func (e *end) Write(p []byte) (int, error) { return e.out.write(p) }

func (e *end) Close() error {
	e.out.finish(true)
	e.in.finish(false)
	return nil
}

func (e *end) LocalAddr() net.Addr  { return pipeAddr{} }
func (e *end) RemoteAddr() net.Addr { return pipeAddr{} }

func (e *end) SetDeadline(t time.Time) error {
	e.in.set(&e.in.reads, t)
	e.out.set(&e.out.writes, t)
	return nil
}

func (e *end) SetReadDeadline(t time.Time) error  { e.in.set(&e.in.reads, t); return nil }
func (e *end) SetWriteDeadline(t time.Time) error { e.out.set(&e.out.writes, t); return nil }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
