package config_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"serve.zone/relay/config"
)

func sameConfig(a, b config.Config) bool { return reflect.DeepEqual(a, b) }

// A choice says which value, if any, each source gives a setting.
type choice struct {
	flag, file string
	variables  []string // in the order of Setting.Env; empty where not set
}

// oracle finds the value that counts and its place, slowly, by design §7.
func oracle(s config.Setting, c choice) (text string, at config.Place) {
	at.Setting = s.Name()
	candidates := []struct {
		text string
		at   config.Place
	}{{c.flag, config.Place{Setting: s.Name(), Source: config.FromFlag, Name: "--" + s.Flag}}}
	for i, name := range s.Env {
		candidates = append(candidates, struct {
			text string
			at   config.Place
		}{c.variables[i], config.Place{Setting: s.Name(), Source: config.FromEnvironment, Name: name}})
	}
	candidates = append(candidates, struct {
		text string
		at   config.Place
	}{c.file, config.Place{Setting: s.Name(), Source: config.FromFile}})
	for _, candidate := range candidates {
		if candidate.text != "" {
			return candidate.text, candidate.at
		}
	}
	return "", at
}

// Any values in any sources at once: each setting has what the oracle says.
func TestPrecedenceAgainstAnOracle(t *testing.T) {
	table := settingsByName()
	// What must be given somewhere for a configuration to be whole.
	needed := base()
	rapid.Check(t, func(t *rapid.T) {
		flags, nested := map[string]string{}, map[string][]string{}
		var environ, lines []string
		choices := map[string]choice{}
		for _, s := range samples {
			row := table[s.name]
			if s.name == "config" {
				continue
			}
			pick := func(label string) string { return rapid.SampledFrom([]string{"", s.a, s.b}).Draw(t, s.name+" "+label) }
			var c choice
			if row.Flag != "" {
				if c.flag = pick("flag"); c.flag != "" {
					flags[row.Flag] = c.flag
				}
				for _, name := range row.Env {
					text := pick(name)
					c.variables = append(c.variables, text)
					environ = append(environ, name+"="+text)
				}
			}
			c.file = pick("file")
			if _, must := needed[s.name]; must && c.file == "" {
				c.file = s.a
			}
			switch {
			case c.file == "":
			case row.Flag != "":
				lines = append(lines, yamlOf(row, c.file))
			default:
				section, key, _ := strings.Cut(strings.TrimPrefix(row.Key, "protocol."), ".")
				if key == "" {
					section, key = "", section
				}
				line := key + ": " + c.file
				if row.Kind == config.KindMethods {
					line = key + ": [" + c.file + "]"
				}
				nested[section] = append(nested[section], line)
			}
			choices[s.name] = c
		}
		environ = rapid.Permutation(environ).Draw(t, "environment")
		lines = rapid.Permutation(lines).Draw(t, "file")
		file := strings.Join(lines, "") + writeProtocol(nested)

		c, report, err := config.Load(withFile(flags, environ, file))
		if err != nil {
			t.Fatalf("%v\n%s", err, file)
		}
		for _, s := range samples {
			if s.name == "config" {
				continue
			}
			text, at := oracle(table[s.name], choices[s.name])
			checkChoice(t, s, choices, c, report, text, at)
		}
	})
}

// checkChoice compares one setting with what the oracle found.
func checkChoice(t *rapid.T, s sample, choices map[string]choice, c config.Config, report config.Report, text string, at config.Place) {
	want := s.want(text)
	if text == "" {
		want = s.unset
		// These two follow another setting.
		table := settingsByName()
		if s.name == "registry-realm-origin" {
			want, _ = oracle(table["registry-upstream"], choices["registry-upstream"])
		}
		if s.name == "registry-upstream" || s.name == "registry-realm-origin" && want == "" {
			want, _ = oracle(table["cloudly-url"], choices["cloudly-url"])
		}
	}
	if got := s.shown(c); got != want {
		t.Errorf("%s is %s, want %s from the %v", s.name, got, want, at.Source)
	}
	got := report.From(s.name)
	if got.Source == config.FromFile && got.Line == 0 {
		t.Errorf("%s stands at no line of the file", s.name)
	}
	got.Line = 0
	if got != at {
		t.Errorf("%s is reported at %+v, want %+v", s.name, got, at)
	}
}

// writeProtocol writes the protocol's section of a file.
func writeProtocol(nested map[string][]string) string {
	var b strings.Builder
	b.WriteString("protocol:\n")
	for _, section := range slices.Sorted(maps.Keys(nested)) {
		indent := "  "
		if section != "" {
			b.WriteString("  " + section + ":\n")
			indent = "    "
		}
		for _, line := range nested[section] {
			b.WriteString(indent + line + "\n")
		}
	}
	return b.String()
}

// The report lists every setting once, in the table's order.
func TestReportIsInTheTablesOrder(t *testing.T) {
	_, report, err := config.Load(config.Sources{Flags: base()})
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, s := range config.Settings() {
		want = append(want, s.Name())
	}
	for _, p := range report.Settings {
		got = append(got, p.Setting)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if p := report.From("no setting"); p != (config.Place{Setting: "no setting"}) {
		t.Errorf("what is no setting stands at %+v", p)
	}
}
