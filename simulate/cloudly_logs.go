package simulate

import (
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"serve.zone/relay/contract"
)

// Bounds of a log report (contract §19, runtimeAssignmentLogContract).
const (
	maximumLogEntries   = 1024
	maximumLogTextBytes = 65_536
)

// captures holds the place in each log capture of a node, newest last.
type captures struct {
	ids    []string
	places map[string]int64
}

// LogBatch is one delivery of an attempt's output.
type LogBatch struct {
	AssignmentID, AttemptID, CaptureID string
	Sequence                           int64          // counter, from 1 without gaps
	Entries                            []contract.Raw // objects, at most 1024
	Final                              bool           // no batch follows in this capture
}

// AppendJSON appends the batch in contract order.
func (b LogBatch) AppendJSON(dst []byte) []byte {
	entries := contract.Raw{'['}
	for i, entry := range b.Entries {
		if i > 0 {
			entries = append(entries, ',')
		}
		entries = append(entries, entry...)
	}
	final := contract.Raw("false")
	if b.Final {
		final = contract.Raw("true")
	}
	return append(dst, compose().text("assignmentId", b.AssignmentID).text("attemptId", b.AttemptID).
		text("captureId", b.CaptureID).integer("sequence", b.Sequence).
		value("entries", append(entries, ']')).value("final", final).end()...)
}

func readLogBatch(raw []byte) (LogBatch, error) {
	const identifier = "is not a canonical identifier"
	o := readObject("reportRuntimeAssignmentLogs batch", raw,
		[]string{"assignmentId", "attemptId", "captureId", "sequence", "entries", "final"})
	b := LogBatch{
		AssignmentID: o.text("assignmentId", contract.IsIdentifier, identifier),
		AttemptID:    o.text("attemptId", contract.IsIdentifier, identifier),
		CaptureID:    o.text("captureId", contract.IsIdentifier, identifier),
		Sequence:     o.counter("sequence"),
		Entries:      o.elements("entries"),
	}
	switch string(o.members["final"]) {
	case "true":
		b.Final = true
	case "false", "":
	default:
		o.refuse("final", "is not a boolean")
	}
	switch {
	case len(b.Entries) > maximumLogEntries:
		o.refuse("entries", fmt.Sprintf("has more than %d elements", maximumLogEntries))
	case len(b.Entries) == 0 && !b.Final && o.members["entries"] != nil:
		o.refuse("entries", "is empty in a batch that is not final")
	}
	for i, entry := range b.Entries {
		if !judgeLogEntry(entry) {
			o.refuse(fmt.Sprintf("entries[%d]", i), fmt.Sprintf("is no object with a text of at most %d bytes", maximumLogTextBytes))
			break
		}
	}
	return b, o.err()
}

// judgeLogEntry judges what bounds a report: the text of a line. The kinds of
// entries are not looked into, since later minors add to them.
func judgeLogEntry(entry contract.Raw) bool {
	o := readObject("entry", entry, nil)
	if entry[0] != '{' {
		return false
	}
	raw := o.members["text"]
	if raw == nil {
		return true // a loss has none
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	return err == nil && utf8.Valid(text) && len(text) <= maximumLogTextBytes
}

// takeLogs judges a report of logs: its size, its shape, and its place in the
// capture. A gap is never refused: the real Cloudly records it as its own loss,
// but behind a relay that keeps a node's order there is none.
func (c *Cloudly) takeLogs(s *relaySocket, n *node, body []byte) verdict {
	length, err := contract.CanonicalLength(body)
	if err != nil {
		return refused(err)
	}
	if length > contract.CapturedValueLimit {
		return refuseText(fmt.Sprintf("the report has more than %d canonical bytes", contract.CapturedValueLimit))
	}
	o := readObject("reportRuntimeAssignmentLogs request", body, []string{"session", "batch"})
	if err := o.err(); err != nil {
		return refused(err)
	}
	batch, err := readLogBatch(o.members["batch"])
	if err != nil {
		return refused(err)
	}
	held := n.captures.places[batch.CaptureID]
	status := "accepted"
	switch {
	case batch.Sequence <= held:
		status = "replay"
	case batch.Sequence != held+1:
		c.violated(LogGap, s.number, "reportRuntimeAssignmentLogs")
		fallthrough
	default:
		n.captures.set(batch.CaptureID, batch.Sequence)
	}
	return accepted(compose().text("status", status).text("assignmentId", batch.AssignmentID).
		text("captureId", batch.CaptureID).integer("sequence", batch.Sequence).end())
}

func (c *captures) set(id string, sequence int64) {
	if c.places == nil {
		c.places = map[string]int64{}
	}
	if _, known := c.places[id]; !known {
		if len(c.ids) >= maximumCaptures {
			delete(c.places, c.ids[0])
			c.ids = c.ids[1:]
		}
		c.ids = append(c.ids, id)
	}
	c.places[id] = sequence
}
