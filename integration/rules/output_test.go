package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// logging is the one room that uses loggers of the standard library: its Logger is the one function that writes to the
// log (contract §18).
const logging = "duty"

// mayName is what another room may name of packages that write to the log or to standard output, by import path. Of
// those that are not in it, it may name whatever is not in mayNotName.
var mayName = map[string][]string{
	"log/slog": {"Level", "LevelDebug", "LevelInfo", "LevelWarn", "LevelError"},
	// http.Server wants one; see discards.
	"log": {"Logger"},
}

// mayNotName is what reaches standard output or standard error past the logger. Nobody may name it, duty neither: what
// its logger writes to is given to it.
var mayNotName = map[string][]string{
	"os":            {"Stdout", "Stderr", "NewFile"}, // a file can be made of the number of either
	"syscall":       {"Stdout", "Stderr"},
	"fmt":           {"Print", "Printf", "Println"},
	"runtime/debug": {"PrintStack"},
}

// outputExceptions are what single files name nevertheless.
var outputExceptions = []outputException{
	{"cmd/relay/main.go", "os.Stdout", "hands it to the verbs for their answers"},
	{"cmd/relay/main.go", "os.Stderr", "hands it to the logger, and to the verbs for why they refused"},
	{"duty/failpoint/on.go", "os.Stderr", "ends before there is a logger, and is in no program that is shipped"},
}

type outputException struct{ file, names, why string }

// outputFaults says which files of the product write otherwise than by duty.Logger or the exceptions, and which of the
// exceptions nothing needs. Integration is a test of the product and no part of it.
func outputFaults(sources []source, exceptions []outputException) []string {
	var faults []string
	needed := map[outputException]bool{}
	for _, s := range sources {
		if strings.HasSuffix(s.name, "_test.go") || under(s.name, "integration") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), s.name, s.text, parser.SkipObjectResolution)
		if err != nil {
			return append(faults, err.Error())
		}
		named, found := writersOf(file, under(s.name, logging))
		for _, what := range found {
			faults = append(faults, s.name+": "+what)
		}
		for _, name := range named {
			at := slices.IndexFunc(exceptions, func(x outputException) bool { return x.file == s.name && x.names == name })
			if at < 0 {
				faults = append(faults, fmt.Sprintf("%s: names %s: duty.Logger is the one function that writes", s.name, name))
				continue
			}
			needed[exceptions[at]] = true
		}
	}
	for _, x := range exceptions {
		if !needed[x] {
			faults = append(faults, fmt.Sprintf("%s: does not name %s, which it %s; remove the exception", x.file, x.names, x.why))
		}
	}
	slices.Sort(faults)
	return faults
}

// writersOf returns what a file names that it may not, each time that it does, and other faults. Own is a file of the
// room that logs.
func writersOf(file *ast.File, own bool) (named, faults []string) {
	paths := map[string]string{} // by the name that the file gives the package
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if mayName[path] == nil && mayNotName[path] == nil {
			continue
		}
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." {
			faults = append(faults, fmt.Sprintf("imports the names of %s, which hides their use", path))
		}
		paths[name] = path
	}
	right := map[ast.Node]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if discards(n, paths) {
				right[n.Fun] = true
			}
			if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "print" || f.Name == "println") {
				named = append(named, f.Name)
			}
		case *ast.SelectorExpr:
			of, ok := n.X.(*ast.Ident)
			if !ok || paths[of.Name] == "" || right[n] {
				return true
			}
			path := paths[of.Name]
			may, listed := mayName[path]
			if listed && !own && !slices.Contains(may, n.Sel.Name) || slices.Contains(mayNotName[path], n.Sel.Name) {
				named = append(named, path+"."+n.Sel.Name)
			}
		}
		return true
	})
	return named, faults
}

// discards tells whether a call makes a logger of the standard library that writes nothing.
func discards(call *ast.CallExpr, paths map[string]string) bool {
	names := func(x ast.Expr, path, name string) bool {
		s, ok := x.(*ast.SelectorExpr)
		if !ok || s.Sel.Name != name {
			return false
		}
		of, ok := s.X.(*ast.Ident)
		return ok && (paths[of.Name] == path || of.Name == path)
	}
	return names(call.Fun, "log", "New") && len(call.Args) > 0 && names(call.Args[0], "io", "Discard")
}

// R94: duty.Logger is the one function that writes to the log. No other room of the product uses log or log/slog, their
// levels and loggers that discard everything apart; and none, duty neither, names standard output or standard error or
// prints to them, but the command that hands them to its verbs and to the logger.
func TestR94_OneLoggingFunction(t *testing.T) {
	sources := readSources(t, moduleRoot(t))
	if len(sources) == 0 {
		t.Fatal("found no Go files")
	}
	for _, fault := range outputFaults(sources, outputExceptions) {
		t.Error(fault)
	}
}

func TestOutputFaults(t *testing.T) {
	const why = ": duty.Logger is the one function that writes"
	exceptions := []outputException{{"cmd/relay/main.go", "os.Stderr", "hands on"}}
	needs := source{"cmd/relay/main.go", []byte("package main\n\nimport \"os\"\n\nvar err = os.Stderr\n")}
	tests := map[string]struct {
		name, text string
		want       []string
	}{
		"levels":                     {"hub/a.go", `import "log/slog"; var l slog.Level = slog.LevelInfo`, nil},
		"slog's default":             {"hub/a.go", `import "log/slog"; func f() { slog.Info("x") }`, []string{"hub/a.go: names log/slog.Info" + why}},
		"a handler":                  {"hub/a.go", `import "log/slog"; var h = slog.NewJSONHandler`, []string{"hub/a.go: names log/slog.NewJSONHandler" + why}},
		"in duty":                    {"duty/a.go", `import ("log"; "log/slog"); func f() { slog.Info("x"); log.Print("x") }`, nil},
		"below duty":                 {"duty/field/a.go", `import "log/slog"; var a slog.Attr`, nil},
		"a room with a like name":    {"dutyfree/a.go", `import "log"; var p = log.Print`, []string{"dutyfree/a.go: names log.Print" + why}},
		"under another name":         {"hub/a.go", `import l "log"; func f() { l.Println("x") }`, []string{"hub/a.go: names log.Println" + why}},
		"under none":                 {"hub/a.go", `import . "log/slog"; func f() { Info("x") }`, []string{"hub/a.go: imports the names of log/slog, which hides their use"}},
		"a logger that discards":     {"demo/a.go", `import ("io"; "log"); var l *log.Logger = log.New(io.Discard, "", 0)`, nil},
		"a logger that writes":       {"demo/a.go", `import ("log"; "os"); var l = log.New(os.Stderr, "", 0)`, []string{"demo/a.go: names log.New" + why, "demo/a.go: names os.Stderr" + why}},
		"a logger for anything":      {"demo/a.go", `import ("io"; "log"); func f(w io.Writer) { log.New(w, "", 0) }`, []string{"demo/a.go: names log.New" + why}},
		"standard output":            {"hub/a.go", `import ("fmt"; "os"); func f() { fmt.Fprint(os.Stdout, "x") }`, []string{"hub/a.go: names os.Stdout" + why}},
		"standard error in duty":     {"duty/a.go", `import "os"; var e = os.Stderr`, []string{"duty/a.go: names os.Stderr" + why}},
		"another file of an excused": {"cmd/relay/a.go", `import "os"; var e = os.Stderr`, []string{"cmd/relay/a.go: names os.Stderr" + why}},
		"standard error by number":   {"hub/a.go", `import "os"; var e = os.NewFile(2, "")`, []string{"hub/a.go: names os.NewFile" + why}},
		"printing":                   {"hub/a.go", `import "fmt"; func f() { fmt.Printf("x"); fmt.Sprint("x") }`, []string{"hub/a.go: names fmt.Printf" + why}},
		"built in":                   {"hub/a.go", `func f() { println("x"); print("x") }`, []string{"hub/a.go: names print" + why, "hub/a.go: names println" + why}},
		"a method of that name":      {"demo/a.go", `type p struct{}; func (p) print() {}; func f(x p) { x.print() }`, nil},
		"a stack":                    {"hub/a.go", `import "runtime/debug"; func f() { debug.PrintStack() }`, []string{"hub/a.go: names runtime/debug.PrintStack" + why}},
		"a test":                     {"hub/a_test.go", `import "log"; func f() { log.Print("x") }`, nil},
		"integration":                {"integration/rig/a.go", `import "os"; var e = os.Stderr`, nil},
		"an exception too many": {"cmd/relay/main.go", ``, []string{
			"cmd/relay/main.go: does not name os.Stderr, which it hands on; remove the exception"}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			sources := []source{{test.name, []byte("package p; " + test.text + "\n")}}
			if test.name != needs.name {
				sources = append(sources, needs)
			}
			if got := outputFaults(sources, exceptions); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
