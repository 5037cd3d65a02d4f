package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A testID names a test of this module: its folder with slashes, and the function.
type testID struct{ folder, function string }

// A testFunc is a test as it stands in the tree.
type testFunc struct {
	file     string // with slashes, below the root
	line     int
	comment  string
	numbers  numbers // of its comment; none where its name bears none
	sentence string
	built    bool // not kept out of a build on this machine by a constraint or the file's name
}

func (f testFunc) place() string { return fmt.Sprintf("%s:%d", f.file, f.line) }

// scanTree reads every test function of the module, and names each numbered one that does not say what it asserts.
func scanTree(root string) (map[testID]testFunc, []string, error) {
	found := map[testID]testFunc{}
	var faults []string
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != root && (passedOver(entry.Name()) || nestedModule(name)) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		more, err := scanFile(root, name, found)
		faults = append(faults, more...)
		return err
	})
	return found, faults, err
}

// passedOver tells whether the go command sees no package in a folder of that name, or npm put it there.
func passedOver(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "node_modules"
}

func nestedModule(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

func scanFile(root, name string, found map[testID]testFunc) (faults []string, err error) {
	path, err := filepath.Rel(root, name)
	if err != nil {
		return nil, err
	}
	path = filepath.ToSlash(path)
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	built, err := build.Default.MatchFile(filepath.Dir(name), filepath.Base(name))
	if err != nil {
		return nil, err
	}
	for _, decl := range file.Decls {
		function, ok := decl.(*ast.FuncDecl)
		if !ok || function.Recv != nil || !isTest(function.Name.Name) {
			continue
		}
		f := testFunc{file: path, line: set.Position(function.Pos()).Line, comment: function.Doc.Text(), built: built}
		if err := f.readNumbers(function.Name.Name); err != nil {
			faults = append(faults, fmt.Sprintf("%s: %s %v", f.place(), function.Name.Name, err))
		}
		id := testID{parentOf(path), function.Name.Name}
		// Of two files for two systems the one that is built here is meant.
		if held, twice := found[id]; !twice || !held.built {
			found[id] = f
		}
	}
	return faults, nil
}

func isTest(name string) bool {
	return name != "TestMain" && (strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz"))
}

// readNumbers compares what the name bears with what the comment says.
func (f *testFunc) readNumbers(name string) error {
	borne, err := readName(name)
	if err != nil || borne.none() {
		return err
	}
	said, sentence, err := readComment(f.comment)
	if err != nil {
		return err
	}
	if missing := said.lacks(borne); missing != "" {
		return fmt.Errorf("bears %s, of which its comment does not speak", missing)
	}
	f.numbers, f.sentence = said, sentence
	return nil
}
