package config

import (
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestPanicOfTheParserIsARefusal(t *testing.T) {
	root, rule, line := guarded(func([]byte) (*yaml.Node, Rule, int) { panic("the file's text") }, nil)
	if root != nil || rule != NotYAML || line != 0 {
		t.Errorf("got %v, %q, %d", root, rule, line)
	}
}
