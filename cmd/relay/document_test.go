package main

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/appliance"
	"serve.zone/relay/config"
)

// built builds a relay from a configuration file and flags, as serve does.
func built(file string, flags map[string]string) error {
	flags = maps.Clone(flags)
	flags["config"] = "relay.yaml"
	settings, _, err := config.Load(config.Sources{
		Flags: flags, Open: func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(file)), nil },
		Judge: appliance.Judge,
	})
	if err == nil {
		_, err = build(appliance.Config{Settings: settings, Build: thisBuild()})
	}
	return err
}

// What the document shows as a file is one that this program serves with, and the
// settings that it says are refused are those that are.
func TestTheDocumentOfTheConfigurationIsTrue(t *testing.T) {
	document := config.Markdown()
	_, rest, _ := strings.Cut(document, "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the document has no example")
	}
	if err := built(example, map[string]string{}); err != nil {
		t.Errorf("the example is refused: %v", err)
	}

	wanted := map[string]string{ // a value that asks for more than the default does
		"hub-listen": "192.0.2.1:4433", "hub-workers": "2", "tls-source": "cloudly",
		"registry-upstream": "https://registry.example", "registry-realm-origin": "https://auth.example",
		"cloudly-ca-file": "", "operator-listen": "127.0.0.1:0", "log-level": "debug", "log-format": "text", "acme-email": "a@example.com",
	}
	var refused []string
	for _, flag := range slices.Sorted(maps.Keys(wanted)) {
		err := built(example, map[string]string{flag: wanted[flag], "allow-loopback": "true"})
		var invalid *config.InvalidError
		switch {
		case errors.As(err, &invalid) && len(invalid.Reasons) == 1 && invalid.Reasons[0].Place == config.Place{Setting: flag, Source: config.FromFlag, Name: "--" + flag}:
			refused = append(refused, flag)
		case err != nil:
			t.Errorf("%s: %v", flag, err)
		}
	}
	_, list, _ := strings.Cut(document, "is refused by name:")
	list, _, found = strings.Cut(list, ".")
	if !found {
		t.Fatal("the document does not say what is refused")
	}
	var said []string
	for i, part := range strings.Split(list, "`") {
		if i%2 == 1 && part != "files" { // the one source that there is
			said = append(said, part)
		}
	}
	slices.Sort(said)
	if diff := cmp.Diff(refused, said); diff != "" {
		t.Errorf("settings refused (-program +document):\n%s", diff)
	}
}
