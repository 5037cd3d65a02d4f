package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A module of this one's name with a test that passes, one that is skipped and, in subtests, a row; its own go command
// runs it, so that what this reads is what go test really writes.
func smallModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":               "module serve.zone/relay\n\ngo 1.26\n",
		"docs/architecture.md": "| `contract/` | words | here |\n| `hub/` | the hub | here |\n| `corestore/` | storage | later |\n",
		"contract/id_test.go":  "package contract\n\nimport \"testing\"\n\n// R01: ids are judged by their rule.\nfunc TestR01_IDs(t *testing.T) {}\n",
		"hub/key_test.go": `package hub

import "testing"

// R61, R62: keys connect and grants
// let packets pass.
func TestR61_R62_Keys(t *testing.T) {
	t.Run("R01 ids", func(t *testing.T) {})
}

// R61: the tunnel of this machine is used.
func TestR61_Tunnel(t *testing.T) { t.Skip("no tunnel here") }

// B118: any packet is judged alike.
func FuzzB118_Judge(f *testing.F) { f.Add(1); f.Fuzz(func(*testing.T, int) {}) }

func Example() {
	// Output:
}
`,
	} {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	return dir
}

// goTest runs the tests of a module and returns the file with the events.
func goTest(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-json"}, append(args, "./...")...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "run.json")
	write(t, name, string(out))
	return name
}

func TestOfARealRun(t *testing.T) {
	dir := smallModule(t)
	events := goTest(t, dir, "-count=1")
	page, err := generate(dir, someRows, []string{events})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"- 3 of 4 rows are held.\n",
		"- room, [TestR01_IDs](../contract/id_test.go): ids are judged by their rule.\n" +
			"- room, [TestR61_R62_Keys](../hub/key_test.go) in R01_ids: keys connect and grants let packets pass.\n",
		"- room, [TestR61_Tunnel](../hub/key_test.go): the tunnel of this machine is used. (**does not count**: skipped: no tunnel here)\n",
		"| B118 | room | [FuzzB118_Judge](../hub/key_test.go) | any packet is judged alike. |\n",
	} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if got := shown(t, events); strings.Count(got, "ok  \tserve.zone/relay/") != 2 || strings.Count(got, "\n") != 2 {
		t.Errorf("shown as\n%s", got)
	}
	commands(t, dir, events, string(page))
}

// shown is a run as a run without -json prints it.
func shown(t *testing.T, events string) string {
	t.Helper()
	f, err := os.Open(events)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out strings.Builder
	if err := run(rows, []string{"-show"}, f, &out, io.Discard); err != nil {
		t.Error(err)
	}
	return out.String()
}

// commands gives the command line every form there is, for a run and the page of it.
func commands(t *testing.T, dir, events, page string) {
	t.Chdir(filepath.Join(dir, "hub")) // any folder of the module will do
	command := func(rows []row, args ...string) (string, error) {
		var out strings.Builder
		err := run(rows, args, strings.NewReader(""), &out, io.Discard)
		return out.String(), err
	}
	// The table of the contract has rows of rooms that this module has not.
	_, err := command(rows, "-json", events)
	if err == nil || !strings.Contains(err.Error(), "there is no page of this run") || !strings.Contains(err.Error(), "R97 is a duty of appliance/") {
		t.Errorf("the table of the contract: %v", err)
	}
	if out, err := command(someRows, "-json", events); err != nil || out != page {
		t.Errorf("to standard output: %v: %s", err, out)
	}
	name := filepath.Join(dir, "page.md")
	if out, err := command(someRows, "-json", events, "-o", name); err != nil || out != "" {
		t.Errorf("-o: %v: %s", err, out)
	}
	if written, err := os.ReadFile(name); err != nil || string(written) != page {
		t.Errorf("-o wrote another page: %v", err)
	}
	if out, err := command(someRows, "-json", events, "-check", name); err != nil || out != "" {
		t.Errorf("-check of the page itself: %v: %s", err, out)
	}
	write(t, name, strings.Replace(page, "ids are judged", "ids are guessed", 1))
	out, err := command(someRows, "-json", events, "-check", name)
	if !errors.Is(err, errDiffers) || !strings.Contains(out, "\n-- room, [TestR01_IDs](../contract/id_test.go): ids are guessed") ||
		!strings.Contains(out, "\n+- room, [TestR01_IDs](../contract/id_test.go): ids are judged") {
		t.Errorf("-check of another page: %v: %s", err, out)
	}
	for _, args := range [][]string{
		{}, {"-check", name}, {"-json", events, "more"}, {"-json", events, "-o", name, "-check", name}, {"-show", "-json", events},
		{"-show", "-o", name}, {"-json", events + "x"}, {"-json", name}, {"-json", events, "-check", name + "x"},
		{"-json", events, "-json", events + "x"}, {"-json", events, "-o", filepath.Join(dir, "none", "page.md")}, {"-unknown"},
	} {
		if out, err := command(someRows, args...); err == nil || out != "" {
			t.Errorf("%q: %v: %s", args, err, out)
		}
	}
	if _, err := command(someRows, "-h"); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
	t.Chdir(t.TempDir())
	if _, err := command(someRows, "-json", events); err == nil || !strings.Contains(err.Error(), "not in the module") {
		t.Errorf("outside of the module: %v", err)
	}
}

func TestOfARealRunThatProvesNothing(t *testing.T) {
	dir := smallModule(t)
	refused := func(what, events string, wants ...string) {
		t.Helper()
		_, err := generate(dir, someRows, []string{events})
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: nothing says %q: %v", what, want, err)
			}
		}
	}
	goTest(t, dir, "-run=TestR01")
	refused("out of the cache, and one test alone", goTest(t, dir, "-run=TestR01"), "contract comes out of the cache", "TestR61_R62_Keys did not run")

	write(t, filepath.Join(dir, "hub", "more_test.go"), "package hub\n\nimport \"testing\"\n\nfunc TestPanics(t *testing.T) { panic(\"here it is\") }\n")
	write(t, filepath.Join(dir, "contract", "more_test.go"), "package contract\n\nfunc nothing() int {}\n")
	events := goTest(t, dir)
	refused("a panic, and what does not build", events, "hub TestPanics failed", "hub failed", "[serve.zone/relay/contract.test] does not build")
	if got := shown(t, events); !strings.Contains(got, "panic: here it is") || !strings.Contains(got, "missing return") || !strings.Contains(got, "[build failed]") {
		t.Errorf("shown as\n%s", got)
	}
}
