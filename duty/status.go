package duty

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"serve.zone/relay/duty/field"
)

// Section is one duty's part of the status document.
type Section struct {
	Name  string // the duty's name, which is the member's name
	Value any    // a value of an exported struct type
}

// Assemble returns the sections of the status document, ordered by name. A
// section must be a struct of an exported type, or a pointer to one, so that
// the document has one schema that page, command line and bundle share.
//
// What is wrong with one duty does not hide the others: sections that cannot
// be used are left out and named in the error.
func Assemble(duties ...Duty) ([]Section, error) {
	sections := make([]Section, 0, len(duties))
	var wrong []error
	seen := make(map[string]bool, len(duties))
	for _, d := range duties {
		name := d.Name()
		value := d.Status()
		switch {
		case !field.IsName(name):
			wrong = append(wrong, errors.New("status: a duty's name is not a name"))
		case seen[name]:
			wrong = append(wrong, fmt.Errorf("status: two duties are named %s", name))
		case !isSchema(reflect.TypeOf(value)):
			wrong = append(wrong, fmt.Errorf("status: %s: %T is not an exported struct type", name, value))
		default:
			sections = append(sections, Section{Name: name, Value: value})
		}
		seen[name] = true
	}
	slices.SortFunc(sections, func(a, b Section) int { return strings.Compare(a.Name, b.Name) })
	return sections, errors.Join(wrong...)
}

func isSchema(t reflect.Type) bool {
	if t == nil {
		return false
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && t.Name() != "" && t.Name()[0] >= 'A' && t.Name()[0] <= 'Z'
}
