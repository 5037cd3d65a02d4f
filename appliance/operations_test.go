package appliance

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// docs/operations.md names every check of a relay with a hub, and says which of them make
// it not ready.
func TestTheManualSaysWhichChecksAreRequired(t *testing.T) {
	is := map[string]map[string]bool{} // by check: required, advice, or by its duty or in time both
	look := func(r *rig) {
		for _, f := range r.findings() {
			if is[f.Check] == nil {
				is[f.Check] = map[string]bool{}
			}
			is[f.Check][map[bool]string{false: "required", true: "advice"}[f.Advice]] = true
		}
	}
	bubble(t, func(t *testing.T) {
		r := newRig(t, withHub(t))
		r.registered(0)
		look(r)
		r.relay.operator.SetDraining()
		look(r)
	})

	manual, err := os.ReadFile(filepath.Join("..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(manual), "## What each check asks of you\n")
	table, _, found := strings.Cut(rest, "\n### ")
	if !found {
		t.Fatal("the manual has no table of checks")
	}
	said := map[string]map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		names := strings.Split(cells[0], "`")
		if !strings.HasPrefix(line, "| `") || len(cells) < 2 {
			continue
		}
		for i := 1; i < len(names); i += 2 {
			said[names[i]] = map[string]bool{}
			for _, kind := range []string{"required", "advice"} {
				if strings.Contains(cells[1], kind) {
					said[names[i]][kind] = true
				}
			}
		}
	}
	if diff := cmp.Diff(is, said); diff != "" {
		t.Errorf("checks (-relay +manual):\n%s\nthe relay has %v", diff, slices.Sorted(maps.Keys(is)))
	}
}
