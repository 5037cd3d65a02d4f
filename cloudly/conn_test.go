package cloudly

import (
	"net"
	"slices"
	"sync"
	"time"
)

// counted is a connection that tells when it is closed.
type counted struct {
	net.Conn
	once   sync.Once
	closed func()
}

func (c *counted) Close() error {
	c.once.Do(c.closed)
	return c.Conn.Close()
}

// slowLeg delivers what is written after a time, in order.
type slowLeg struct {
	net.Conn
	late  time.Duration
	queue chan parcel
	ended chan struct{}
	once  sync.Once
}

type parcel struct {
	bytes []byte
	due   time.Time
}

func newSlowLeg(c net.Conn, late time.Duration) *slowLeg {
	l := &slowLeg{Conn: c, late: late, queue: make(chan parcel, 1024), ended: make(chan struct{})}
	go l.deliver()
	return l
}

func (l *slowLeg) deliver() {
	defer l.Conn.Close()
	for {
		select {
		case p := <-l.queue:
			select {
			case <-time.After(time.Until(p.due)):
			case <-l.ended:
				return
			}
			if _, err := l.Conn.Write(p.bytes); err != nil {
				return
			}
		case <-l.ended:
			return
		}
	}
}

func (l *slowLeg) Write(p []byte) (int, error) {
	select {
	case l.queue <- parcel{slices.Clone(p), time.Now().Add(l.late)}:
		return len(p), nil
	case <-l.ended:
		return 0, net.ErrClosed
	}
}

func (l *slowLeg) Close() error {
	l.once.Do(func() { close(l.ended) })
	return l.Conn.Close()
}

// SetWriteDeadline is the pipe's business, where a parcel waits for its reader.
func (l *slowLeg) SetWriteDeadline(time.Time) error { return nil }
