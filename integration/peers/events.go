package peers

import (
	"bufio"
	"bytes"
	"io"
	"sync"

	"github.com/go-json-experiment/json"
)

const (
	// maxPendingBytes bounds the events that no test has awaited: room for a recorded exchange of several of the
	// largest frames.
	maxPendingBytes = 64 << 20
	// maxTailBytes bounds the output kept for a failure report.
	maxTailBytes = 64 << 10
)

// eventLog holds the event lines of a peer until a test awaits them, in order.
type eventLog struct {
	mu      sync.Mutex
	lines   []eventLine
	bytes   int
	ended   bool
	changed chan struct{} // closed and replaced whenever lines or ended change
}

type eventLine struct {
	event string
	text  []byte
}

func newEventLog() *eventLog { return &eventLog{changed: make(chan struct{})} }

// readFrom takes lines until the peer closes its end. A line that is no event, or one line too many, ends the log:
// the test then reads of it in the report.
func (l *eventLog) readFrom(r io.Reader) {
	defer l.update(func() { l.ended = true })
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxPendingBytes)
	for lines.Scan() {
		line := eventLine{text: bytes.Clone(lines.Bytes())}
		var named struct {
			Event string `json:"event"`
		}
		err := json.Unmarshal(line.text, &named, lenient)
		line.event = named.Event
		l.update(func() {
			l.lines = append(l.lines, line)
			l.bytes += len(line.text)
		})
		if err != nil || l.full() {
			break
		}
	}
	// A peer must never block on a full pipe because its test has lost interest.
	io.Copy(io.Discard, r)
}

func (l *eventLog) update(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *eventLog) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes > maxPendingBytes
}

// take removes and returns the first line of that event, or returns nil, whether more can come, and a channel that
// is closed when the answer may have changed.
func (l *eventLog) take(event string) (line []byte, ended bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, candidate := range l.lines {
		if candidate.event == event {
			l.lines = append(l.lines[:i], l.lines[i+1:]...)
			l.bytes -= len(candidate.text)
			return candidate.text, l.ended, l.changed
		}
	}
	return nil, l.ended, l.changed
}

func (l *eventLog) pending() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all bytes.Buffer
	for _, line := range l.lines {
		all.Write(line.text)
		all.WriteByte('\n')
		if all.Len() > maxTailBytes {
			all.WriteString("…\n")
			break
		}
	}
	return all.String()
}

// tail is a writer that keeps the last maxTailBytes.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - maxTailBytes; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
