package hub_test

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"
	"time"

	"serve.zone/relay/integration/impair"
)

// smallPath is a path of 1,280 bytes over IPv4, clean otherwise: UDP payloads end at 1,252.
var smallPath = impair.Path{MaxDatagram: 1280 - 28}

// badPath loses, repeats, reorders and corrupts a few datagrams in a hundred.
var badPath = impair.Path{
	Loss: 0.02, Duplication: 0.03, Reordering: 0.05, Corruption: 0.02,
	Delay: time.Millisecond, Jitter: time.Millisecond, ReorderBy: 5 * time.Millisecond,
}

// over is a pair of members that may send each other, joined over paths of a kind.
func over(c *cluster, path impair.Path) (a, b *member) {
	c.t.Helper()
	c.admit()
	c.admit()
	c.grant([2]int{0, 1}, [2]int{1, 0})
	c.push()
	c.path = path
	return c.joined(0), c.joined(1)
}

// shownMember is what the hub shows of a member, as far as these tests look.
type shownMember struct {
	Node      string  `json:"node"`
	Sessions  uint64  `json:"sessions"`
	ToPackets uint64  `json:"toPackets"`
	ToDropped uint64  `json:"toDropped"`
	Session   *placed `json:"session"`
}

// placed is a session and where it is.
type placed struct {
	Since   time.Time      `json:"since"`
	Address netip.AddrPort `json:"address"`
}

// shows returns what the hub shows of node n.
func (c *cluster) shows(n int) shownMember {
	c.t.Helper()
	var shown struct {
		Members []shownMember `json:"members"`
	}
	c.Section("hub", &shown)
	for _, m := range shown.Members {
		if m.Node == name(n) {
			return m
		}
	}
	c.t.Fatalf("the hub does not show %s: %+v", name(n), shown)
	return shownMember{}
}

// sameSession reports whether node n has the one tunnel that it had, at both ends.
func (c *cluster) sameSession(n int, m *member, since time.Time) error {
	c.t.Helper()
	s, shown := m.client.Status(), c.shows(n)
	switch {
	case s.Tunnels != 1 || s.Attempts != 1:
		return fmt.Errorf("%s: %d attempts, %d tunnels, endings %v", name(n), s.Attempts, s.Tunnels, s.Endings)
	case shown.Session == nil || shown.Sessions != 1:
		return fmt.Errorf("the hub shows %+v", shown)
	case shown.Session.Since != since:
		return fmt.Errorf("%s: a session since %v, not since %v", name(n), shown.Session.Since, since)
	}
	return nil
}

// ofSize has one member send UDP packets of every inner size from least to most to another,
// a few at a time, and returns an error unless each arrives as it was sent.
func (c *cluster) ofSize(from, to *member, at int, least, most int) error {
	const headers, atATime = 28, 8
	socket, err := to.ListenPacket("udp", netip.AddrPortFrom(workload(at), 7100).String())
	if err != nil {
		return err
	}
	defer socket.Close()
	conn, err := from.DialContext(c.Soon(), "udp", socket.LocalAddr().String())
	if err != nil {
		return err
	}
	defer conn.Close()
	payload := func(size int) []byte {
		b := make([]byte, size-headers)
		for i := range b {
			b[i] = byte(size + 7*i)
		}
		return b
	}
	got := make([]byte, 2000)
	for first := least; first <= most; first += atATime {
		missing := map[int]bool{}
		for size := first; size < first+atATime && size <= most; size++ {
			missing[size] = true
			if _, err := conn.Write(payload(size)); err != nil {
				return fmt.Errorf("send %d bytes: %w", size, err)
			}
		}
		socket.SetReadDeadline(time.Now().Add(10 * time.Second))
		for len(missing) > 0 {
			n, _, err := socket.ReadFrom(got)
			if err != nil {
				return fmt.Errorf("of the sizes %v never came: %w", missing, err)
			}
			size := n + headers
			if !missing[size] || string(got[:n]) != string(payload(size)) {
				return fmt.Errorf("%d bytes came that nobody sent", size)
			}
			delete(missing, size)
		}
	}
	return nil
}

// neverTooSmall reports whether nothing was dropped for its size, anywhere.
func (c *cluster) neverTooSmall(members ...*member) error {
	if n, _ := c.dropped("path-too-small"); n > 0 {
		return fmt.Errorf("the hub dropped %v packets for their size", n)
	}
	for i, m := range members {
		s := m.client.Status()
		if s.Traffic.Dropped["out-path-too-small"] > 0 || s.Traffic.Dropped["out-length"] > 0 {
			return fmt.Errorf("%s dropped packets for their size: %v", name(i), s.Traffic.Dropped)
		}
		if s.Traffic.OutSplit == 0 || s.Traffic.InJoined == 0 {
			return errors.New("no packet went in two parts: a wrong test")
		}
	}
	return nil
}

// endless is random bytes until it is ended.
type endless struct {
	over chan struct{}
	once sync.Once
}

func newEndless() *endless { return &endless{over: make(chan struct{})} }

func (e *endless) end() { e.once.Do(func() { close(e.over) }) }

func (e *endless) Read(b []byte) (int, error) {
	select {
	case <-e.over:
		return 0, io.EOF
	default:
		return rand.Read(b)
	}
}

// stream has one member send another over TCP whatever a source gives, and returns an error
// unless all of it arrives as it was.
func (c *cluster) stream(from, to *member, at int, source io.Reader) error {
	listener, err := to.Listen("tcp", netip.AddrPortFrom(workload(at), 8100).String())
	if err != nil {
		return err
	}
	defer listener.Close()
	sent, taken := sha256.New(), sha256.New()
	done := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			defer conn.Close()
			_, err = io.Copy(taken, conn)
		}
		done <- err
	}()
	conn, err := from.DialContext(c.Soon(), "tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.Copy(io.MultiWriter(conn, sent), source); err != nil {
		return err
	}
	conn.(interface{ CloseWrite() error }).CloseWrite()
	if err := <-done; err != nil {
		return err
	}
	if !slices.Equal(sent.Sum(nil), taken.Sum(nil)) {
		return errors.New("what came is not what was sent")
	}
	return nil
}
