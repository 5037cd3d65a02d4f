package duty

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// DefaultQueueBytes is what a LineWriter holds: about 5,000 lines, which is
// a busy minute at the level info.
const DefaultQueueBytes = 1 << 20

// errQueueFull makes the logger count the line as lost.
var errQueueFull = errors.New("log: the queue is full")

// LineWriter makes a writer that never waits out of one that may, such as a
// pipe whose reader has stopped: a log nobody reads must not stop the relay.
// Lines wait in a queue bounded in bytes; a line that does not fit is refused,
// not an older one, since the first lines of a trouble tell most.
//
// NewLineWriter starts one goroutine, which Close ends.
type LineWriter struct {
	out   io.Writer
	bound int
	wake  chan struct{} // of room for one: there is something to do
	done  chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	queue   []byte // guarded by mu
	writing int    // guarded by mu; bytes that out has and may not have written
	closed  bool   // guarded by mu
	err     error  // guarded by mu; the last failure of out
	lost    uint64 // guarded by mu; lines that out did not take
}

// NewLineWriter returns a writer before out that holds at most bound bytes,
// DefaultQueueBytes if 0.
func NewLineWriter(out io.Writer, bound int) *LineWriter {
	if bound <= 0 {
		bound = DefaultQueueBytes
	}
	w := &LineWriter{out: out, bound: bound, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go w.run()
	return w
}

// Write queues one line, or refuses it whole.
func (w *LineWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.writing+len(w.queue)+len(line) > w.bound {
		return 0, errQueueFull
	}
	w.queue = append(w.queue, line...)
	w.signal()
	return len(line), nil
}

func (w *LineWriter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run writes what is queued, all of it at once, until the writer is closed
// and the queue is empty.
func (w *LineWriter) run() {
	defer close(w.done)
	var spare []byte
	for range w.wake {
		w.mu.Lock()
		lines, closed := w.queue, w.closed
		w.queue, spare = spare[:0], lines
		w.writing = len(lines)
		w.mu.Unlock()

		if len(lines) > 0 {
			n, err := w.out.Write(lines)
			w.wrote(lines[min(max(n, 0), len(lines)):], err)
		}
		if closed {
			return
		}
	}
}

// wrote notes the outcome of a write, of which rest was not taken.
func (w *LineWriter) wrote(rest []byte, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writing = 0
	if err != nil {
		w.err = err
		w.lost += uint64(bytes.Count(rest, []byte("\n")))
	}
}

// Lost returns how many lines were accepted and then not taken by the writer
// behind, which failed. Lines refused by Write are not among them: the logger
// counts those.
func (w *LineWriter) Lost() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// Close refuses what comes later and waits until all that is queued was
// written, or ctx ends. A writer that never returns keeps its goroutine: it
// ends with the process. The error says if lines were not written.
func (w *LineWriter) Close(ctx context.Context) error {
	w.mu.Lock()
	w.closed = true
	w.signal()
	w.mu.Unlock()
	select {
	case <-w.done:
	case <-ctx.Done():
		return fmt.Errorf("log: the output did not take all lines: %w", ctx.Err())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return fmt.Errorf("log: %w", w.err)
	}
	return nil
}
