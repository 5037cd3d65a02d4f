package stream

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/typedsocket/buffer"
)

// errCut is what a socket that was cut gives its streams.
var errCut = errors.New("cut")

// errFull is a carrier whose queue is full.
var errFull = errors.New("full")

// wire is one direction of a socket in memory: control frames before bulk,
// each in order, one frame every delay.
type wire struct {
	deliver func(*buffer.Buffer) // to the other end, with the buffer
	delay   time.Duration
	tap     func(f frame) // sees each frame as it leaves, before its delivery

	mu      sync.Mutex
	control []*buffer.Buffer
	bulk    []bulkFrame
	peak    int // most memory that bulk ever held
	held    int
	stalled bool // nothing leaves
	full    bool // nothing is taken
	closed  bool
	wake    chan struct{}
	done    chan struct{}
}

type bulkFrame struct {
	b    *buffer.Buffer
	sent func()
}

func newWire() *wire {
	return &wire{wake: make(chan struct{}, 1), done: make(chan struct{})}
}

func (w *wire) refuses(b *buffer.Buffer) error {
	switch {
	case w.closed:
		b.Release()
		return errCut
	case w.full:
		b.Release()
		return errFull
	}
	return nil
}

func (w *wire) Control(b *buffer.Buffer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refuses(b); err != nil {
		return err
	}
	w.control = append(w.control, b)
	w.signal()
	return nil
}

func (w *wire) Bulk(flow string, b *buffer.Buffer, sent func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refuses(b); err != nil {
		return err
	}
	w.bulk = append(w.bulk, bulkFrame{b, sent})
	w.held += b.Size()
	w.peak = max(w.peak, w.held)
	w.signal()
	return nil
}

func (w *wire) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// set changes a switch of the wire.
func (w *wire) set(change func()) {
	w.mu.Lock()
	change()
	w.mu.Unlock()
	w.signal()
}

// next takes the frame whose turn it is. ok is false when the wire was closed.
func (w *wire) next() (f bulkFrame, ok bool) {
	for {
		w.mu.Lock()
		switch {
		case w.closed:
			w.mu.Unlock()
			return f, false
		case w.stalled:
		case len(w.control) > 0:
			f.b = w.control[0]
			w.control = w.control[1:]
			w.mu.Unlock()
			return f, true
		case len(w.bulk) > 0:
			f = w.bulk[0]
			w.bulk = w.bulk[1:]
			w.held -= f.b.Size()
			w.mu.Unlock()
			return f, true
		}
		w.mu.Unlock()
		<-w.wake
	}
}

func (w *wire) run() {
	defer close(w.done)
	for {
		f, ok := w.next()
		if !ok {
			return
		}
		w.mu.Lock()
		delay, tap := w.delay, w.tap
		w.mu.Unlock()
		if delay > 0 {
			time.Sleep(delay)
		}
		if tap != nil {
			parsed, err := readFrame(f.b.Bytes())
			if err != nil {
				panic(err)
			}
			tap(parsed)
		}
		if f.sent != nil {
			f.sent()
		}
		w.deliver(f.b)
	}
}

func (w *wire) close() {
	w.mu.Lock()
	w.closed = true
	control, bulk := w.control, w.bulk
	w.control, w.bulk = nil, nil
	w.mu.Unlock()
	w.signal()
	for _, b := range control {
		b.Release()
	}
	for _, f := range bulk {
		f.b.Release()
		f.sent()
	}
}

// pair is a socket in memory with a Mux on each end.
type pair struct {
	client, server     *Mux
	toClient, toServer *wire
}

func newPair(change func(*Config)) *pair {
	p := &pair{toClient: newWire(), toServer: newWire()}
	client := Config{Carrier: p.toServer, Client: true, Peer: "server"}
	server := Config{Carrier: p.toClient, Peer: "client"}
	if change != nil {
		change(&client)
		change(&server)
	}
	p.client, p.server = NewMux(client), NewMux(server)
	p.toClient.deliver = func(b *buffer.Buffer) { p.client.Receive(b) }
	p.toServer.deliver = func(b *buffer.Buffer) { p.server.Receive(b) }
	return p
}

func (p *pair) start() {
	go p.toClient.run()
	go p.toServer.run()
}

// cut ends the socket as a broken connection does.
func (p *pair) cut() {
	p.toClient.close()
	p.toServer.close()
	p.client.Close(errCut)
	p.server.Close(errCut)
}

// inBubble runs f on a pair in a bubble of its own time, and checks that
// nothing is left of it: synctest waits for every goroutine, and every buffer
// must have been released.
func inBubble(t *testing.T, change func(*Config), f func(t *testing.T, p *pair)) {
	t.Helper()
	before := buffer.Lent()
	synctest.Test(t, func(t *testing.T) {
		p := newPair(change)
		p.start()
		f(t, p)
		p.cut()
		<-p.toClient.done
		<-p.toServer.done
		synctest.Wait()
		for _, m := range []*Mux{p.client, p.server} {
			if stats := m.Stats(); stats.Live != 0 || stats.Held != 0 {
				t.Errorf("after the cut: %+v", stats)
			}
		}
	})
	if lent := buffer.Lent() - before; lent != 0 {
		t.Errorf("%d buffers were not released", lent)
	}
}

// shape is one of the four ways a stream can come about.
type shape struct {
	name    string
	creator func(*pair) *Mux
	opener  func(*pair) *Mux
	creates Direction // of the creator
}

func client(p *pair) *Mux { return p.client }
func server(p *pair) *Mux { return p.server }

var shapes = []shape{
	{"client offers, sends", client, server, Send},
	{"client offers, receives", client, server, Receive},
	{"server offers, sends", server, client, Send},
	{"server offers, receives", server, client, Receive},
}

// ends makes a stream of a shape and returns both ends, open.
func (sh shape) ends(t *testing.T, p *pair, integrity *Integrity) (sender, receiver *Stream) {
	t.Helper()
	created, opened := sh.both(t, p, integrity)
	synctest.Wait()
	if sh.creates == Send {
		return created, opened
	}
	return opened, created
}

func (sh shape) both(t *testing.T, p *pair, integrity *Integrity) (created, opened *Stream) {
	t.Helper()
	created, err := sh.creator(p).Offer(Options{Direction: sh.creates, ContentType: "a/b", Integrity: integrity})
	if err != nil {
		t.Fatal(err)
	}
	created.Published()
	opened, err = sh.opener(p).Open(created.Descriptor())
	if err != nil {
		t.Fatal(err)
	}
	return created, opened
}

// noise returns n bytes that differ by seed.
func noise(n int, seed uint64) []byte {
	p := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)}).Read(p)
	return p
}

// sendAll writes p and waits for the verdict.
func sendAll(s *Stream, p []byte) (Receipt, error) {
	if _, err := s.Write(p); err != nil {
		return Receipt{}, err
	}
	return s.CloseSend(context.Background())
}

// receiveAll reads to the end and accepts.
func receiveAll(s *Stream) ([]byte, error) {
	p, err := io.ReadAll(s)
	if err != nil {
		return p, err
	}
	_, err = s.Accept()
	return p, err
}

// both runs two functions at the same time and waits for them.
func both(f, g func()) {
	var w sync.WaitGroup
	w.Go(f)
	w.Go(g)
	w.Wait()
}
