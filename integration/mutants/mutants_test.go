package mutants

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"serve.zone/relay/integration/rig"
)

// mutant is one wrong relay.
type mutant struct {
	does string // what is wrong with it, as an operator would say it
	file string // below the module's root
	old  string // found exactly once in the file
	new  string
	in   string // the package whose tests notice, below the module's root
	red  string // the test that fails
}

// root returns the module's root.
func root(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// source returns the file and fails the test unless the text stands in it once.
func (m mutant) source(t *testing.T, root string) (path, source string) {
	t.Helper()
	path = filepath.Join(root, m.file)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(content), m.old); n != 1 {
		t.Errorf("%s: the text to replace stands %d times in %s; keep the list up with the code", m.does, n, m.file)
	}
	return path, string(content)
}

// overlay writes the mutated file and the overlay that puts it in its place.
func (m mutant) overlay(t *testing.T, root string) string {
	t.Helper()
	path, source := m.source(t, root)
	if t.Failed() {
		t.FailNow()
	}
	dir := t.TempDir()
	wrong := filepath.Join(dir, "mutated.go")
	if err := os.WriteFile(wrong, []byte(strings.Replace(source, m.old, m.new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := json.Marshal(map[string]map[string]string{"Replace": {path: wrong}})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, table, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// failed finds the tests that failed in the output of go test.
var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

func TestEachWrongRelayIsNoticed(t *testing.T) {
	which := os.Getenv("RELAY_MUTANTS")
	switch which {
	case "":
		t.Skip("RELAY_MUTANTS is not set: the run compiles the relay again for each mutant")
	case "all", "sample":
	default:
		t.Fatalf("RELAY_MUTANTS is %q, want all or sample", which)
	}
	root := root(t)
	drawn := sample{}
	for _, m := range list {
		if !drawn.takes(m) && which == "sample" {
			continue
		}
		t.Run(strings.ReplaceAll(m.does, " ", "-"), func(t *testing.T) {
			t.Parallel()
			command := exec.Command("go", "test", "-count=1", "-timeout=120s", "-vet=off", "-run", "^"+m.red+"$")
			command.Dir = root
			if overlay := m.overlay(t, root); strings.HasPrefix(m.in, "integration/") {
				// The program alone is a wrong one, not the simulated peers in the test.
				command.Env = append(os.Environ(), rig.OverlayVariable+"="+overlay)
			} else {
				command.Args = append(command.Args, "-overlay", overlay)
			}
			command.Args = append(command.Args, "./"+m.in)
			out, err := command.CombinedOutput()
			text := string(out)
			if strings.Contains(text, "[build failed]") || strings.Contains(text, "[setup failed]") {
				t.Fatalf("it does not compile:\n%s", text)
			}
			if err == nil {
				t.Fatalf("nothing noticed that the relay %s", m.does)
			}
			for _, name := range failed.FindAllStringSubmatch(text, -1) {
				if name[1] == m.red {
					return
				}
			}
			if !strings.Contains(text, "panic: ") {
				t.Fatalf("it was noticed by something else than %s:\n%s", m.red, text)
			}
		})
	}
}

// Each text is found where it is said to stand, so that a change of the code shows
// at once which mutants it concerns.
func TestEachMutantIsUpToDate(t *testing.T) {
	root := root(t)
	for _, m := range list {
		m.source(t, root)
	}
}

// The list is long enough, and no two of it are the same relay.
func TestTheListIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range list {
		if key := m.file + m.old + m.new; seen[key] || m.old == m.new || m.does == "" || m.red == "" {
			t.Errorf("%q is no mutant of its own", m.does)
		} else {
			seen[key] = true
		}
	}
	if len(list) < leastMutants {
		t.Errorf("%d mutants, want at least %d", len(list), leastMutants)
	}
}

// sample draws from the list: of the mutants that a room's own tests notice every
// eighth, and of those that take the built program every twentieth, since each of them
// builds it and takes many seconds.
type sample struct{ rooms, programs int }

// takes reports whether a mutant is drawn.
func (s *sample) takes(m mutant) bool {
	if strings.HasPrefix(m.in, "integration/") {
		s.programs++
		return s.programs%20 == 1
	}
	s.rooms++
	return s.rooms%8 == 1
}

// leastMutants is how many wrong relays the suite is held to notice.
const leastMutants = 20
