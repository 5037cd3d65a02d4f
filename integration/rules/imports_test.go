package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestImportRules(t *testing.T) {
	for _, p := range listPackages(t, moduleRoot(t)) {
		for _, violation := range violations(p) {
			t.Error(violation)
		}
	}
}

// A folder whose files all hide behind build tags is absent from the list, and would escape every rule.
func TestEveryFolderIsListed(t *testing.T) {
	root := moduleRoot(t)
	seen := map[string]bool{}
	for _, p := range listPackages(t, root) {
		seen[p.path] = true
	}
	for _, folder := range goFolders(t, root) {
		if !folder.nested && !seen[folder.path] {
			t.Errorf("%s: no file that is built without tags; give it a doc.go", folder.path)
		}
	}
}

// listPackages asks the go command for every package of this module that any package of it reaches. Files that
// build tags exclude here are read as well.
func listPackages(t *testing.T, root string) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps",
		"-json=ImportPath,Name,Dir,Module,Imports,TestImports,XTestImports,IgnoredGoFiles", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var entry struct {
			ImportPath, Name, Dir              string
			Module                             *struct{ Path string }
			Imports, TestImports, XTestImports []string
			IgnoredGoFiles                     []string
		}
		if err := decoder.Decode(&entry); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if entry.Module == nil || entry.Module.Path != module {
			continue
		}
		p := listed{
			path:        strings.TrimPrefix(strings.TrimPrefix(entry.ImportPath, module), "/"),
			name:        entry.Name,
			imports:     entry.Imports,
			testImports: append(entry.TestImports, entry.XTestImports...),
		}
		for _, file := range entry.IgnoredGoFiles {
			imports := fileImports(t, filepath.Join(entry.Dir, file))
			if strings.HasSuffix(file, "_test.go") {
				p.testImports = append(p.testImports, imports...)
			} else {
				p.imports = append(p.imports, imports...)
			}
		}
		packages = append(packages, p)
	}
	if len(packages) == 0 {
		t.Fatal("go list named no package of this module")
	}
	return packages
}

func fileImports(t *testing.T, name string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var imports []string
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		imports = append(imports, path)
	}
	return imports
}

// ours begins the import path of every room.
const ours = module + "/"

func importing(path string, imports ...string) listed {
	return listed{path: path, name: path[strings.LastIndex(path, "/")+1:], imports: imports}
}

func testImporting(path string, imports ...string) listed {
	return listed{path: path, testImports: imports}
}

// Graphs right and wrong, among them rooms that do not exist yet.
var importCases = []struct {
	name string
	p    listed
	want string // part of the one violation; empty for none
}{
	{"vocabulary, itself and the outside", importing("typedsocket", ours+"typedsocket/buffer", "net", "github.com/coder/websocket"), ""},
	{"vocabulary imports vocabulary", importing("contract", ours+"duty"), "contract: imports serve.zone/relay/duty"},
	{"a folder below it does", importing("typedsocket/buffer", ours+"contract"), "room typedsocket may import []"},
	{"vocabulary imports a duty", importing("duty", ours+"hub"), "duty: imports"},
	{"its test imports vocabulary", testImporting("contract", ours+"duty"), "contract: test imports"},
	{"its test imports a simulated peer", testImporting("typedsocket", ours+"simulate"), "typedsocket: test imports"},

	{"duty imports vocabulary", importing("cloudly", ours+"contract", ours+"duty/field", ours+"typedsocket"), ""},
	{"duty imports duty", importing("escrow", ours+"cloudly"), "escrow: imports serve.zone/relay/cloudly"},
	{"duty imports a folder of a duty", importing("operator", ours+"hub/node"), "operator: imports"},
	{"duty imports its own folders", importing("hub", ours+"hub/tunnel", ours+"hub/node"), ""},
	{"duty imports appliance", importing("forward", ours+"appliance"), "forward: imports"},
	{"duty imports config", importing("tls", ours+"config"), "tls: imports"},
	{"duty imports simulated peers", importing("ingress", ours+"simulate"), "ingress: imports"},
	{"its test may", testImporting("ingress", ours+"simulate"), ""},
	{"its test imports another duty", testImporting("registry", ours+"listener"), "registry: test imports"},
	{"every duty stands in the table", importing("listener", ours+"corestore"), "listener: imports"},

	{"appliance knows them all", importing("appliance", ours+"cloudly", ours+"hub", ours+"operator", ours+"config", ours+"contract"), ""},
	{"appliance imports simulated peers", importing("appliance", ours+"simulate"), "appliance: imports"},
	{"appliance imports demo", importing("appliance", ours+"demo"), "appliance: imports"},
	{"config imports a duty", importing("config", ours+"hub"), "config: imports"},

	{"demo", importing("demo", ours+"appliance", ours+"config", ours+"simulate", ours+"hub/node", ours+"operator/client"), ""},
	{"demo composes what Cloudly says", importing("demo", ours+"contract"), ""},
	{"demo imports the carrier", importing("demo", ours+"typedsocket"), "demo: imports"},
	{"demo imports a duty", importing("demo", ours+"cloudly"), "demo: imports"},
	{"demo imports the hub itself", importing("demo", ours+"hub"), "demo: imports"},
	{"demo imports the operator itself", importing("demo", ours+"operator"), "demo: imports"},
	{"command", importing("cmd/relay", ours+"appliance", ours+"demo", ours+"config"), ""},
	{"command imports a duty", importing("cmd/relay", ours+"escrow"), "cmd/relay: imports"},
	{"a command nobody planned", importing("cmd/other"), "in no room"},

	{"simulated peers", importing("simulate", ours+"contract", ours+"typedsocket"), ""},
	{"simulated peers import duty", importing("simulate", ours+"duty"), "simulate: imports"},
	{"simulated peers import what they judge", importing("simulate/cloudly", ours+"cloudly"), "simulate/cloudly: imports"},

	{"integration", importing("integration/whole", ours+"appliance", ours+"hub", ours+"demo", ours+"integration/peers"), ""},
	{"nobody imports integration", importing("appliance", ours+"integration/peers"), "appliance: imports"},
	{"nothing imports cmd", importing("integration/whole", ours+"cmd/relay"), "nothing imports cmd"},
	{"nor does a test", testImporting("appliance", ours+"cmd/relay"), "nothing imports cmd"},

	{"encoding/json in vocabulary", importing("contract", "encoding/json"), "use jsontext"},
	{"encoding/json in a duty", importing("hub/node", "encoding/json"), "use jsontext"},
	{"encoding/json in integration", importing("integration/peers", "encoding/json"), "use jsontext"},
	{"encoding/json in operator", importing("operator/client", "encoding/json"), ""},
	{"encoding/json in the command", importing("cmd/relay", "encoding/json"), ""},
	{"encoding/json in a test", testImporting("contract", "encoding/json"), ""},
	{"math/rand", importing("hub", "math/rand"), "math/rand/v2"},
	{"math/rand in a test", testImporting("hub", "math/rand"), "math/rand/v2"},
	{"math/rand/v2", importing("hub", "math/rand/v2"), ""},

	{"a room nobody planned", importing("metrics"), "metrics: in no room"},
	{"the module's root", importing(""), "in no room"},
	{"a name that only begins like a room", importing("contracts"), "contracts: in no room"},
	{"an import that only begins like a room", importing("hub", ours+"contracts"), "hub: imports"},
	{"another module that only begins like this one", importing("contract", module+"x/duty"), ""},
	{"the root is imported", importing("hub", module), "hub: imports"},
	{"a banned folder", importing("hub/util/table"), "says nothing"},
	{"a banned name", listed{path: "hub/table", name: "helpers"}, "says nothing"},
	{"a banned test name", listed{path: "hub/table", name: "types_test"}, "says nothing"},
}

func TestViolations(t *testing.T) {
	for _, test := range importCases {
		t.Run(test.name, func(t *testing.T) {
			got := violations(test.p)
			switch {
			case test.want == "" && len(got) != 0:
				t.Errorf("refused: %v", got)
			case test.want != "" && (len(got) != 1 || !strings.Contains(got[0], test.want)):
				t.Errorf("got %v, want one that says %q", got, test.want)
			}
		})
	}
}

func TestViolationsNamesEachImport(t *testing.T) {
	got := violations(listed{
		path: "contract", name: "contract",
		imports:     []string{module + "/duty", "encoding/json"},
		testImports: []string{"math/rand"},
	})
	want := []string{
		"contract: imports serve.zone/relay/duty: room contract may import []",
		"contract: imports encoding/json: it ignores case and lets the last duplicate win; use jsontext",
		"contract: test imports math/rand: use math/rand/v2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}
