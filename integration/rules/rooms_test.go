package rules

import (
	"fmt"
	"slices"
	"strings"
)

// A listed package is judged by its imports. Paths of this module are relative to it: "hub/node", "" for its root.
type listed struct {
	path, name           string
	imports, testImports []string
}

// A room is a top-level folder, or a folder below one where the table says so, with everything under it. It may
// import itself, whatever is outside this module, and the named folders with everything under them.
type room struct {
	imports     []string
	testImports []string // what its test files may import besides
	encodesJSON bool     // may import encoding/json outside tests, for output of our own
}

var (
	vocabulary = []string{"contract", "duty", "typedsocket"}
	duties     = []string{
		"cloudly", "listener", "forward", "escrow", "hub", "corestore", "ingress", "registry", "tls", "operator",
	}
	// operator/client is the client side of operator: what reads a running relay's status.
	whole = []string{"appliance", "config", "simulate", "hub/node", "operator/client"}
)

// rooms is the whole table, also of rooms that have no code yet. A package in no room is refused.
var rooms = func() map[string]room {
	table := map[string]room{
		"config":      {imports: vocabulary},
		"appliance":   {imports: slices.Concat(vocabulary, duties, []string{"config"}), testImports: []string{"simulate"}},
		"simulate":    {imports: []string{"contract", "typedsocket"}},
		"demo":        {imports: slices.Concat(whole, []string{"contract"}), encodesJSON: true},
		"cmd/relay":   {imports: slices.Concat(whole, []string{"demo", "duty"}), testImports: []string{"contract"}, encodesJSON: true},
		"integration": {imports: slices.Concat(vocabulary, duties, whole, []string{"demo"})},
	}
	for _, name := range vocabulary {
		table[name] = room{}
	}
	for _, name := range duties {
		table[name] = room{imports: vocabulary, testImports: []string{"simulate"}, encodesJSON: name == "operator"}
	}
	return table
}()

// bannedNames say nothing about what a package is for.
var bannedNames = []string{"util", "utils", "common", "helper", "helpers", "types"}

// violations names every import rule that a package breaks.
func violations(p listed) []string {
	var found []string
	for _, name := range append(strings.Split(p.path, "/"), strings.TrimSuffix(p.name, "_test")) {
		if slices.Contains(bannedNames, name) {
			found = append(found, fmt.Sprintf("%s: %q says nothing about what the package is for", p.path, name))
			break
		}
	}
	own, ok := roomOf(p.path)
	if !ok {
		return append(found, fmt.Sprintf("%s: in no room of the table", p.path))
	}
	for _, imported := range p.imports {
		found = append(found, judge(p.path, own, imported, false)...)
	}
	for _, imported := range p.testImports {
		found = append(found, judge(p.path, own, imported, true)...)
	}
	return found
}

// judge names the rule that one import breaks, if any.
func judge(path, own, imported string, byTest bool) []string {
	refuse := func(why string) []string {
		what := "imports"
		if byTest {
			what = "test imports"
		}
		return []string{fmt.Sprintf("%s: %s %s: %s", path, what, imported, why)}
	}
	switch imported {
	case "math/rand":
		return refuse("use math/rand/v2")
	case "encoding/json":
		if byTest || rooms[own].encodesJSON {
			return nil
		}
		return refuse("it ignores case and lets the last duplicate win; use jsontext")
	}
	target, internal := strings.CutPrefix(imported+"/", module+"/")
	if !internal {
		return nil
	}
	target = strings.TrimSuffix(target, "/")
	if under(target, "cmd") {
		return refuse("nothing imports cmd")
	}
	allowed := append([]string{own}, rooms[own].imports...)
	if byTest {
		allowed = append(allowed, rooms[own].testImports...)
	}
	if slices.ContainsFunc(allowed, func(folder string) bool { return under(target, folder) }) {
		return nil
	}
	return refuse(fmt.Sprintf("room %s may import %v", own, allowed[1:]))
}

// roomOf finds the room that a package's folder lies in.
func roomOf(path string) (name string, ok bool) {
	for name := range rooms {
		if under(path, name) {
			return name, true
		}
	}
	return "", false
}

// under tells whether path is folder or lies below it.
func under(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}
