package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// An event is what go test -json writes (go doc test2json), as far as it is used here.
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build
	Test       string
	Output     string
}

// readEvents calls f for each event. A text that is none ends it.
func readEvents(r io.Reader, f func(event)) error {
	decoder := jsontext.NewDecoder(r, jsontext.AllowInvalidUTF8(true))
	for {
		var e event
		if err := json.UnmarshalDecode(decoder, &e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("is not what go test -json writes: %w", err)
		}
		f(e)
	}
}

// final tells whether an action is the last of a test or of a package.
func final(action string) bool { return action == "pass" || action == "fail" || action == "skip" }

// An outcome is how a test ended in all runs that held it: as passed where one did, else as skipped with the reason.
type outcome struct {
	passed bool
	reason string // of the skip
}

// results are the ends of all tests and subtests in the runs that were read, and what is wrong with these runs.
type results struct {
	tests  map[testID]outcome // a subtest has the whole path as function
	faults []string
}

func newResults() *results { return &results{tests: map[testID]outcome{}} }

// folderOf is the folder of a package of this module.
func folderOf(pkg string) string {
	return strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
}

// loggedSkip is the line with which t.Skip tells its reason.
var loggedSkip = regexp.MustCompile(`^\s+[^\s:]+_test\.go:\d+: (.*)\n$`)

// read takes one run. What is wrong with the run is a fault; an error means that it could not be read.
func (r *results) read(name string, stream io.Reader) error {
	ended := map[testID]string{}    // of this run
	packages := map[string]string{} // "" while one runs
	reasons := map[testID]string{}  // the last line that a running test logged
	fault := func(format string, args ...any) {
		r.faults = append(r.faults, name+": "+fmt.Sprintf(format, args...))
	}
	err := readEvents(stream, func(e event) {
		id := testID{folderOf(e.Package), e.Test}
		switch {
		case e.Action == "build-fail":
			fault("%s does not build", e.ImportPath)
		case e.Package == "":
		case e.Test == "" && final(e.Action):
			if packages[e.Package] != "" {
				fault("%s ran twice", id.folder)
			}
			packages[e.Package] = e.Action
			if e.Action == "fail" {
				fault("%s failed", id.folder)
			}
		case e.Test == "":
			if _, seen := packages[e.Package]; !seen {
				packages[e.Package] = ""
			}
			if e.Action == "output" && strings.HasPrefix(e.Output, "ok ") && strings.Contains(e.Output, "\t(cached)") {
				fault("%s comes out of the cache; -count=1 has it run", id.folder)
			}
		case e.Action == "output":
			if m := loggedSkip.FindStringSubmatch(e.Output); m != nil {
				reasons[id] = m[1]
			}
		case final(e.Action):
			switch {
			case ended[id] != "":
				fault("%s %s ran twice", id.folder, id.function)
			case e.Action == "fail":
				fault("%s %s failed", id.folder, id.function)
			}
			ended[id] = e.Action
			r.take(id, e.Action, reasons[id])
			delete(reasons, id)
		}
	})
	if err != nil {
		return fmt.Errorf("%s %w", name, err)
	}
	if len(packages) == 0 {
		fault("holds no run")
	}
	for pkg, end := range packages {
		if end == "" {
			fault("%s did not end", folderOf(pkg))
		}
	}
	slices.Sort(r.faults)
	return nil
}

func (r *results) take(id testID, action, reason string) {
	now := outcome{passed: action == "pass"}
	if action == "skip" {
		now.reason = reason
		if reason == "" {
			now.reason = "no reason given"
		}
	}
	if held, twice := r.tests[id]; !twice || !held.passed {
		r.tests[id] = now
	}
}
