package simulate

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// ErrClosed is what is met at a simulated peer after its Close.
var ErrClosed = errors.New("simulated peer has ended")

var errNoWall = errors.New("no wall clock is given")

// Peer is what simulated peers have in common: a script for what they receive,
// a record of what crossed their sockets, the violations they noticed, and an
// owner for their goroutines.
type Peer struct {
	name  string
	wall  func() time.Time
	offer contract.Offer

	frames     FrameLog
	script     script
	violations violations
	watch      watch

	life   sync.Mutex // guards closed and additions to work
	closed bool
	done   chan struct{}
	work   sync.WaitGroup
}

func (p *Peer) begin(name string, wall func() time.Time, offer contract.Offer, recordLimit int) {
	p.name, p.wall, p.offer = name, wall, offer
	p.done = make(chan struct{})
	p.frames.limit = recordLimit
}

// spawn starts a goroutine that the peer owns, and reports false when the peer
// has ended.
func (p *Peer) spawn(f func()) bool {
	p.life.Lock()
	defer p.life.Unlock()
	if p.closed {
		return false
	}
	p.work.Go(f)
	return true
}

// enter counts the calling goroutine as the peer's own until it calls work.Done,
// and reports false when the peer has ended.
func (p *Peer) enter() bool {
	p.life.Lock()
	defer p.life.Unlock()
	if !p.closed {
		p.work.Add(1)
	}
	return !p.closed
}

// finish ends the peer's life, and reports false when it had ended before.
func (p *Peer) finish() bool {
	p.life.Lock()
	defer p.life.Unlock()
	if p.closed {
		return false
	}
	p.closed = true
	close(p.done)
	return true
}

// Script gives the next requests of a method, or of AnyMethod, these steps, one
// each, in order.
func (p *Peer) Script(method string, steps ...Step) { p.script.add(method, steps) }

// ScriptAlways gives every request of a method this step that no other step is
// waiting for.
func (p *Peer) ScriptAlways(method string, step Step) { p.script.keep(method, step) }

// ClearScript forgets the steps of a method.
func (p *Peer) ClearScript(method string) { p.script.clear(method) }

// Scripted returns how many steps still wait for a request of the method.
func (p *Peer) Scripted(method string) int { return p.script.waiting(method) }

// Frames returns the record of what crossed this peer's sockets.
func (p *Peer) Frames() *FrameLog { return &p.frames }

// Violations returns the breaches noticed so far, oldest first.
func (p *Peer) Violations() []Violation { return p.violations.all() }

// Wait returns when the condition holds. It is asked after every change and
// every frame and may use any method of the peer. The error names what was
// waited for; without a deadline in the context it comes after DefaultWait.
func (p *Peer) Wait(ctx context.Context, what string, condition func() bool) error {
	return p.watch.wait(ctx, what, condition)
}

// WaitReceived waits until at least n requests of a method were received.
func (p *Peer) WaitReceived(ctx context.Context, method string, n int) error {
	return p.Wait(ctx, "requests of "+method, func() bool { return p.frames.count(method) >= n })
}

// violated notes a breach. Methods outside the catalogue are a peer's own text
// and are not repeated.
func (p *Peer) violated(rule Rule, socket int, method string) {
	if _, known := contract.LookupMethod(method); !known {
		method = "other"
	}
	p.violations.add(Violation{Rule: rule, Socket: socket, Method: method, At: p.wall()})
	p.watch.notify()
}

// recorder records one socket.
type recorder struct {
	p      *Peer
	socket int
}

func (r *recorder) Received(binary bool, text []byte) {
	r.p.record(Frame{Socket: r.socket, Binary: binary, Text: text})
}

func (r *recorder) Sent(binary bool, text []byte) {
	r.p.record(Frame{Socket: r.socket, Sent: true, Binary: binary, Text: text})
}

// recording returns the recorder of a socket, nil when nothing is recorded.
func (p *Peer) recording(socket int) typedsocket.Recorder {
	if p.frames.limit < 0 {
		return nil
	}
	return &recorder{p, socket}
}

// record keeps a copy of the frame and judges an envelope that was received.
func (p *Peer) record(f Frame) {
	f.At, f.Text = p.wall(), bytes.Clone(f.Text)
	m, isEnvelope := f.Message()
	p.frames.add(kept{f, m.Method, m.Request})
	if !f.Sent && !f.Binary {
		switch {
		case !isEnvelope:
			p.violated(MalformedEnvelope, f.Socket, "")
		case hasForeignMember(f.Text):
			p.violated(ForeignMember, f.Socket, m.Method)
		}
	}
	p.watch.notify()
}

// crossing are the members of an envelope that a relay writes (design §3.1).
var crossing = map[string]bool{"method": true, "request": true, "response": true,
	"requestInstanceId": true, "correlation": true, "error": true, "retry": true}

// hasForeignMember reports whether an envelope has another member than those.
func hasForeignMember(text []byte) bool {
	d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	d.ReadToken()
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil || !crossing[name.String()] {
			return true
		}
		d.SkipValue()
	}
	return false
}

// scripted returns the verdict that a step gives without a judgement.
func (p *Peer) scripted(step Step, body []byte) verdict {
	switch {
	case step.Protocol != "":
		return scriptedRefusal(step.Protocol, p.offer, body)
	case step.Text != "":
		return verdict{text: step.Text, data: step.Data}
	}
	return verdict{}
}

// deliver ends a request as the step and the verdict say. Answered, when set,
// is called once an answer was queued.
func (p *Peer) deliver(r *typedsocket.Request, conn *gate, step Step, v verdict, answered func()) {
	end := func() {
		if p.end(r, conn, step, v) && answered != nil {
			answered()
		}
	}
	if step.StopReading {
		conn.stop()
	}
	if step.Delay == 0 {
		end()
		return
	}
	late := func() {
		timer := time.NewTimer(step.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
			if v.still != nil {
				v = v.still()
			}
			end()
		case <-p.done:
			r.Drop()
		}
	}
	if !p.spawn(late) {
		r.Drop()
	}
}

// end ends the request now, and reports whether it was answered.
func (p *Peer) end(r *typedsocket.Request, conn *gate, step Step, v verdict) bool {
	socket, answered := r.Socket(), true
	switch {
	case step.Cut:
		r.Drop()
		conn.Close()
		return false
	case step.Silent || step.Unjudged && v.text == "" && step.Response == nil:
		r.Drop()
		answered = false
	case v.text != "":
		r.Refuse(v.text, v.data)
	case step.Response != nil:
		r.Answer(step.Response)
	default:
		r.Answer(v.answer)
	}
	if step.Close != 0 {
		socket.Close(step.Close, "simulated peer closes")
	}
	return answered
}
