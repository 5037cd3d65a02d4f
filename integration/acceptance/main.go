package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

const module = "serve.zone/relay"

func main() {
	err := run(rows, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "acceptance:", err)
		os.Exit(1)
	}
}

// errDiffers means that the page that was checked is not the one of the run; how was printed.
var errDiffers = errors.New("the page is not that of this run; -o writes it anew")

func run(rows []row, args []string, in io.Reader, out, help io.Writer) error {
	flags := flag.NewFlagSet("acceptance", flag.ContinueOnError)
	flags.SetOutput(help)
	var streams []string
	flags.Func("json", "a `file` that go test -json wrote; may be given more than once", func(name string) error {
		streams = append(streams, name)
		return nil
	})
	write := flags.String("o", "", "the `file` to write the page to, instead of standard output")
	check := flags.String("check", "", "the `file` to compare the page with; where it differs, how is printed")
	show := flags.Bool("show", false, "print the run that comes in on standard input as go test prints it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("nothing is expected behind the flags: %q", flags.Args())
	case *show && (len(streams) > 0 || *write != "" || *check != ""):
		return errors.New("-show goes with no other flag")
	case *show:
		return showRun(in, out)
	case len(streams) == 0:
		return errors.New("-json is missing: without a run there is nothing to say")
	case *write != "" && *check != "":
		return errors.New("-o and -check exclude each other")
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	page, err := generate(root, rows, streams)
	if err != nil {
		return err
	}
	switch {
	case *check != "":
		held, err := os.ReadFile(*check)
		if err != nil {
			return err
		}
		if how := diff.Diff(*check, held, "this run", page); how != nil {
			return errors.Join(wrote(out.Write(how)), errDiffers)
		}
		return nil
	case *write != "":
		return os.WriteFile(*write, page, 0o644)
	}
	return wrote(out.Write(page))
}

func wrote(_ int, err error) error { return err }

// generate returns the page of the tree under root for the runs in the files, or every reason why there is none.
func generate(root string, rows []row, streams []string) ([]byte, error) {
	rooms, err := readRooms(root)
	if err != nil {
		return nil, err
	}
	tree, faults, err := scanTree(root)
	if err != nil {
		return nil, err
	}
	ran := newResults()
	for _, name := range streams {
		if err := readFile(ran, name); err != nil {
			return nil, err
		}
	}
	m, more := join(rows, rooms, tree, ran)
	if faults = slices.Concat(faults, ran.faults, more); len(faults) > 0 {
		return nil, fmt.Errorf("there is no page of this run:\n  %s", strings.Join(faults, "\n  "))
	}
	return m.page(), nil
}

func readFile(into *results, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return into.read(name, f)
}

// moduleRoot finds the root of this module from the folder that the command runs in.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(content), "module "+module+"\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("this folder is not in the module %s", module)
		}
		dir = parent
	}
}
