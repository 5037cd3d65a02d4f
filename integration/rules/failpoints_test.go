package rules

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Where failpoints are: the functions that places call and the names, and behind them the
// machine and its remote control, which only a tagged program and tests have.
const (
	failpoints   = "duty/failpoint"
	failpointTag = "failpoints"
)

// A source is one Go file of this module.
type source struct {
	name string // below the module's root, with slashes
	text []byte
}

// failpointFaults says where the rules about failpoints are broken: each name is in the list
// and stands at one place of the product, no file but those of the package knows the tag, and
// no product imports the control.
func failpointFaults(sources []source) []string {
	var faults []string
	names, listed, placed := map[string]bool{}, map[string]bool{}, map[string][]string{}
	fileSet := token.NewFileSet()
	for _, s := range sources {
		file, err := parser.ParseFile(fileSet, s.name, s.text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return append(faults, err.Error())
		}
		own := under(s.name, failpoints)
		if !own && knowsTag(file) {
			faults = append(faults, fmt.Sprintf("%s: only %s knows the tag %s", s.name, failpoints, failpointTag))
		}
		if strings.HasSuffix(s.name, "_test.go") || under(s.name, "integration") {
			continue
		}
		if s.name == failpoints+"/name.go" {
			for _, name := range namesOf(file) {
				names[name] = true
			}
			for _, name := range elementsOf(file) {
				listed[name] = true
			}
		}
		if own {
			continue
		}
		for _, spec := range file.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); under(path, module+"/"+failpoints+"/control") {
				faults = append(faults, fmt.Sprintf("%s: only tests steer failpoints", s.name))
			}
		}
		for _, name := range selected(file) {
			placed[name] = append(placed[name], s.name)
		}
	}
	if len(names) == 0 {
		faults = append(faults, failpoints+"/name.go: there are no names")
	}
	for name := range names {
		if !listed[name] {
			faults = append(faults, fmt.Sprintf("failpoint %s: it is not in the list of all", name))
		}
		if at := placed[name]; len(at) != 1 {
			faults = append(faults, fmt.Sprintf("failpoint %s: it stands at %d places %v, want one", name, len(at), at))
		}
	}
	slices.Sort(faults)
	return faults
}

// knowsTag reports whether the build constraints of a file name the tag.
func knowsTag(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if !constraint.IsGoBuild(comment.Text) && !constraint.IsPlusBuild(comment.Text) {
				continue
			}
			x, err := constraint.Parse(comment.Text)
			if err != nil {
				continue
			}
			known := false
			x.Eval(func(tag string) bool { known = known || tag == failpointTag; return false })
			if known {
				return true
			}
		}
	}
	return false
}

// namesOf returns the constants of type Name.
func namesOf(file *ast.File) []string {
	var names []string
	for _, declaration := range file.Decls {
		constants, ok := declaration.(*ast.GenDecl)
		if !ok || constants.Tok != token.CONST {
			continue
		}
		for _, spec := range constants.Specs {
			value := spec.(*ast.ValueSpec)
			if of, ok := value.Type.(*ast.Ident); ok && of.Name == "Name" {
				for _, name := range value.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

// elementsOf returns the names that stand in the lists of a file.
func elementsOf(file *ast.File) []string {
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		if list, ok := n.(*ast.CompositeLit); ok {
			for _, element := range list.Elts {
				if name, ok := element.(*ast.Ident); ok {
					names = append(names, name.Name)
				}
			}
		}
		return true
	})
	return names
}

// selected returns what a file names of package failpoint, each time that it does.
func selected(file *ast.File) []string {
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if of, ok := s.X.(*ast.Ident); ok && of.Name == "failpoint" {
				names = append(names, s.Sel.Name)
			}
		}
		return true
	})
	return names
}

func TestFailpointRules(t *testing.T) {
	for _, fault := range failpointFaults(readSources(t, moduleRoot(t))) {
		t.Error(fault)
	}
}

// readSources reads every Go file of this module, nested ones left out.
func readSources(t *testing.T, root string) []source {
	t.Helper()
	var sources []source
	for _, folder := range goFolders(t, root) {
		if folder.nested {
			continue
		}
		for _, name := range folder.files {
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(folder.path), name))
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, source{folder.path + "/" + name, text})
		}
	}
	return sources
}

func TestFailpointFaults(t *testing.T) {
	const names = "package failpoint\n\ntype Name string\n\nconst Variable = \"X\"\n\nconst (\n\tA Name = \"a\"\n\tB Name = \"b\"\n)\n"
	const list = "\nfunc Names() []Name { return []Name{A, B} }\n"
	right := map[string]string{
		"duty/failpoint/name.go": names + list,
		"duty/failpoint/on.go":   "//go:build failpoints\n\npackage failpoint\n\nimport _ \"" + module + "/duty/failpoint/control\"\n",
		"hub/a.go":               "package hub\n\nfunc a() { failpoint.Reach(failpoint.A) }\n",
		"cmd/relay/main.go":      "//go:build linux || !cgo\n\npackage main\n\nvar b = failpoint.Wall(failpoint.B, nil)\n",
		"hub/a_test.go":          "package hub\n\nvar again = failpoint.A\n",
		"integration/soak/s.go":  "package soak\n\nimport _ \"" + module + "/duty/failpoint/control\"\n\nvar again = failpoint.A\n",
	}
	tests := map[string]struct {
		name, text string
		want       []string
	}{
		"right":             {"hub/b.go", "package hub\n", nil},
		"twice":             {"hub/b.go", "package hub\n\nvar again = failpoint.A\n", []string{"failpoint A: it stands at 2 places [hub/a.go hub/b.go], want one"}},
		"twice in one file": {"hub/a.go", right["hub/a.go"] + "\nvar again = failpoint.A\n", []string{"failpoint A: it stands at 2 places [hub/a.go hub/a.go], want one"}},
		"nowhere":           {"hub/a.go", "package hub\n", []string{"failpoint A: it stands at 0 places [], want one"}},
		"the tag elsewhere": {"hub/b.go", "//go:build !failpoints && linux\n\npackage hub\n", []string{"hub/b.go: only duty/failpoint knows the tag failpoints"}},
		"the tag in a test": {"hub/b_test.go", "//go:build failpoints\n\npackage hub\n", []string{"hub/b_test.go: only duty/failpoint knows the tag failpoints"}},
		"the control":       {"hub/b.go", "package hub\n\nimport _ \"" + module + "/duty/failpoint/control\"\n", []string{"hub/b.go: only tests steer failpoints"}},
		"not in the list":   {"duty/failpoint/name.go", names + strings.Replace(list, ", B", "", 1), []string{"failpoint B: it is not in the list of all"}},
		"no names":          {"duty/failpoint/name.go", "package failpoint\n", []string{"duty/failpoint/name.go: there are no names"}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			var sources []source
			for name, text := range right {
				if name != test.name {
					sources = append(sources, source{name, []byte(text)})
				}
			}
			sources = append(sources, source{test.name, []byte(test.text)})
			slices.SortFunc(sources, func(a, b source) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
			if got := failpointFaults(sources); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
