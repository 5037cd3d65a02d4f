package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/config"
)

// given is one value in one source. The variable of FromEnvironment is the n-th
// of the setting.
type given struct {
	source   config.Source
	text     string
	variable int
}

// sourcesOf puts values of one setting into their sources, over a base.
func sourcesOf(s config.Setting, values ...given) config.Sources {
	flags, file := baseWithout(s.Flag), ""
	var environ []string
	for _, v := range values {
		switch v.source {
		case config.FromFlag:
			flags[s.Flag] = v.text
		case config.FromEnvironment:
			environ = append(environ, s.Env[v.variable]+"="+v.text)
		case config.FromFile:
			file = yamlOf(s, v.text)
		}
	}
	return withFile(flags, environ, file)
}

// placeOf is where a value of a setting is reported to stand.
func placeOf(s config.Setting, v given) config.Place {
	p := config.Place{Setting: s.Name(), Source: v.source}
	switch v.source {
	case config.FromFlag:
		p.Name = "--" + s.Flag
	case config.FromEnvironment:
		p.Name = s.Env[v.variable]
	case config.FromFile:
		p.Line = strings.Count(s.Key, ".") + 1
	}
	return p
}

// placesFor lists the sources that a setting has, the strongest first.
func placesFor(s config.Setting) []given {
	var list []given
	if s.Flag != "" {
		list = append(list, given{source: config.FromFlag})
	}
	for i := range s.Env {
		list = append(list, given{source: config.FromEnvironment, variable: i})
	}
	if s.Key != "" {
		list = append(list, given{source: config.FromFile})
	}
	return list
}

// Every setting takes its value from each of its sources, and without one shows
// its default.
func TestEverySettingInEverySource(t *testing.T) {
	table := settingsByName()
	for _, s := range samples {
		if s.name == "config" {
			continue // TestTheFileIsNamedByFlagAndVariable
		}
		row := table[s.name]
		for _, place := range placesFor(row) {
			for _, text := range []string{s.a, s.b} {
				place.text = text
				c, report, err := config.Load(sourcesOf(row, place))
				if err != nil {
					t.Errorf("%s = %q from the %v: %v", s.name, text, place.source, err)
					continue
				}
				if got := s.shown(c); got != s.want(text) {
					t.Errorf("%s = %q from the %v shows %s", s.name, text, place.source, got)
				}
				if diff := cmp.Diff(placeOf(row, place), report.From(s.name)); diff != "" {
					t.Errorf("%s from the %v (-want +got):\n%s", s.name, place.source, diff)
				}
			}
		}
		checkDefault(t, s, row)
	}
}

// checkDefault checks a setting that no source gives.
func checkDefault(t *testing.T, s sample, row config.Setting) {
	t.Helper()
	flags := baseWithout(s.name)
	if strings.HasPrefix(s.name, "acme-") {
		flags["tls-source"] = "cloudly" // which needs none of them
	}
	c, report, err := config.Load(config.Sources{Flags: flags})
	if s.isRequired || s.name == "tls-cert-file" || s.name == "tls-key-file" {
		rule := config.Required
		if !s.isRequired {
			rule = config.RequiredByFiles
		}
		checkReasons(t, s.name, err, config.Reason{Place: config.Place{Setting: s.name}, Rule: rule})
		return
	}
	if err != nil {
		t.Errorf("without %s: %v", s.name, err)
		return
	}
	if got := s.shown(c); got != s.unset {
		t.Errorf("%s is %s by default, want %s", s.name, got, s.unset)
	}
	if got := report.From(s.name); got != (config.Place{Setting: s.name}) {
		t.Errorf("%s by default stands at %+v", s.name, got)
	}
	if row.Default != "" && row.Unset != "" {
		t.Errorf("%s has a default and says what it means to have none", s.name)
	}
}

// For every setting and every pair of its sources, the variables of one setting
// included, the stronger one wins, whichever value it has.
func TestEveryPairOfSources(t *testing.T) {
	table := settingsByName()
	pairs := 0
	for _, s := range samples {
		if s.name == "config" {
			continue
		}
		row := table[s.name]
		places := placesFor(row)
		for i, strong := range places {
			for _, weak := range places[i+1:] {
				for _, texts := range [][2]string{{s.a, s.b}, {s.b, s.a}} {
					strong.text, weak.text = texts[0], texts[1]
					c, report, err := config.Load(sourcesOf(row, weak, strong))
					if err != nil {
						t.Errorf("%s from the %v over the %v: %v", s.name, strong.source, weak.source, err)
						continue
					}
					pairs++
					if got := s.shown(c); got != s.want(strong.text) {
						t.Errorf("%s: the %v did not win over the %v: %s", s.name, strong.source, weak.source, got)
					}
					if got := report.From(s.name); got != placeOf(row, strong) {
						t.Errorf("%s is reported at %+v", s.name, got)
					}
				}
			}
		}
	}
	// 24 settings have three sources besides the default, two of them one
	// variable more.
	if want := 2 * (24*3 + 2*3); pairs != want {
		t.Errorf("%d pairs were tried, want %d", pairs, want)
	}
}

func TestTheFileIsNamedByFlagAndVariable(t *testing.T) {
	open := files{
		"a.yaml": "node-id: from-a\n",
		"b.yaml": "node-id: from-b\n",
	}.open
	for _, test := range []struct {
		name    string
		flag    string
		environ []string
		want    string
	}{
		{"flag", "a.yaml", nil, "from-a"},
		{"variable", "", []string{"RELAY_CONFIG=b.yaml"}, "from-b"},
		{"flag over variable", "a.yaml", []string{"RELAY_CONFIG=b.yaml"}, "from-a"},
	} {
		flags := baseWithout("node-id")
		if test.flag != "" {
			flags["config"] = test.flag
		}
		c, _, err := config.Load(config.Sources{Flags: flags, Environ: test.environ, Open: open})
		if err != nil || c.NodeID != test.want {
			t.Errorf("%s: node %q, error %v", test.name, c.NodeID, err)
		}
	}
	flags := base()
	flags["config"] = "" // no file, whatever the variable says
	c, _, err := config.Load(config.Sources{Flags: flags, Environ: []string{"RELAY_CONFIG=b.yaml"}, Open: open})
	if err != nil || c.NodeID != "base" {
		t.Errorf("an empty flag: node %q, error %v", c.NodeID, err)
	}
}

// What is empty: a variable counts as not set, a flag and a key are given.
func TestEmptyValues(t *testing.T) {
	table := settingsByName()
	hub := table["hub-listen"]
	for _, test := range []struct {
		name   string
		values []given
		want   string
	}{
		{"a flag over the file", []given{{source: config.FromFlag}, {source: config.FromFile, text: "192.0.2.1:4433"}}, "invalid AddrPort"},
		{"a flag over a variable", []given{{source: config.FromFlag}, {source: config.FromEnvironment, text: "192.0.2.1:4433"}}, "invalid AddrPort"},
		{"a variable before the file", []given{{source: config.FromEnvironment}, {source: config.FromFile, text: "192.0.2.1:4433"}}, "192.0.2.1:4433"},
		{"the file", []given{{source: config.FromFile}}, "invalid AddrPort"},
	} {
		c, _, err := config.Load(sourcesOf(hub, test.values...))
		if err != nil || c.Hub.Listen.String() != test.want {
			t.Errorf("%s: %v, error %v", test.name, c.Hub.Listen, err)
		}
	}

	node := table["node-id"]
	c, report, err := config.Load(sourcesOf(node, given{source: config.FromEnvironment, variable: 0}, given{config.FromEnvironment, "second", 1}))
	if err != nil || c.NodeID != "second" || report.From("node-id").Name != "COREFLOW_NODE_ID" {
		t.Errorf("an empty first variable: node %q at %+v, error %v", c.NodeID, report.From("node-id"), err)
	}

	// A setting that has a default, or is required, cannot be given as nothing.
	for name, rule := range map[string]config.Rule{
		"node-id": config.Required, "hub-workers": config.NotWorkerCount, "operator-listen": config.NotAddressPort,
		"tls-source": config.NotChoice, "log-level": config.NotChoice, "log-format": config.NotChoice,
		"allow-loopback": config.NotSwitch, "tls-cert-file": config.RequiredByFiles,
	} {
		row := table[name]
		for _, source := range []config.Source{config.FromFlag, config.FromFile} {
			v := given{source: source}
			_, _, err := config.Load(sourcesOf(row, v))
			checkReasons(t, name, err, config.Reason{Place: placeOf(row, v), Rule: rule})
		}
	}
}

// Of a variable that stands there twice the first counts, as for os.Getenv;
// what is no variable is passed over.
func TestEnvironmentAsTheSystemGivesIt(t *testing.T) {
	environ := []string{"", "=", "=C:=C:\\", "RELAY_NODE_ID", "RELAY_NODE_ID=a", "RELAY_NODE_ID=b", "relay_node_id=c"}
	c, report, err := config.Load(config.Sources{Flags: baseWithout("node-id"), Environ: environ})
	if err != nil || c.NodeID != "a" {
		t.Errorf("node %q, error %v", c.NodeID, err)
	}
	if len(report.Unknown) != 0 {
		t.Errorf("unknown: %+v", report.Unknown)
	}
}

// The same variable names as design §7, which operators write down.
func TestVariablesAreNamedAfterTheFlags(t *testing.T) {
	others := map[string][]string{"cloudly-url": {"CLOUDLY_URL"}, "node-id": {"COREFLOW_NODE_ID"}}
	for _, s := range config.Settings() {
		if s.Flag == "" {
			continue
		}
		want := append([]string{"RELAY_" + strings.ToUpper(strings.ReplaceAll(s.Flag, "-", "_"))}, others[s.Flag]...)
		if !slices.Equal(s.Env, want) {
			t.Errorf("--%s: variables %v, want %v", s.Flag, s.Env, want)
		}
	}
}
