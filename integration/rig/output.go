package rig

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	// maxOutput bounds what is kept of one stream of a relay: an hour of a busy log.
	// What is beyond it is counted, and then no search of the output counts.
	maxOutput = 32 << 20
	// tailLines and tailBytes bound what a failed test shows of the log.
	tailLines = 80
	tailBytes = 24 << 10
)

// capture keeps what a process writes to one stream. The zero value is ready.
type capture struct {
	mu      sync.Mutex
	kept    []byte
	dropped int
}

// Write never fails and never makes the process wait for a test.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := min(len(p), maxOutput-len(c.kept))
	c.kept = append(c.kept, p[:room]...)
	c.dropped += len(p) - room
	return len(p), nil
}

// bytes returns a copy of what is kept, and how many bytes are not.
func (c *capture) bytes() (kept []byte, dropped int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.kept), c.dropped
}

func (c *capture) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.kept)
}

// Line is one line of the relay's log.
type Line struct {
	Time    time.Time
	Level   string // as log/slog writes it: "INFO"
	Message string // the name of the event, or of the line
	// Fields are all other members: texts, numbers as float64.
	Fields map[string]any
}

// Text returns a field that is a text, "" for none.
func (l Line) Text(key string) string {
	text, _ := l.Fields[key].(string)
	return text
}

// readLines returns the complete lines that are JSON objects. Others are no log
// lines: the race detector and a dying program write such.
func readLines(text []byte) []Line {
	var lines []Line
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) || !bytes.HasPrefix(line, []byte("{")) {
			continue
		}
		var members map[string]any
		if json.Unmarshal(line, &members) != nil {
			continue
		}
		read := Line{Fields: members}
		read.Level, _ = members["level"].(string)
		read.Message, _ = members["msg"].(string)
		stamp, _ := members["time"].(string)
		read.Time, _ = time.Parse(time.RFC3339Nano, stamp)
		for _, key := range []string{"level", "msg", "time"} {
			delete(members, key)
		}
		lines = append(lines, read)
	}
	return lines
}

// tail returns the last lines of a text, within both bounds.
func tail(text []byte) []byte {
	all := len(text)
	if len(text) > tailBytes {
		text = text[len(text)-tailBytes:]
	}
	for at, lines := len(text)-1, 0; at > 0; at-- {
		if text[at-1] != '\n' {
			continue
		}
		if lines++; lines == tailLines { // a line begins here
			text = text[at:]
			break
		}
	}
	if cut := all - len(text); cut > 0 {
		return append(fmt.Appendf(nil, "(%d bytes before)\n", cut), text...)
	}
	return text
}

// crashMarks begin what only a mistake in the relay writes. The log itself is
// JSON, so none of them begins one of its lines.
var crashMarks = []string{"WARNING: DATA RACE", "panic: ", "fatal error: ", "runtime: ", "SIGSEGV"}

// crashes returns the lines of an output that a mistake in the relay writes.
func crashes(text []byte) []string {
	var found []string
	for line := range bytes.Lines(text) {
		for _, mark := range crashMarks {
			if bytes.HasPrefix(line, []byte(mark)) {
				found = append(found, string(bytes.TrimSpace(line)))
			}
		}
	}
	return found
}
