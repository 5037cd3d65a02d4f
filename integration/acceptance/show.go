package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A showing collects the output of the tests that run, and prints what go test prints without -v: a line a package, and
// the output of what failed.
type showing struct {
	out     io.Writer
	running map[testID]*strings.Builder // output of a test without an end yet; of a package, with no function
	failed  map[string]*strings.Builder // output of a package's failed tests
	err     error                       // of the first write that failed
}

// showRun prints a run while it comes in.
func showRun(in io.Reader, out io.Writer) error {
	s := &showing{out: out, running: map[testID]*strings.Builder{}, failed: map[string]*strings.Builder{}}
	if err := readEvents(in, s.take); err != nil {
		return fmt.Errorf("the run %w", err)
	}
	// Of a run that was cut off everything is shown that might say why.
	var open []string
	for id := range s.running {
		open = append(open, id.folder)
	}
	slices.Sort(open)
	for _, pkg := range slices.Compact(open) {
		s.end(pkg, true)
	}
	return s.err
}

func (s *showing) take(e event) {
	id := testID{e.Package, e.Test}
	switch {
	case e.Action == "build-output":
		s.print(e.Output)
	case e.Package == "":
	case e.Action == "output":
		if s.running[id] == nil {
			s.running[id] = &strings.Builder{}
		}
		s.running[id].WriteString(e.Output)
	case !final(e.Action):
	case e.Test == "":
		s.end(e.Package, e.Action == "fail")
	default:
		if e.Action == "fail" {
			s.keep(id)
		}
		delete(s.running, id)
	}
}

// keep puts the output of a test that failed to that of its package.
func (s *showing) keep(id testID) {
	if s.running[id] == nil {
		return
	}
	if s.failed[id.folder] == nil {
		s.failed[id.folder] = &strings.Builder{}
	}
	for line := range strings.Lines(s.running[id].String()) {
		if !strings.HasPrefix(line, "=== ") {
			s.failed[id.folder].WriteString(line)
		}
	}
}

// end prints a package: when it failed, the output of what failed in it and of what had not ended.
func (s *showing) end(pkg string, failed bool) {
	var open []string
	for id := range s.running {
		if id.folder == pkg && id.function != "" {
			open = append(open, id.function)
		}
	}
	slices.Sort(open)
	for _, function := range open {
		if failed {
			s.keep(testID{pkg, function})
		}
		delete(s.running, testID{pkg, function})
	}
	if b := s.failed[pkg]; b != nil {
		s.print(b.String())
	}
	if b := s.running[testID{pkg, ""}]; b != nil {
		for line := range strings.Lines(b.String()) {
			if failed || strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "? ") {
				s.print(line)
			}
		}
	}
	delete(s.failed, pkg)
	delete(s.running, testID{pkg, ""})
}

func (s *showing) print(text string) {
	if _, err := io.WriteString(s.out, text); err != nil && s.err == nil {
		s.err = err
	}
}
