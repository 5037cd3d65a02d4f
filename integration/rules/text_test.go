package rules

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A committed text works on every machine: it names no folder of the machine it was written on, and no package
// registry's host, since which one serves is a setting of the package clients. Escapes keep these patterns from
// matching themselves.
var banned = []struct {
	what    string
	pattern *regexp.Regexp
}{
	{"a machine's path", regexp.MustCompile(`(?:^|[^A-Za-z0-9._~$}-])/(?:root|home|work|workspace|builds|Users)/[A-Za-z0-9._-]`)},
	{"a package registry's host", regexp.MustCompile(`\b(?:` + strings.Join([]string{
		`registry\.npmjs\.(?:org|com)`, `registry\.yarnpkg\.com`, `(?:proxy|sum)\.golang\.org`,
		`(?:deb|security|ftp|snapshot)\.debian\.org`, `pypi\.org`, `files\.pythonhosted\.org`, `crates\.io`,
		`rubygems\.org`, `repo1?\.maven\.(?:apache\.)?org`,
	}, "|") + `)\b`)},
}

// textFaults names every banned text with the line it stands in.
func textFaults(content []byte) []string {
	var faults []string
	for number, line := range bytes.Split(content, []byte("\n")) {
		for _, rule := range banned {
			if rule.pattern.Match(line) {
				faults = append(faults, fmt.Sprintf("line %d names %s", number+1, rule.what))
			}
		}
	}
	return faults
}

func TestNoMachineAndNoRegistryIsNamed(t *testing.T) {
	root := moduleRoot(t)
	if !exists(t, filepath.Join(root, ".git")) {
		t.Skip("not a git work tree: which files are committed is unknown")
	}
	// Files that are not ignored count as committed, so that the rule speaks before the commit.
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	names, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range textFaults(content) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

func TestTextFaults(t *testing.T) {
	// The samples are written with commas for dots and pipes for slashes.
	sample := strings.NewReplacer(",", ".", "|", "/")
	tests := []struct{ text, want string }{
		{"|work|main|go.mod", "machine"},
		{"see |root|go|bin", "machine"},
		{"file:|||home|someone|x", "machine"},
		{`"|Users|someone"`, "machine"},
		{"integration|home|x", ""},
		{"${dir}|root|x", ""},
		{"~|work|x", ""},
		{"|homework|x", ""},
		{"/root alone", ""},
		{"https:||registry,npmjs,org|ws", "registry"},
		{"GOPROXY=https:||proxy,golang,org", "registry"},
		{"deb http:||deb,debian,org|debian", "registry"},
		{"pypi,org", "registry"},
		{"golang.org|x|vuln", ""},
		{"registry,example,org", ""},
		{"registryxnpmjs,org", ""},
	}
	for _, test := range tests {
		got := textFaults([]byte("first\n" + sample.Replace(test.text) + "\n"))
		switch {
		case test.want == "" && len(got) != 0:
			t.Errorf("%q: refused: %v", test.text, got)
		case test.want != "" && (len(got) != 1 || !strings.Contains(got[0], "line 2") || !strings.Contains(got[0], test.want)):
			t.Errorf("%q: got %v, want one fault in line 2 about a %s", test.text, got, test.want)
		}
	}
}
