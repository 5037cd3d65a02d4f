package envelope

import (
	"bytes"
	"io"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// This file is a second, slow reading of the rules of the package: a tree by
// jsontext, and recursion over it. It shares no code with the scanner.

type node struct {
	kind     jsontext.Kind
	raw      []byte
	start    int
	members  []member
	elements []*node
}

type member struct {
	name  string
	lone  bool // the name holds a lone surrogate
	value *node
}

// text is the text of a string; ok is false for any other value and for a lone
// surrogate.
func (n *node) text() (text string, ok bool) {
	if n == nil || n.kind != '"' {
		return "", false
	}
	b, err := jsontext.AppendUnquote(nil, n.raw)
	return string(b), err == nil
}

func (n *node) lone() bool {
	_, ok := n.text()
	return n.kind == '"' && !ok
}

func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.name == name && !m.lone {
			return m.value
		}
	}
	return nil
}

func (n *node) bytes() []byte {
	if n == nil {
		return nil
	}
	return n.raw
}

// parse reads one value; trailing says that something follows it.
func parse(text []byte) (root *node, trailing bool, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if root, err = parseValue(d, text); err != nil {
		return nil, false, err
	}
	_, err = d.ReadToken()
	return root, err != io.EOF, nil
}

func parseValue(d *jsontext.Decoder, text []byte) (*node, error) {
	n := &node{kind: d.PeekKind()}
	if n.kind != '{' && n.kind != '[' {
		raw, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		n.start = int(d.InputOffset()) - len(raw)
		n.raw = text[n.start:d.InputOffset()]
		return n, nil
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	n.start = int(d.InputOffset()) - 1
	for d.PeekKind() != '}' && d.PeekKind() != ']' {
		var m member
		if n.kind == '{' {
			name, err := parseValue(d, text)
			if err != nil {
				return nil, err
			}
			m.name, _ = name.text()
			m.lone = name.lone()
		}
		value, err := parseValue(d, text)
		if err != nil {
			return nil, err
		}
		if n.kind == '{' {
			m.value = value
			n.members = append(n.members, m)
		} else {
			n.elements = append(n.elements, value)
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	n.raw = text[n.start:d.InputOffset()]
	return n, nil
}

// judge holds the rules a frame breaks.
type judge map[Rule]bool

// level judges the names of a strict level and the strings directly in it.
func (j judge) level(n *node, proto bool) {
	if n == nil {
		return
	}
	seen := map[string]bool{}
	for _, m := range n.members {
		if m.lone {
			j[RuleLoneSurrogate] = true
		} else if seen[m.name] {
			j[RuleDuplicateName] = true
		}
		if !proto && m.name == "__proto__" {
			j[RuleForbiddenName] = true
		}
		if m.value.lone() {
			j[RuleLoneSurrogate] = true
		}
		seen[m.name] = true
	}
	if len(n.members) > MaxNames {
		j[RuleTooManyNames] = true
	}
	for _, e := range n.elements {
		if e.lone() {
			j[RuleLoneSurrogate] = true
		}
	}
}

func (j judge) session(n *node) {
	if n == nil {
		return
	}
	j.level(n, false)
	for _, m := range n.members {
		j.session(m.value)
	}
	for _, e := range n.elements {
		j.session(e)
	}
}

func (j judge) depth(n *node, depth int) {
	if depth > MaxDepth && (n.kind == '{' || n.kind == '[') {
		j[RuleDepth] = true
	}
	for _, m := range n.members {
		j.depth(m.value, depth+1)
	}
	for _, e := range n.elements {
		j.depth(e, depth+1)
	}
}

// all returns every member of that name. Which of two members of one strict
// level is meant does not matter: the frame is refused.
func (n *node) all(name string) (values []*node) {
	for _, m := range n.members {
		if m.name == name && !m.lone {
			values = append(values, m.value)
		}
	}
	return values
}

func (j judge) frame(root *node) {
	j.level(root, false)
	j.depth(root, 1)
	for _, name := range []string{"correlation", "error", "retry"} {
		for _, n := range root.all(name) {
			j.level(n, true)
		}
	}
	for _, name := range []string{"request", "response"} {
		for _, body := range root.all(name) {
			j.level(body, true)
			for _, n := range body.all("session") {
				j.session(n)
			}
		}
	}
	j.lengths(root)
}

func (j judge) lengths(root *node) {
	for _, n := range root.all("method") {
		if text, _ := n.text(); n.kind == '"' && len(text) > MaxMethodBytes {
			j[RuleTextTooLong] = true
		}
	}
	ids := root.all("requestInstanceId")
	for _, correlation := range root.all("correlation") {
		ids = append(ids, correlation.all("id")...)
	}
	for _, n := range ids {
		if n.kind == '"' && len(n.raw)-2 > MaxIDBytes {
			j[RuleTextTooLong] = true
		}
	}
}

func (n *node) offset() int {
	if n == nil {
		return 0
	}
	return n.start
}

func optionalText(n *node) []byte {
	if text, ok := n.text(); ok {
		return []byte(text)
	}
	return nil
}

func optionalToken(n *node) []byte {
	if n != nil && n.kind == '"' {
		return n.raw
	}
	return nil
}

// nodeIDText reads a string that may be a node id.
func nodeIDText(n *node) []byte {
	if n != nil && len(n.raw) > MaxNodeIDBytes+2 {
		return nil
	}
	return optionalText(n)
}

func refFrame(root *node) *Frame {
	correlation := root.get("correlation")
	f := &Frame{
		Method:          optionalText(root.get("method")),
		ID:              optionalText(correlation.get("id")),
		IDToken:         optionalToken(correlation.get("id")),
		Instance:        optionalText(root.get("requestInstanceId")),
		InstanceToken:   optionalToken(root.get("requestInstanceId")),
		Request:         root.get("request").bytes(),
		Response:        root.get("response").bytes(),
		RequestAt:       root.get("request").offset(),
		ResponseAt:      root.get("response").offset(),
		Error:           root.get("error").bytes(),
		Retry:           root.get("retry").bytes(),
		HasLocalData:    root.get("localData") != nil,
		instancePresent: root.get("requestInstanceId") != nil,
	}
	if phase := correlation.get("phase"); phase != nil {
		f.Phase = PhaseOther
		switch text, _ := phase.text(); text {
		case "request":
			f.Phase = PhaseRequest
			f.Body = refBody(root.get("request"))
		case "response":
			f.Phase = PhaseResponse
			f.Body = refBody(root.get("response"))
		}
	}
	return f
}

func refBody(n *node) (b Body) {
	if n == nil {
		return b
	}
	b = Body{
		Object:        n.kind == '{',
		NodeID:        nodeIDText(n.get("nodeId")),
		Session:       n.get("session").bytes(),
		SessionNodeID: nodeIDText(n.get("session").get("nodeId")),
	}
	var ids []*node
	countBody(n, &b, &ids)
	b.NodeIDs.Count = len(ids)
	if len(ids) == 0 {
		return b
	}
	b.NodeIDs.First = nodeIDText(ids[0])
	b.NodeIDs.Uniform = true
	for _, id := range ids {
		if text := nodeIDText(id); text == nil || !bytes.Equal(text, b.NodeIDs.First) {
			b.NodeIDs.Uniform = false
		}
	}
	return b
}

func countBody(n *node, b *Body, ids *[]*node) {
	stream := false
	for _, m := range n.members {
		if m.name == "nodeId" && !m.lone {
			*ids = append(*ids, m.value)
		}
		stream = stream || m.name == "_isVirtualStream" && !m.lone && m.value.kind == 't'
		countBody(m.value, b, ids)
	}
	if stream {
		b.Streams++
	}
	for _, e := range n.elements {
		countBody(e, b, ids)
	}
}

// compareWithReference scans text and fails the test unless the scan and the
// slow reading agree on acceptance, on the rule and on everything read.
func compareWithReference(t *testing.T, text []byte) {
	t.Helper()
	var f Frame
	err := Scan(text, &f)
	var rule Rule
	if err != nil {
		e := err.(*ScanError)
		rule = e.Rule
		if e.Offset < 0 || e.Offset > len(text) {
			t.Fatalf("offset %d of %d bytes", e.Offset, len(text))
		}
		if diff := diffFrames(&Frame{}, &f); diff != "" {
			t.Fatalf("a refused frame left something (-want +got):\n%s", diff)
		}
	}
	if !utf8.Valid(text) {
		if rule != RuleInvalidUTF8 {
			t.Fatalf("invalid UTF-8 gave %v", err)
		}
		return
	}
	root, trailing, syntax := parse(text)
	if syntax != nil {
		if err == nil {
			t.Fatalf("accepted, but jsontext says %v", syntax)
		}
		return
	}
	broken := judge{}
	if root.kind != '{' {
		broken[RuleNotAnObject] = true
	} else {
		broken.frame(root)
		if trailing {
			broken[RuleTrailingData] = true
		}
	}
	if len(broken) == 0 && err != nil || len(broken) > 0 && !broken[rule] {
		t.Fatalf("got %v, the broken rules are %v", err, broken)
	}
	if err == nil {
		if diff := diffFrames(refFrame(root), &f); diff != "" {
			t.Fatalf("facts differ (-want +got):\n%s", diff)
		}
	}
}

// diffFrames compares what two scans found. An empty text differs from an
// absent one.
func diffFrames(want, got *Frame) string {
	w, g := *want, *got
	w.names, g.names = nameStack{}, nameStack{}
	if reflect.DeepEqual(w, g) {
		return ""
	}
	return cmp.Diff(w, g, cmp.AllowUnexported(Frame{}, nameStack{}))
}
