package forward

import (
	"context"
	"slices"
	"strings"
	"time"

	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// Drain refuses whatever comes from now on, closes each node's socket once
// nothing of it is in flight, spread over a while, and waits for the closing
// handshakes (design §8). When ctx ends first, it closes what is left and
// returns the context's error.
func (f *Forward) Drain(ctx context.Context) error {
	f.recallMu.Lock()
	f.mu.Lock()
	f.draining = true
	f.endRecall()
	count := len(f.peers)
	f.mu.Unlock()
	f.recallMu.Unlock()

	err := f.drainAll(ctx, min(drainSpread/time.Duration(max(count, 1)), drainGap))
	f.linger(ctx)
	f.mu.Lock()
	f.publish(NodeSocketsDrained, field.Count(count))
	f.mu.Unlock()
	f.flush()
	return err
}

// drainAll closes sockets, gap apart, until none is left open.
func (f *Forward) drainAll(ctx context.Context, gap time.Duration) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	turn := false // gap has passed since the last close
	for {
		select {
		case <-ctx.Done():
			for f.drainOne(true) != drainedAll {
			}
			return ctx.Err()
		case <-f.settled:
		case <-timer.C:
			turn = true
		}
		if !turn {
			continue
		}
		switch f.drainOne(false) {
		case drainedAll:
			return nil
		case drainedOne:
			turn = false
			timer.Reset(gap)
		case drainedNone:
			// What others have in flight on a socket ends without a word to us.
			timer.Reset(gap)
		}
	}
}

// What drainOne found.
type drained uint8

const (
	drainedOne  drained = iota // it closed one
	drainedNone                // each that is left has something in flight
	drainedAll                 // none is left
)

// drainOne closes one socket, in the order of nodes. One that has something in
// flight is left alone unless forced.
func (f *Forward) drainOne(forced bool) drained {
	f.mu.Lock()
	var open []*peer
	for _, p := range f.peers {
		if p.sock.Err() == nil {
			open = append(open, p)
		}
	}
	slices.SortFunc(open, func(a, b *peer) int { return strings.Compare(f.table.belongs(a), f.table.belongs(b)) })
	at := slices.IndexFunc(open, func(p *peer) bool { return forced || p.rests() })
	if at < 0 {
		f.mu.Unlock()
		if len(open) == 0 {
			return drainedAll
		}
		return drainedNone
	}
	p := open[at]
	f.leave(p, departedDrained)
	f.mu.Unlock()
	p.sock.Close(typedsocket.CloseRestart, "the relay stops")
	f.flush()
	return drainedOne
}

// linger waits until all peers are gone, for at most drainLinger.
func (f *Forward) linger(ctx context.Context) {
	timer := time.NewTimer(drainLinger)
	defer timer.Stop()
	for {
		f.mu.Lock()
		left := len(f.peers)
		f.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-f.settled:
		}
	}
}
