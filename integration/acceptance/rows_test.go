package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEveryRowStandsOnce(t *testing.T) {
	if len(rows) != 97 {
		t.Errorf("%d rows; the contract has 97", len(rows))
	}
	rooms, err := readRooms(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		if r.number != i+1 {
			t.Errorf("row %d is %s", i+1, r.name())
		}
		if _, ok := rooms[r.room]; !ok {
			t.Errorf("%s: %s/ is not in docs/architecture.md", r.name(), r.room)
		}
		if len(r.title) < 10 || strings.HasSuffix(r.title, ".") {
			t.Errorf("%s: %q is no title", r.name(), r.title)
		}
	}
	for _, name := range ground {
		if _, ok := rooms[name]; !ok {
			t.Errorf("%s/ is not in docs/architecture.md", name)
		}
	}
}

// The packages that bear numbers now all have a level, so that the page can be made.
func TestEveryNumberedPackageHasALevel(t *testing.T) {
	tree, _, err := scanTree(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for id, f := range tree {
		if _, ok := levelOf(id.folder); !ok && !f.numbers.none() {
			t.Errorf("%s: %s stands in %s/, whose level is not in the table", f.place(), id.function, id.folder)
		}
	}
}

func TestLevelOf(t *testing.T) {
	for folder, want := range map[string]string{
		"integration/escrow": "program", "appliance": "relay", "hub/node/tun": "room", "simulate": "peer", "typedsocket/envelope": "room",
		"integration": "none", "integration/other": "none", "hubs": "none", "cmd": "none", ".": "none",
	} {
		got := "none"
		if l, ok := levelOf(folder); ok {
			got = l.String()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", folder, got, want)
		}
	}
}

func TestReadRooms(t *testing.T) {
	dir := t.TempDir()
	if _, err := readRooms(dir); err == nil {
		t.Error("a tree without the page has rooms")
	}
	table := "# A\n\n| room | its job | state |\n| --- | --- | --- |\n| `hub/` | the hub | here |\n| `cmd/relay/` | the program | later |\n"
	write(t, filepath.Join(dir, "docs", "architecture.md"), table)
	got, err := readRooms(dir)
	if err != nil || fmt.Sprint(got) != "map[cmd/relay:false hub:true]" {
		t.Errorf("%v, %v", got, err)
	}
	write(t, filepath.Join(dir, "docs", "architecture.md"), "| hub/ | the hub | here |\n")
	if got, err := readRooms(dir); err == nil {
		t.Errorf("a page without the table has the rooms %v", got)
	}
}

// root is the root of this module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// wantLines compares faults with what each has to say, in any order.
func wantLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	rest := slices.Clone(got)
	for _, part := range want {
		at := slices.IndexFunc(rest, func(line string) bool { return strings.Contains(line, part) })
		if at < 0 {
			t.Errorf("%s: nothing says %q", what, part)
			continue
		}
		rest = slices.Delete(rest, at, at+1)
	}
	if len(rest) > 0 {
		t.Errorf("%s: nothing was to say\n%s", what, strings.Join(rest, "\n"))
	}
}
