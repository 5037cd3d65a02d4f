package portforward

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// Bounds.
const (
	// MaxConnections bounds the connections at once: more than a person or a small
	// service needs, less than would take the descriptors of a process (1,024).
	MaxConnections = 256
	// DialWait is how long the other end is waited for. Within it TCP repeats its first
	// packet three times, which outlasts a tunnel that is just coming back.
	DialWait = 10 * time.Second
	// IdleWait ends a connection on which nothing came from either end: nobody tells
	// when the other end of a tunnel has gone for good. Terminal sessions rest for less.
	IdleWait = time.Hour
	// bufferSize is what is read at once: io.Copy's.
	bufferSize = 32 << 10
	// restWait is the pause after a listener could not take a connection.
	restWait = 100 * time.Millisecond
)

// A Rule joins a listener with what is dialled for each of its connections.
type Rule struct {
	Listener net.Listener // which Run closes
	Dial     func(ctx context.Context) (net.Conn, error)
}

// Counts are what has been carried so far.
type Counts struct {
	Taken   uint64 // connections that a listener took
	Refused uint64 // of these, closed at once since there were MaxConnections
	Failed  uint64 // of these, whose other end could not be had
	Open    int    // of these, now
	Bytes   uint64 // in both directions
}

// A Forwarder carries the connections of its rules. Its methods may be called from any
// goroutine.
type Forwarder struct {
	rules []Rule
	log   *duty.Logger

	taken, refused, failed, bytes atomic.Uint64

	mu   sync.Mutex
	open map[*pair]struct{}
}

// New returns a Forwarder that does nothing until Run is called, once. A nil log says
// nothing.
func New(log *duty.Logger, rules ...Rule) *Forwarder {
	return &Forwarder{rules: rules, log: log, open: map[*pair]struct{}{}}
}

// Counts returns what has been carried so far.
func (f *Forwarder) Counts() Counts {
	f.mu.Lock()
	open := len(f.open)
	f.mu.Unlock()
	return Counts{Taken: f.taken.Load(), Refused: f.refused.Load(), Failed: f.failed.Load(), Open: open, Bytes: f.bytes.Load()}
}

// Run takes connections until ctx ends.
func (f *Forwarder) Run(ctx context.Context) {
	var accepting, carrying sync.WaitGroup
	for _, rule := range f.rules {
		// A listener that is closed lets go of who waits in Accept.
		defer context.AfterFunc(ctx, func() { rule.Listener.Close() })()
		accepting.Go(func() {
			defer f.guard()
			defer rule.Listener.Close() // behind a panic nobody takes what it holds
			f.accept(ctx, rule, &carrying)
		})
	}
	<-ctx.Done()
	accepting.Wait()
	carrying.Wait()
}

// accept takes the connections of one rule.
func (f *Forwarder) accept(ctx context.Context, rule Rule, carrying *sync.WaitGroup) {
	for {
		near, err := rule.Listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				near.Close()
			}
			return
		case err != nil:
			f.log.Warn("port-forward-not-taken", field.NetAddr(rule.Listener.Addr()), field.Error(err))
			if errors.Is(err, net.ErrClosed) {
				return // the stack has ended under it
			}
			rest(ctx)
			continue
		}
		f.taken.Add(1)
		p := &pair{near: near, bytes: &f.bytes}
		if !f.enter(p) {
			f.refused.Add(1)
			near.Close()
			f.log.Warn("port-forward-refused", field.NetAddr(rule.Listener.Addr()), field.Limit(MaxConnections))
			continue
		}
		carrying.Go(func() {
			defer f.leave(p)
			f.carry(ctx, rule, p)
		})
	}
}

// rest waits a moment, or until ctx ends.
func rest(ctx context.Context) {
	timer := time.NewTimer(restWait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (f *Forwarder) enter(p *pair) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.open) >= MaxConnections {
		return false
	}
	f.open[p] = struct{}{}
	return true
}

func (f *Forwarder) leave(p *pair) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, p)
}

// carry carries one connection until its end.
func (f *Forwarder) carry(ctx context.Context, rule Rule, p *pair) {
	defer f.guard()
	defer p.near.Close()
	dialling, cancel := context.WithTimeout(ctx, DialWait)
	far, err := rule.Dial(dialling)
	cancel()
	if err != nil {
		if ctx.Err() == nil {
			f.failed.Add(1)
			f.log.Info("port-forward-failed", field.NetAddr(rule.Listener.Addr()), field.Reason(reason(err)))
			f.log.Debug("port-forward-dialled", field.NetAddr(rule.Listener.Addr()), field.Error(err))
		}
		return
	}
	defer far.Close()
	p.far = far
	defer context.AfterFunc(ctx, p.close)()
	f.log.Debug("port-forward-opened", field.NetAddr(rule.Listener.Addr()))
	var other sync.WaitGroup
	other.Go(func() { f.pass(p, p.near, p.far) })
	f.pass(p, p.far, p.near)
	other.Wait()
	f.log.Debug("port-forward-closed", field.NetAddr(rule.Listener.Addr()))
}

// pass carries one direction. A panic ends both.
func (f *Forwarder) pass(p *pair, to, from net.Conn) {
	defer func() {
		if f.log.Recovered(recover()) {
			p.close()
		}
	}()
	p.copy(to, from)
}

// guard keeps what a panic would show of carried bytes out of the process's last words.
func (f *Forwarder) guard() { f.log.Recovered(recover()) }

// pair is a connection and its other end.
type pair struct {
	near, far net.Conn
	bytes     *atomic.Uint64
}

func (p *pair) close() {
	p.near.Close()
	p.far.Close()
}

// touch gives both ends their time anew: a direction may rest as long as the other is in
// use.
func (p *pair) touch() {
	until := time.Now().Add(IdleWait)
	p.near.SetDeadline(until)
	p.far.SetDeadline(until)
}

// copy passes on what one end sends, and that it has sent all. Whatever else ends it
// ends the other direction, too.
func (p *pair) copy(to, from net.Conn) {
	buffer := make([]byte, bufferSize)
	for {
		p.touch()
		n, err := from.Read(buffer)
		if n > 0 {
			written, failed := to.Write(buffer[:n])
			p.bytes.Add(uint64(written))
			if failed != nil {
				p.close()
				return
			}
		}
		switch half, ok := to.(interface{ CloseWrite() error }); {
		case err == nil:
		case errors.Is(err, io.EOF) && ok && half.CloseWrite() == nil:
			return
		default:
			p.close()
			return
		}
	}
}
