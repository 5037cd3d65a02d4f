package listener

import (
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// wireRoom is what each direction of a wire holds, as a kernel's buffers do.
const wireRoom = 16 << 10

// newWire returns the two ends of a connection in memory. Unlike net.Pipe it
// has buffers, so that a goodbye can be left behind.
func newWire() (a, b *wireEnd) {
	one, other := newDirection(), newDirection()
	return &wireEnd{in: one, out: other}, &wireEnd{in: other, out: one}
}

type wireEnd struct{ in, out *direction }

func (e *wireEnd) Read(p []byte) (int, error)  { return e.in.read(p) }
func (e *wireEnd) Write(p []byte) (int, error) { return e.out.write(p) }
func (e *wireEnd) Close() error {
	e.in.change(func(d *direction) { d.abandoned, d.data = true, nil })
	e.out.change(func(d *direction) { d.ended = true })
	return nil
}
func (e *wireEnd) SetReadDeadline(t time.Time) error {
	e.in.change(func(d *direction) { d.readBy = t })
	return nil
}
func (e *wireEnd) SetWriteDeadline(t time.Time) error {
	e.out.change(func(d *direction) { d.writeBy = t })
	return nil
}
func (e *wireEnd) SetDeadline(t time.Time) error { e.SetReadDeadline(t); return e.SetWriteDeadline(t) }
func (e *wireEnd) LocalAddr() net.Addr           { return &net.IPAddr{} }
func (e *wireEnd) RemoteAddr() net.Addr          { return &net.IPAddr{} }

// direction is one direction of a wire.
type direction struct {
	mu              sync.Mutex
	changed         chan struct{} // closed at the next change
	data            []byte
	ended           bool // the writer has closed
	abandoned       bool // the reader has closed
	readBy, writeBy time.Time
}

func newDirection() *direction { return &direction{changed: make(chan struct{})} }

func (d *direction) change(f func(*direction)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
	close(d.changed)
	d.changed = make(chan struct{})
}

// wait lets go of the lock until something changes, or a deadline passes.
func (d *direction) wait(by time.Time) {
	changed := d.changed
	d.mu.Unlock()
	defer d.mu.Lock()
	if by.IsZero() {
		<-changed
		return
	}
	timer := time.NewTimer(time.Until(by))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	}
}

func passed(by time.Time) bool { return !by.IsZero() && !time.Now().Before(by) }

func (d *direction) read(p []byte) (n int, err error) {
	d.mu.Lock()
	for ; ; d.wait(d.readBy) {
		switch {
		case d.abandoned:
			err = net.ErrClosed
		case passed(d.readBy):
			err = os.ErrDeadlineExceeded
		case len(d.data) > 0:
			n = copy(p, d.data)
			d.data = d.data[n:]
		case d.ended:
			err = io.EOF
		default:
			continue
		}
		break
	}
	d.mu.Unlock()
	if n > 0 {
		d.change(func(*direction) {})
	}
	return n, err
}

func (d *direction) write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		d.mu.Lock()
		for d.writable() && len(d.data) == wireRoom {
			d.wait(d.writeBy)
		}
		switch {
		case d.ended:
			err = net.ErrClosed
		case passed(d.writeBy):
			err = os.ErrDeadlineExceeded
		case d.abandoned:
			err = io.ErrClosedPipe
		}
		d.mu.Unlock()
		if err == nil {
			d.change(func(d *direction) {
				part := p[n:min(len(p), n+wireRoom-len(d.data))]
				d.data = append(d.data, part...)
				n += len(part)
			})
		}
	}
	return n, err
}

func (d *direction) writable() bool { return !d.ended && !d.abandoned && !passed(d.writeBy) }

// The wire is itself tested: a fake that is wrong hides what it should show.
func TestWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newWire()
		a.SetWriteDeadline(time.Now().Add(time.Second))
		if n, err := a.Write(make([]byte, wireRoom+5)); n != wireRoom || err != os.ErrDeadlineExceeded {
			t.Errorf("write into a full wire: %d %v", n, err)
		}
		a.SetWriteDeadline(time.Time{})
		go a.Write(make([]byte, 10))
		if n, err := io.ReadFull(b, make([]byte, wireRoom+10)); err != nil {
			t.Errorf("read: %d %v", n, err)
		}
		go func() {
			time.Sleep(time.Minute)
			b.SetReadDeadline(time.Unix(1, 0))
		}()
		if _, err := b.Read(make([]byte, 1)); err != os.ErrDeadlineExceeded {
			t.Errorf("interrupted read: %v", err)
		}
		b.SetReadDeadline(time.Time{})
		a.Write([]byte("last"))
		a.Close()
		if got, err := io.ReadAll(b); string(got) != "last" || err != nil {
			t.Errorf("after the end: %q %v", got, err)
		}
		if _, err := b.Write([]byte("x")); err != io.ErrClosedPipe {
			t.Errorf("write to who has gone: %v", err)
		}
		b.Close()
		for _, err := range []error{second(a.Read(nil)), second(a.Write([]byte("x")))} {
			if err != net.ErrClosed {
				t.Errorf("after one's own end: %v", err)
			}
		}
	})
}

func second(_ int, err error) error { return err }
