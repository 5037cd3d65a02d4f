package config

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maximumFile bounds the configuration file. Both lists of methods at their
// limits take a quarter of it.
const maximumFile = 256 << 10

// fileValue is what the file says about one setting.
type fileValue struct {
	value
	line int
}

// fileReader walks a YAML document by the table. It takes the text of a scalar
// as it was written, quoted or not, and hands it to the same readers as flags
// and variables; so 8443 is a text here and yes is not true. Anchors, aliases and
// tags are refused: they would make a value stand where nobody reads it.
type fileReader struct {
	settings map[string]Setting
	names    []string        // of all settings
	sections map[string]bool // paths of mappings
	found    map[string]fileValue
	findings
}

func newFileReader(table []Setting) *fileReader {
	r := &fileReader{settings: map[string]Setting{}, sections: map[string]bool{}, found: map[string]fileValue{}}
	for _, s := range table {
		r.settings[s.Name()] = s
		r.names = append(r.names, s.Name())
		for at, c := range s.Key {
			if c == '.' {
				r.sections[s.Key[:at]] = true
			}
		}
	}
	return r
}

// read reads the document into found. It returns false when the content as a
// whole is not readable, so that nothing is known about any setting.
func (r *fileReader) read(content []byte) bool {
	root, rule, line := guarded(parseYAML, content)
	switch {
	case rule != "":
		r.add(Place{Source: FromFile, Line: line}, rule)
		return false
	case root == nil:
		return true // empty, or comments alone
	}
	r.mapping("", root)
	return true
}

// guarded makes a refusal of a panic: the library has a history of them for odd
// files, and a stack is no answer to an operator's slip.
func guarded(parse func([]byte) (*yaml.Node, Rule, int), content []byte) (root *yaml.Node, rule Rule, line int) {
	defer func() {
		if recover() != nil {
			root, rule, line = nil, NotYAML, 0
		}
	}()
	return parse(content)
}

// parseYAML returns the root of the one document, nil when there is none. Of the
// library's error only the line is taken: its text may quote the file.
func parseYAML(content []byte) (root *yaml.Node, rule Rule, line int) {
	d := yaml.NewDecoder(bytes.NewReader(content))
	var document, second yaml.Node
	switch err := d.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, "", 0
	case err != nil:
		return nil, NotYAML, errorLine(err)
	}
	switch err := d.Decode(&second); {
	case err == nil:
		return nil, NotOneDocument, second.Line
	case !errors.Is(err, io.EOF):
		return nil, NotYAML, errorLine(err)
	}
	return document.Content[0], "", 0
}

// errorLine finds N in "yaml: line N: …", 0 when the error names no line. The
// library counts some of its lines from 0, so the fault may stand one line below.
func errorLine(err error) int {
	_, rest, _ := strings.Cut(err.Error(), "line ")
	digits, _, _ := strings.Cut(rest, ":")
	line, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return line
}

// mapping reads the section at a path, "" for the root.
func (r *fileReader) mapping(path string, node *yaml.Node) {
	place := Place{Setting: path, Source: FromFile, Line: node.Line}
	switch {
	case !isPlain(node):
		r.add(place, NotPlainYAML)
		return
	case isNull(node):
		return // a section all of whose keys are comments
	case node.Kind != yaml.MappingNode:
		r.add(place, NotMapping)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, child := node.Content[i], node.Content[i+1]
		name := join(path, key.Value)
		switch {
		case !isPlain(key) || key.Kind != yaml.ScalarNode:
			r.add(Place{Setting: path, Source: FromFile, Line: key.Line}, NotPlainYAML)
		case seen[key.Value]:
			r.add(Place{Setting: shown(name), Source: FromFile, Line: key.Line}, Repeated)
		default:
			r.member(path, key, child)
		}
		seen[key.Value] = true
	}
}

// member reads one key of a section.
func (r *fileReader) member(path string, key, node *yaml.Node) {
	name := join(path, key.Value)
	place := Place{Setting: name, Source: FromFile, Line: key.Line}
	s, isSetting := r.settings[name]
	dotted := strings.Contains(key.Value, ".")
	switch {
	case r.sections[name] && !dotted:
		r.mapping(name, node)
	case !isSetting || dotted:
		r.unknown(place)
	case s.Key == "":
		r.add(place, NotInFile)
	case !isPlain(node):
		r.add(place, NotPlainYAML)
	case isNull(node):
		r.add(place, NoValue)
	case s.Kind == KindMethods:
		r.list(place, node)
	case node.Kind != yaml.ScalarNode:
		r.add(place, NotOneValue)
	case holdsSecret(s.Kind, node.Value):
		r.add(place, SecretInTheOpen)
	default:
		r.found[name] = fileValue{value{text: node.Value}, key.Line}
	}
}

// unknown refuses a key that is no setting. It looks for the one that was meant
// only while reasons are kept: a large file may hold many keys.
func (r *fileReader) unknown(p Place) {
	reason := Reason{Place: p, Rule: UnknownSetting}
	reason.Setting = shown(p.Setting)
	if reason.Setting != "" && !r.full() {
		reason.Suggest = suggest(p.Setting, r.names)
	}
	r.addReason(reason)
}

// list reads a list of names.
func (r *fileReader) list(place Place, node *yaml.Node) {
	if node.Kind != yaml.SequenceNode {
		r.add(place, NotList)
		return
	}
	v := fileValue{value{list: make([]string, 0, len(node.Content))}, place.Line}
	for i, element := range node.Content {
		at := Place{Setting: place.Setting + index(i), Source: FromFile, Line: element.Line}
		switch {
		case !isPlain(element):
			r.add(at, NotPlainYAML)
		case element.Kind != yaml.ScalarNode || isNull(element):
			r.add(at, NotOneValue)
		case holdsSecret(KindMethods, element.Value):
			r.add(at, SecretInTheOpen)
		default:
			v.list = append(v.list, element.Value)
			continue
		}
		return
	}
	r.found[place.Setting] = v
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// isPlain reports whether a node is what it is written as.
func isPlain(n *yaml.Node) bool {
	return n.Kind != yaml.AliasNode && n.Anchor == "" && n.Style&yaml.TaggedStyle == 0
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }
