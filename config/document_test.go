package config_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/config"
)

var update = flag.Bool("update", false, "write the document and the golden files again")

// checkGolden compares a text with a file that is checked in.
func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not current; go generate ./config writes it (-file +table):\n%s", filepath.Base(name), diff)
	}
}

func TestDocumentIsCurrent(t *testing.T) {
	checkGolden(t, filepath.Join("..", "docs", "configuration.md"), config.Markdown())
	checkGolden(t, filepath.Join("testdata", "help.txt"), config.Help())
}

// What the document shows as a file is one that loads by itself.
func TestDocumentsExampleLoads(t *testing.T) {
	_, rest, found := strings.Cut(config.Markdown(), "```yaml\n")
	example, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("the document has no example")
	}
	c, report, err := config.Load(withFile(nil, nil, example))
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen.String() != "10.0.4.7:8443" || len(c.Protocol.NodeToCloudly) != 1 || report.Unused != nil {
		t.Errorf("%+v", c)
	}
	// What the document says of a setting that is given and empty.
	c, _, err = config.Load(withFile(map[string]string{"cloudly-ca-file": ""}, nil, "cloudly-ca-file: roots.pem\n"+example))
	if err != nil || c.Cloudly.CAFile != "" || !strings.Contains(config.Markdown(), "`--cloudly-ca-file=`") {
		t.Errorf("extra roots %q, error %v", c.Cloudly.CAFile, err)
	}
}

// Every row of the table is complete and shown in both texts.
func TestTableIsComplete(t *testing.T) {
	help, document := config.Help(), config.Markdown()
	names := map[string]bool{}
	for _, s := range config.Settings() {
		name := s.Name()
		if names[name] {
			t.Errorf("%s stands in the table twice", name)
		}
		names[name] = true
		for _, v := range s.Env {
			if names[v] {
				t.Errorf("%s belongs to two settings", v)
			}
			names[v] = true
		}
		if s.Meaning == "" || s.Section == "" || strings.ContainsAny(s.Meaning, "|\n") || strings.HasSuffix(s.Meaning, ".") {
			t.Errorf("%s: meaning %q in section %q", name, s.Meaning, s.Section)
		}
		if (s.Kind == config.KindChoice) != (len(s.Choices) > 1) {
			t.Errorf("%s: choices %v", name, s.Choices)
		}
		if s.Required && (s.Default != "" || s.Unset != "") {
			t.Errorf("%s is required and has a default", name)
		}
		if s.Flag != "" && strings.Count(help, "  --"+s.Flag+"=")+strings.Count(help, "  --"+s.Flag+"\n") != 1 {
			t.Errorf("%s is not shown once in help", name)
		}
		shown := "| `" + s.Key + "` |"
		if s.Flag != "" {
			shown = "| `--" + s.Flag + "` |"
		}
		if strings.Count(document, shown) != 1 {
			t.Errorf("%s is not shown once in the document", name)
		}
	}
	for number, line := range strings.Split(help, "\n") {
		if len(line) > 80 {
			t.Errorf("line %d of help has %d characters", number+1, len(line))
		}
	}
}

// Every choice that the table shows is one that its reader takes.
func TestEveryChoiceIsRead(t *testing.T) {
	for _, s := range config.Settings() {
		for _, choice := range s.Choices {
			for _, place := range placesFor(s) {
				place.text = choice
				sources := sourcesOf(s, place)
				if _, _, err := config.Load(sources); err != nil {
					t.Errorf("%s = %s: %v", s.Name(), choice, err)
				}
			}
		}
	}
}

// The table is the caller's: changing it changes nothing.
func TestSettingsAreTheCallers(t *testing.T) {
	first := config.Settings()
	for i := range first {
		first[i].Default = "changed"
		for j := range first[i].Env {
			first[i].Env[j] = "CHANGED"
		}
	}
	c, _, err := config.Load(config.Sources{Flags: base(), Environ: []string{"RELAY_HUB_WORKERS=3"}})
	if err != nil || c.Hub.Workers != 3 || c.Protocol.SocketPath != "/" {
		t.Errorf("%+v, error %v", c, err)
	}
}

func TestReasonsAsAnOperatorReadsThem(t *testing.T) {
	_, _, err := config.Load(withFile(map[string]string{"node-id": "a.b", "nodes": "x"}, []string{"RELAY_LISTEN=127.0.0.1:1", "RELAY_KEY=" + bearer, "RELAY_A B=" + bearer},
		"hub-worker: 2\nhub-workers: 0\nprotocol:\n  forward:\n    nodeToCloudly: [registerClusterRelay]\n'a b': c\n"))
	if err == nil {
		t.Fatal("admitted")
	}
	checkGolden(t, filepath.Join("testdata", "reasons.txt"), strings.ReplaceAll(err.Error(), "; ", ";\n")+"\n")
}
