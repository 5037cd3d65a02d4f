package rules

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testCommand is what README.md tells a newcomer to run; continuous integration runs the same.
const testCommand = "go test ./..."

func TestReadmeCommandIsRunByCI(t *testing.T) {
	root := moduleRoot(t)
	for _, name := range []string{"README.md", ".ci/run"} {
		if !strings.Contains(readText(t, root, name), testCommand) {
			t.Errorf("%s does not contain the command %q", name, testCommand)
		}
	}
}

var (
	// A row of the table of rooms in docs/architecture.md: folder, job, state.
	roomRow = regexp.MustCompile("(?m)^\\| `([a-z/]+)/` \\| .* \\| (here|later) \\|$")
	// A link in Markdown whose target has no scheme and is no anchor.
	relativeLink = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
)

// The table of rooms promises nothing that does not exist, and leaves out nothing that may.
func TestArchitectureNamesEveryRoom(t *testing.T) {
	root := moduleRoot(t)
	states := map[string]string{}
	for _, row := range roomRow.FindAllStringSubmatch(readText(t, root, "docs/architecture.md"), -1) {
		folder, state := row[1], row[2]
		if states[folder] != "" {
			t.Errorf("%s stands in the table twice", folder)
		}
		states[folder] = state
		if exists(t, filepath.Join(root, folder)) != (state == "here") {
			t.Errorf("%s is said to be %q", folder, state)
		}
	}
	for name := range rooms {
		if states[name] == "" {
			t.Errorf("%s is not in the table", name)
		}
	}
}

func TestLinksBetweenDocumentsLead(t *testing.T) {
	root := moduleRoot(t)
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != root && skipped(entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".md" {
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, target := range relativeLinks(string(content)) {
			if !exists(t, filepath.Join(filepath.Dir(name), filepath.FromSlash(target))) {
				t.Errorf("%s links to %s, which does not exist", name, target)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func relativeLinks(text string) []string {
	var targets []string
	for _, match := range relativeLink.FindAllStringSubmatch(text, -1) {
		targets = append(targets, match[1])
	}
	return targets
}

func TestRelativeLinks(t *testing.T) {
	text := "[a](docs/a.md) [b](https://example.org/b) [c](#part) [d](../d.md#part) (no link) [e]"
	if diff := cmp.Diff([]string{"docs/a.md", "../d.md"}, relativeLinks(text)); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

func readText(t *testing.T, root, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
