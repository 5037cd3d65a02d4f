package soak_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// transferWait bounds one transfer. One that a withdrawn grant has stopped ends then.
	transferWait = 10 * time.Second
	// maximumTransfer bounds what one carries.
	maximumTransfer = 512 << 10
)

// errDigest is a transfer that was ended well by both sides, and has other bytes.
var errDigest = errors.New("what came is not what was sent")

// accept takes transfers, until the stack is gone. The answer to one is the digest of
// what came.
func (e *end) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		e.loops.Go(func() {
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(transferWait))
			var length uint64
			if binary.Read(conn, binary.BigEndian, &length) != nil || length > maximumTransfer {
				return
			}
			sum := sha256.New()
			if _, err := io.CopyN(sum, conn, int64(length)); err == nil {
				conn.Write(sum.Sum(nil))
			}
		})
	}
}

// transfer sends bytes to another member over TCP, and compares the digest.
func (e *end) transfer(to, size int) error {
	ctx, cancel := within(transferWait)
	defer cancel()
	conn, err := e.DialContext(ctx, "tcp", netip.AddrPortFrom(workload(to), transferPort).String())
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(transferWait))
	sum := sha256.New()
	if err := binary.Write(conn, binary.BigEndian, uint64(size)); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if _, err := io.Copy(io.MultiWriter(conn, sum), io.LimitReader(rand.Reader, int64(size))); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	var got [sha256.Size]byte
	if _, err := io.ReadFull(conn, got[:]); err != nil {
		return fmt.Errorf("wait for the digest: %w", err)
	}
	if got != [sha256.Size]byte(sum.Sum(nil)) {
		return errDigest
	}
	return nil
}

// noteTransfer takes over what came of one. It may have been cut off by what was done to
// the hub; other bytes it may not have.
func (t *tunnel) noteTransfer(from, to int, err error) {
	if errors.Is(err, errDigest) {
		t.laws.fault("a transfer from %s to %s: %v", nodeName(from), nodeName(to), err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.bulk["whole"]++
	} else {
		t.bulk["cut off"]++
	}
}

// transfers are counted by what came of them.
func (t *tunnel) transfers() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.bulk)
}

// work has all members send, until the returned function is called, which waits for what
// is under way.
func (t *tunnel) work(random *mathrand.Rand) (rest func()) {
	done := make(chan struct{})
	var all sync.WaitGroup
	for n := range members {
		all.Go(func() {
			ticker := time.NewTicker(everyDatagram)
			defer ticker.Stop()
			for {
				select {
				case <-done:
					return
				case <-ticker.C:
				}
				e := t.at(n)
				for to := range members {
					if e != nil && to != n {
						e.send(to, false)
					}
				}
			}
		})
	}
	for _, pair := range pairs {
		own := mathrand.New(mathrand.NewPCG(random.Uint64(), 0))
		all.Go(func() {
			timer := time.NewTimer(0)
			defer timer.Stop()
			for turn := 0; ; turn++ {
				select {
				case <-done:
					return
				case <-timer.C:
				}
				from, to := pair[turn%2], pair[1-turn%2]
				if e := t.at(from); e != nil {
					t.noteTransfer(from, to, e.transfer(to, own.IntN(maximumTransfer)))
				}
				timer.Reset(everyDatagram)
			}
		})
	}
	return sync.OnceFunc(func() { close(done); all.Wait() })
}

// stands checks, at a quiet point, that every member is up, at both ends, and that what
// is granted passes: each way a datagram, and each pair a transfer.
func (t *tunnel) stands() {
	t.s.t.Helper()
	t.up()
	t.fence()
	for w := range t.law() {
		before := t.laws.count(w)
		t.s.Eventually(fmt.Sprintf("a datagram from %s to %s", nodeName(w.from.member), nodeName(w.to.member)), func() error {
			if t.laws.count(w) > before {
				return nil
			}
			t.at(w.from.member).send(w.to.member, false)
			return errors.New("none has come")
		})
	}
	for _, pair := range pairs {
		// What the stacks remember of connections that were cut off may cost an attempt.
		t.s.Eventually("a transfer", func() error {
			err := t.at(pair[0]).transfer(pair[1], 64<<10)
			t.noteTransfer(pair[0], pair[1], err)
			return err
		})
	}
}

// connected reports whether the hub shows a session of a member.
func (t *tunnel) connected(id string) error {
	var shown struct {
		Members []struct {
			Node    string    `json:"node"`
			Session *struct{} `json:"session"`
		} `json:"members"`
	}
	t.s.Section("hub", &shown)
	for _, m := range shown.Members {
		if m.Node == id && m.Session != nil {
			return nil
		}
	}
	return fmt.Errorf("the hub has no session of %s", id)
}
