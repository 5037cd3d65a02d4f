package demo

import (
	"encoding/json"
	"io"
)

// jsonPrinter writes one object a line: an Opening, a Result for each step (with the
// kind "step"), a Live now and then, a Summary.
type jsonPrinter struct{ sink }

// NewJSON returns a printer for programs.
func NewJSON(to io.Writer) Printer { return &jsonPrinter{sink{to: to}} }

func (p *jsonPrinter) line(x any) {
	text, err := json.Marshal(x)
	if err != nil {
		panic("demo: what is printed cannot be encoded: " + err.Error()) // facts hold numbers, texts and times
	}
	p.write(append(text, '\n'))
}

func (p *jsonPrinter) Open(o Opening) { p.line(o) }

func (p *jsonPrinter) Begin(Result) {}

func (p *jsonPrinter) Step(r Result) {
	p.line(struct {
		Kind string `json:"kind"`
		Result
	}{kindStep, r})
}

func (p *jsonPrinter) Live(l Live) { p.line(l) }

func (p *jsonPrinter) Close(s Summary) { p.line(s) }
