package rules

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxLines keeps a file readable in one sitting; most are far shorter.
const maxLines = 600

// A goFolder is a folder that holds Go files.
type goFolder struct {
	path   string   // relative to the root, with slashes
	files  []string // names
	nested bool     // belongs to a module below this one
}

// goFolders walks the repository as the go command does, nested modules included, installed Node packages not.
func goFolders(t *testing.T, root string) []goFolder {
	t.Helper()
	found := map[string]*goFolder{}
	var nested []string
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		path = filepath.ToSlash(path)
		if entry.IsDir() {
			if path != "." && skipped(entry.Name()) {
				return fs.SkipDir
			}
			if path != "." && exists(t, filepath.Join(name, "go.mod")) {
				nested = append(nested, path)
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		if found[dir] == nil {
			inNested := slices.ContainsFunc(nested, func(folder string) bool { return under(dir, folder) })
			found[dir] = &goFolder{path: dir, nested: inNested}
		}
		found[dir].files = append(found[dir].files, entry.Name())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var folders []goFolder
	for _, folder := range found {
		folders = append(folders, *folder)
	}
	slices.SortFunc(folders, func(a, b goFolder) int { return strings.Compare(a.path, b.path) })
	return folders
}

// skipped tells whether a folder of that name holds no Go package of ours.
func skipped(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "node_modules"
}

func TestFileRules(t *testing.T) {
	root := moduleRoot(t)
	folders := goFolders(t, root)
	if len(folders) == 0 {
		t.Fatal("found no Go files")
	}
	for _, folder := range folders {
		sources := map[string][]byte{}
		for _, name := range folder.files {
			content, err := os.ReadFile(filepath.Join(root, folder.path, name))
			if err != nil {
				t.Fatal(err)
			}
			sources[name] = content
		}
		for _, fault := range folderFaults(sources) {
			t.Errorf("%s: %s", folder.path, fault)
		}
	}
}

// folderFaults names every file rule that the Go files of one folder break: none above maxLines, and a comment that
// says what the package promises, in doc.go unless it is a command or has no code outside its tests.
func folderFaults(sources map[string][]byte) []string {
	var faults []string
	var names []string
	for name, content := range sources {
		names = append(names, name)
		if lines := bytes.Count(content, []byte("\n")); lines > maxLines {
			faults = append(faults, fmt.Sprintf("%s has %d lines, more than %d", name, lines, maxLines))
		}
	}
	slices.Sort(names)
	product := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return strings.HasSuffix(name, "_test.go") })

	documented := func(name string) *ast.File {
		file, err := parser.ParseFile(token.NewFileSet(), name, sources[name], parser.PackageClauseOnly|parser.ParseComments)
		if err != nil || file.Doc.Text() == "" {
			return nil
		}
		return file
	}
	if len(product) == 0 {
		if !slices.ContainsFunc(names, func(name string) bool { return documented(name) != nil }) {
			faults = append(faults, "no test file has a package comment")
		}
		return faults
	}
	if command := documentedCommand(product, documented); command {
		return faults
	}
	doc := documented("doc.go")
	switch {
	case doc == nil:
		faults = append(faults, "no doc.go with a package comment")
	case !strings.HasPrefix(doc.Doc.Text(), "Package "+doc.Name.Name+" "):
		faults = append(faults, "the comment of doc.go does not begin with the package's name")
	}
	return faults
}

// documentedCommand tells whether one of the files has the comment of a package main.
func documentedCommand(product []string, documented func(string) *ast.File) bool {
	return slices.ContainsFunc(product, func(name string) bool {
		file := documented(name)
		return file != nil && file.Name.Name == "main"
	})
}

func TestFolderFaults(t *testing.T) {
	long := func(lines int) string { return "package p\n" + strings.Repeat("\n", lines-1) }
	const doc = "// Package p promises.\npackage p\n"
	tests := []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"documented", map[string]string{"doc.go": doc, "p.go": "package p\n"}, nil},
		{"no doc.go", map[string]string{"p.go": doc}, []string{"no doc.go with a package comment"}},
		{"doc.go without a comment", map[string]string{"doc.go": "package p\n"}, []string{"no doc.go with a package comment"}},
		{"a comment that is no package comment", map[string]string{"doc.go": "// Package p promises.\n\npackage p\n"}, []string{"no doc.go with a package comment"}},
		{"a comment about another package", map[string]string{"doc.go": "// Package q promises.\npackage p\n"}, []string{"the comment of doc.go does not begin with the package's name"}},
		{"a command", map[string]string{"main.go": "// Command relay relays.\npackage main\n"}, nil},
		{"a command without a comment", map[string]string{"main.go": "package main\n"}, []string{"no doc.go with a package comment"}},
		{"tests only", map[string]string{"a_test.go": "package p\n", "b_test.go": doc}, nil},
		{"tests only, without a comment", map[string]string{"a_test.go": "package p\n"}, []string{"no test file has a package comment"}},
		{"a comment in a test is none for the package", map[string]string{"p.go": "package p\n", "a_test.go": doc}, []string{"no doc.go with a package comment"}},
		{"600 lines", map[string]string{"doc.go": doc, "p.go": long(600)}, nil},
		{"601 lines", map[string]string{"doc.go": doc, "p.go": long(601)}, []string{"p.go has 601 lines, more than 600"}},
		{"601 lines of test", map[string]string{"doc.go": doc, "p_test.go": long(601)}, []string{"p_test.go has 601 lines, more than 600"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			sources := map[string][]byte{}
			for name, content := range test.files {
				sources[name] = []byte(content)
			}
			if got := folderFaults(sources); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
