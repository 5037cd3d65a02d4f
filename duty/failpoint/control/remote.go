package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// answerWait bounds the wait for an answer. Points answer at once; the machine may be
// busy with other tests.
const answerWait = 30 * time.Second

// Every, as which connection, is each of them.
const Every = -1

// Remote is a test's end. Its methods are safe for concurrent use; what is asked for is
// asked one at a time.
type Remote struct {
	listener net.Listener
	work     sync.WaitGroup
	asking   sync.Mutex // held during a question

	mu      sync.Mutex // guards what follows
	program net.Conn   // nil while none is attached
	answers chan string
	reached map[string]int // by place, of the program that is attached
	changed chan struct{}  // closed at the next change
	closed  bool
}

// Listen waits for a program on a Unix socket of this path, which must not exist. The
// name of failpoint.Variable has to name it.
func Listen(path string) (*Remote, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	r := &Remote{listener: listener, reached: map[string]int{}, changed: make(chan struct{})}
	r.work.Go(r.accept)
	return r, nil
}

// Close ends the socket, upon which a program that is attached undoes everything.
func (r *Remote) Close() error {
	r.change(func() { r.closed = true })
	err := r.listener.Close()
	r.mu.Lock()
	if r.program != nil {
		r.program.Close()
	}
	r.mu.Unlock()
	r.work.Wait()
	return err
}

// accept takes one program after the other: a relay that is started again attaches anew.
func (r *Remote) accept() {
	for {
		program, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.attend(program)
	}
}

// attend is what is attached until it ends.
func (r *Remote) attend(program net.Conn) {
	answers := make(chan string, 1)
	r.change(func() {
		if r.closed {
			program.Close()
		}
		r.program, r.answers, r.reached = program, answers, map[string]int{}
	})
	r.listen(program, answers)
	r.change(func() { r.program = nil })
	close(answers)
	program.Close()
}

// listen reads what a program says until it ends.
func (r *Remote) listen(program net.Conn, answers chan<- string) {
	lines := bufio.NewScanner(program)
	lines.Buffer(make([]byte, 0, maximumLine), maximumLine)
	for lines.Scan() {
		if place, ok := strings.CutPrefix(lines.Text(), reachedWord+" "); ok {
			r.change(func() { r.reached[place]++ })
			continue
		}
		select {
		case answers <- lines.Text():
		default: // nobody has asked
		}
	}
}

func (r *Remote) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	close(r.changed)
	r.changed = make(chan struct{})
}

// wait waits for something that changes.
func (r *Remote) wait(ctx context.Context, what string, holds func() bool) error {
	for {
		r.mu.Lock()
		ok, changed := holds(), r.changed
		r.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("control: wait for %s: %w", what, ctx.Err())
		}
	}
}

// Attached waits until a program is attached.
func (r *Remote) Attached(ctx context.Context) error {
	return r.wait(ctx, "a program that was built with the tag failpoints", func() bool { return r.program != nil })
}

// Reached waits until goroutines have been held at a place as often as this since the
// program attached.
func (r *Remote) Reached(ctx context.Context, place string, times int) error {
	return r.wait(ctx, fmt.Sprintf("%s, %d times", place, times), func() bool { return r.reached[place] >= times })
}

// Times returns how often goroutines have been held at a place since the program
// attached.
func (r *Remote) Times(place string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reached[place]
}

// Hold has the next goroutines that come to a place wait there, each for at most so
// long or until Release.
func (r *Remote) Hold(place string, hits int, most time.Duration) error {
	return r.ask("hold", place, strconv.Itoa(hits), most.String())
}

// Release ends Hold.
func (r *Remote) Release(place string) error { return r.ask("release", place) }

// Cut breaks a connection of a name when so many more bytes were written on it: the one
// of this number, modulo how many are open, or Every.
func (r *Remote) Cut(conns string, number, bytes int) error {
	return r.ask("cut", conns, spelled(number), strconv.Itoa(bytes))
}

// Mend has no connection of a name break any more that Cut was asked for, and that has
// not yet.
func (r *Remote) Mend(conns string) error { return r.ask("mend", conns) }

// Stall has what is read and written on a connection wait for so long.
func (r *Remote) Stall(conns string, number int, most time.Duration) error {
	return r.ask("stall", conns, spelled(number), most.String())
}

// Clock sets the wall clock of the program so far off.
func (r *Remote) Clock(offset time.Duration) error { return r.ask("clock", offset.String()) }

func spelled(number int) string {
	if number == Every {
		return everyWord
	}
	return strconv.Itoa(number)
}

// ask asks for one thing and waits for the answer. A program that does not answer is let
// go, since what it says later would be taken for the answer to the next question.
func (r *Remote) ask(words ...string) error {
	r.asking.Lock()
	defer r.asking.Unlock()
	what := strings.Join(words, " ")
	r.mu.Lock()
	program, answers := r.program, r.answers
	r.mu.Unlock()
	if program == nil {
		return fmt.Errorf("control: %s: no program is attached", what)
	}
	if err := writeLine(program, what); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	timer := time.NewTimer(answerWait)
	defer timer.Stop()
	select {
	case answer, ok := <-answers:
		if !ok {
			return fmt.Errorf("control: %s: the program has ended", what)
		}
		if answer != okWord {
			return fmt.Errorf("control: %s: %w", what, errors.New(answer))
		}
		return nil
	case <-timer.C:
		program.Close()
		return fmt.Errorf("control: %s: no answer within %s", what, answerWait)
	}
}
