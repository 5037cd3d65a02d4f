package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Terminal says what a text printer may use beside plain lines.
type Terminal struct {
	// Rewrite lets a line that says what is going on be replaced by the next one.
	Rewrite bool
	// Colour lets outcomes and sources be coloured.
	Colour bool
}

// textPrinter writes for a person.
type textPrinter struct {
	sink
	on    Terminal
	brief bool // the line that stands is to be replaced
}

// NewText returns a printer for people.
func NewText(to io.Writer, on Terminal) Printer { return &textPrinter{sink: sink{to: to}, on: on} }

// Select Graphic Rendition (ECMA-48 §8.3.117), and the erasure of a line.
const (
	bold      = "\x1b[1m"
	dim       = "\x1b[2m"
	red       = "\x1b[31m"
	green     = "\x1b[32m"
	yellow    = "\x1b[33m"
	plain     = "\x1b[0m"
	eraseLine = "\r\x1b[K"
)

func (p *textPrinter) paint(code, text string) string {
	if !p.on.Colour {
		return text
	}
	return code + text + plain
}

// say writes a whole line.
func (p *textPrinter) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if p.brief {
		line = eraseLine + line
	}
	p.brief = false
	p.write([]byte(strings.TrimRight(line, " ") + "\n"))
}

// hint writes a line that the next one replaces, where that can be done.
func (p *textPrinter) hint(format string, args ...any) {
	if p.on.Rewrite {
		line := []rune(fmt.Sprintf(format, args...))
		p.write([]byte(eraseLine + string(line[:min(len(line), narrow)])))
		p.brief = true
	}
}

// picture is the cluster that is shown.
const picture = `
                     Cloudly
                        |   one WebSocket: sessions, pushes, routes, renewals
                      relay
          ______________|______________
         |              |              |     each node has a session (WebSocket) and
      node-a         node-b         node-c   a tunnel (QUIC) that ends at the relay's hub
      ingress        web server
`

func (p *textPrinter) Open(o Opening) {
	p.say("%s", p.paint(bold, "relay "+o.Version+", shown at work in a cluster of its own"))
	p.say("%s", strings.Trim(picture, "\n"))
	p.say("")
	for _, line := range []string{
		"The relay is the real one, as `relay serve` runs it. Cloudly (the control plane), the nodes and the",
		"ingress are simulated. All are in this process and speak over real sockets on loopback. Below each",
		"step stands what was read back when it was over: from a page of the relay, such as /status, or from",
		"the records of the peer that is named. It takes about a quarter of a minute.",
	} {
		p.say("%s", line)
	}
	if o.Break != "" {
		p.say("%s", p.paint(yellow, fmt.Sprintf("--break=%s: Cloudly misbehaves on purpose, so that a step must fail.", o.Break)))
	}
	p.say("")
}

func (p *textPrinter) Begin(r Result) {
	p.hint("%2d ...  %s", r.Number, r.Title)
}

// outcomes are how outcomes are shown.
var outcomes = map[Outcome]struct{ colour, text string }{
	Held: {green, "ok"}, Failed: {red, "FAILED"}, Interrupted: {yellow, "interrupted"}, Skipped: {dim, "skipped"},
}

func (p *textPrinter) Step(r Result) {
	shown := outcomes[r.Outcome]
	took := fmt.Sprintf("%.2f s", r.Seconds)
	if r.Outcome == Skipped {
		took = ""
	}
	p.say("%2d %s %7s  %s  %s", r.Number, p.paint(shown.colour, fmt.Sprintf("%-7s", shown.text)), took,
		p.paint(bold, fmt.Sprintf("%-9s", r.Name)), r.Title)
	for _, f := range r.Facts {
		p.fact(dim, f.From, f.Says)
	}
	if r.Outcome == Failed {
		p.fact(red, "expected", r.Expected)
		p.fact(red, "found", r.Found)
	}
}

// fact writes one piece of evidence, in as many lines as it needs.
func (p *textPrinter) fact(colour, from, says string) {
	margin := p.paint(colour, fmt.Sprintf("%-9s", from))
	for _, line := range wrap(says, width-factIndent) {
		p.say("     %s %s", margin, line)
		margin = strings.Repeat(" ", 9)
	}
}

const (
	// width is where evidence is broken into lines, in columns.
	width = 105
	// factIndent is what stands before evidence.
	factIndent = 5 + 9 + 1
	// narrow is the least width of a terminal that is in use. A line that is to be
	// replaced must not be longer, or its first half would stay.
	narrow = 79
)

// wrap breaks a text between words into lines of at most so many bytes, as long as no
// word is longer.
func wrap(text string, width int) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len(*last)+1+len(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

func (p *textPrinter) Live(l Live) {
	if l.Rounds+l.Faults == 0 {
		p.say("")
		p.say("The relay goes on, with a little traffic. Look at it from another terminal:")
		p.say("")
		for _, page := range []string{"/status", "/events", "/metrics", "/readyz?verbose"} {
			p.say("    %s", p.paint(bold, l.Operator+page))
		}
		for _, command := range l.Commands {
			p.say("    %s", p.paint(bold, command))
		}
		p.say("")
		p.say("Ctrl-C stops it.")
		p.say("")
		return
	}
	line := fmt.Sprintf("%s: %s downloaded, %d requests up, %d down, %s, %d by HTTPS",
		time.Duration(l.Seconds*float64(time.Second)).Round(time.Second), sizeText(l.Downloaded), l.ToCloudly, l.ToNodes,
		count(l.Packets, "packet"), l.HTTPS)
	if l.Faults > 0 {
		line += fmt.Sprintf(", %s (%s)", count(l.Faults, "fault"), strings.Join(strings.Fields(l.Fault), " "))
	}
	if p.on.Rewrite {
		p.hint("%s", line)
		return
	}
	p.say("%s", line)
}

func (p *textPrinter) Close(s Summary) {
	p.say("")
	if s.Held {
		p.say("%s", p.paint(green, fmt.Sprintf("All %d steps held, in %.1f s.", s.Steps[Held], s.Seconds)))
		return
	}
	var parts []string
	for _, o := range []Outcome{Held, Failed, Interrupted, Skipped} {
		if n := s.Steps[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	p.say("%s", p.paint(red, fmt.Sprintf("Not every step held, in %.1f s: %s.", s.Seconds, strings.Join(parts, ", "))))
}
