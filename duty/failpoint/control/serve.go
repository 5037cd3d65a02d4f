package control

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	// maximumLine bounds a line of either side.
	maximumLine = 256
	// lineWait bounds the writing of one. The reader is on the same machine.
	lineWait = 5 * time.Second

	okWord      = "ok"
	errorWord   = "error"
	reachedWord = "reached"
	everyWord   = "*"
)

// which says which connections of a name are meant.
type which struct {
	all    bool
	number int
}

// Serve does what is asked for on a socket until it ends, and undoes all of it then. It
// closes the socket.
func (p *Points) Serve(test net.Conn) error {
	defer test.Close()
	p.mu.Lock()
	p.test = test
	p.mu.Unlock()
	defer p.forget()
	lines := bufio.NewScanner(test)
	lines.Buffer(make([]byte, 0, maximumLine), maximumLine)
	for lines.Scan() {
		answer := okWord
		if err := p.do(strings.Fields(lines.Text())); err != nil {
			answer = errorWord + " " + err.Error()
		}
		if err := p.say(test, answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

// say writes one line.
func (p *Points) say(to net.Conn, line string) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	return writeLine(to, line)
}

func writeLine(to net.Conn, line string) error {
	if len(line) >= maximumLine || strings.Contains(line, "\n") {
		return fmt.Errorf("control: a line has at most %d bytes", maximumLine)
	}
	to.SetWriteDeadline(time.Now().Add(lineWait))
	if _, err := to.Write([]byte(line + "\n")); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	return nil
}

var errMalformed = errors.New("malformed")

// do does one thing.
func (p *Points) do(words []string) error {
	r := reader{words: words}
	switch r.word() {
	case "hold":
		name, hits, most := r.word(), r.number(), r.duration()
		if r.wrong() {
			return errMalformed
		}
		return p.hold(name, hits, most)
	case "release":
		name := r.word()
		if r.wrong() {
			return errMalformed
		}
		return p.release(name)
	case "cut":
		name, w, bytes := r.word(), r.which(), r.number()
		if r.wrong() {
			return errMalformed
		}
		return p.each(name, w, func(c *conn) { c.cutAfter(bytes) })
	case "mend":
		name := r.word()
		if r.wrong() {
			return errMalformed
		}
		return p.mend(name)
	case "stall":
		name, w, most := r.word(), r.which(), r.duration()
		if r.wrong() || most <= 0 || most > MaximumWait {
			return errMalformed
		}
		until := time.Now().Add(most)
		return p.each(name, w, func(c *conn) { c.stall(until) })
	case "clock":
		offset := r.duration()
		if r.wrong() {
			return errMalformed
		}
		p.set(offset)
		return nil
	}
	return errMalformed
}

func (p *Points) each(name string, w which, do func(*conn)) error {
	conns, err := p.pick(name, w)
	for _, c := range conns {
		do(c)
	}
	return err
}

// reader reads the words of a line.
type reader struct {
	words []string
	bad   bool
}

func (r *reader) word() string {
	if len(r.words) == 0 {
		r.bad = true
		return ""
	}
	word := r.words[0]
	r.words = r.words[1:]
	return word
}

// number reads a count.
func (r *reader) number() int {
	n, err := strconv.Atoi(r.word())
	r.bad = r.bad || err != nil || n < 0
	return n
}

func (r *reader) duration() time.Duration {
	d, err := time.ParseDuration(r.word())
	r.bad = r.bad || err != nil
	return d
}

func (r *reader) which() which {
	if len(r.words) > 0 && r.words[0] == everyWord {
		r.word()
		return which{all: true}
	}
	return which{number: r.number()}
}

// wrong reports whether the line was not what it should be.
func (r *reader) wrong() bool { return r.bad || len(r.words) > 0 }
