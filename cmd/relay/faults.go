package main

import (
	"errors"
	"fmt"
)

// faults collects what is wrong with the values of a verb's flags. A fault names the flag
// and the rule, and nothing of the value, which may be anything.
type faults []error

// add notes what is wrong with a flag.
func (f *faults) add(flag, rule string) { *f = append(*f, fmt.Errorf("--%s: %s", flag, rule)) }

// at notes what is wrong with one of the values of a flag that was given again and again.
func (f *faults) at(flag string, index int, rule string) {
	*f = append(*f, fmt.Errorf("--%s, number %d: %s", flag, index+1, rule))
}

// err returns all of them, nil for none.
func (f faults) err() error { return errors.Join(f...) }
