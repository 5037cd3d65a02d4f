package config_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"serve.zone/relay/config"
	"serve.zone/relay/contract"
)

// rulesOfThisPackage reads the constants of rule.go, so that a rule which is
// made up at run time, and could quote a value, is noticed.
func rulesOfThisPackage(t testing.TB) map[config.Rule]bool {
	file, err := parser.ParseFile(token.NewFileSet(), "rule.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	rules := map[config.Rule]bool{
		notIPv4: true, loopback: true, linkLocal: true, unspecified: true, multicast: true, broadcast: true,
		otherMajor: true, aboveVersion: true, neverPasses: true, otherDirection: true, bothDirections: true,
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, isValue := n.(*ast.ValueSpec); isValue {
			if typed, named := v.Type.(*ast.Ident); !named || typed.Name != "Rule" {
				return true
			}
			for _, x := range v.Values {
				text, err := strconv.Unquote(x.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				rules[config.Rule(text)] = true
			}
		}
		return true
	})
	if len(rules) < 50 {
		t.Fatalf("only %d rules were found", len(rules))
	}
	return rules
}

// checkInvalid checks that an error says only what may be said: a known rule, a
// setting of the table, one of its elements or a plain name of the source.
func checkInvalid(t *testing.T, err error, rules map[config.Rule]bool) {
	t.Helper()
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) || len(invalid.Reasons) == 0 {
		t.Fatalf("got %v, want an *InvalidError", err)
	}
	if len(invalid.Reasons) > contract.MaximumReasons || invalid.More > 0 && len(invalid.Reasons) < contract.MaximumReasons {
		t.Errorf("%d reasons and %d more", len(invalid.Reasons), invalid.More)
	}
	table := settingsByName()
	for _, r := range invalid.Reasons {
		if !rules[r.Rule] {
			t.Errorf("the rule %q is none of the set", r.Rule)
		}
		name, _, _ := strings.Cut(r.Setting, "[")
		if _, known := table[name]; !known && strings.ContainsFunc(r.Setting, isNoNameRune) {
			t.Errorf("a reason repeats %q", r.Setting)
		}
		if _, known := table[r.Suggest]; !known && r.Suggest != "" {
			t.Errorf("%q is suggested", r.Suggest)
		}
	}
}

func isNoNameRune(c rune) bool {
	return !strings.ContainsRune("-_.", c) && (c < '0' || c > 'z' || c > '9' && c < 'A' || c > 'Z' && c < 'a')
}

// checkConfig checks, apart from Load's own code, what is promised of a
// configuration that was admitted.
func checkConfig(t *testing.T, c config.Config) {
	t.Helper()
	if !strings.HasPrefix(c.Cloudly.URL, "https://") && !strings.HasPrefix(c.Cloudly.URL, "http://127.") && c.Cloudly.URL != "http://[::1]" &&
		!strings.HasPrefix(c.Cloudly.URL, "http://[::1]:") {
		t.Error("Cloudly is dialled in the clear")
	}
	if c.Cloudly.CredentialFile == "" || !contract.IsNodeID(c.NodeID) || c.Hub.Workers < 1 || c.Hub.Workers > 64 {
		t.Errorf("incomplete: %+v", c)
	}
	fault := contract.JudgeListenAddress(c.Listen.Addr().String())
	if fault != "" && (fault != contract.AddressLoopback || !c.AllowLoopback) {
		t.Errorf("listens at an address that %s", fault)
	}
	if c.Listen.Port() == 0 && !c.AllowLoopback {
		t.Error("listens at port 0")
	}
	if reasons := c.Protocol.Offer.Validate(); reasons != nil {
		t.Error(reasons)
	}
	if reasons := contract.JudgeExtraMethods(c.Protocol.NodeToCloudly, c.Protocol.CloudlyToNode); reasons != nil {
		t.Error(reasons)
	}
	if !strings.HasPrefix(c.Protocol.SocketPath, "/") || strings.ContainsAny(c.Protocol.SocketPath, "?#%\\ ") {
		t.Error("the socket's path is no path")
	}
}

// FuzzFile holds down that no file panics the reader, that what is admitted
// keeps every rule, and that what is refused is refused in words of our own.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"", "# nothing\n", "node-id: a\n", "node-id: &a a\nlisten: *a\n", "protocol:\n  forward:\n    nodeToCloudly: [a, b]\n",
		"protocol: {socketPath: /x, corestore: {timeout: 1m}}", "a: b\n---\nc: d\n", "listen: |\n  10.0.0.1:80\n", "? [a]\n: b\n",
		"%TAG ! tag:x,2000:\n---\n!x a: !y b\n", "node-id: \"\\x00\"\n", "cloudly-url: 'http://127.0.0.1:1'\n", "- a\n- b\n", "<<: {node-id: a}\n",
		"hub-listen: \nhub-workers: 0x10\n", "a:\n # c\n   # d\n b: c\n", "node-id: " + bearer + "\n",
	} {
		f.Add([]byte(seed))
	}
	rules := rulesOfThisPackage(f)
	f.Fuzz(func(t *testing.T, content []byte) {
		c, _, err := config.Load(withFile(base(), nil, string(content)))
		if err != nil {
			checkInvalid(t, err, rules)
			if !sameConfig(c, config.Config{}) {
				t.Error("a refused file left a configuration")
			}
			return
		}
		checkConfig(t, c)
		again, _, err := config.Load(withFile(base(), nil, string(content)))
		if err != nil || !sameConfig(c, again) {
			t.Errorf("read again it is another: %v", err)
		}
	})
}

// FuzzValue holds down the same for a value of any setting, and that flag,
// variable and file read a text alike.
func FuzzValue(f *testing.F) {
	table := slices.DeleteFunc(config.Settings(), func(s config.Setting) bool { return s.Flag == "" || s.Flag == "config" })
	for i := range table {
		for _, text := range []string{"", "10.0.0.1:1", "https://a.example", "1", "true", "acme", "\x00", bearer, jwt} {
			f.Add(uint8(i), text)
		}
	}
	for _, s := range samples {
		f.Add(uint8(0), s.a)
	}
	rules := rulesOfThisPackage(f)
	f.Fuzz(func(t *testing.T, i uint8, text string) {
		row := table[int(i)%len(table)]
		c, _, err := config.Load(sourcesOf(row, given{source: config.FromFlag, text: text}))
		if err != nil {
			checkInvalid(t, err, rules)
		} else {
			checkConfig(t, c)
		}
		if text == "" || strings.ContainsRune(text, '\'') {
			return // a variable that is not set; a text that yamlOf cannot write
		}
		other, _, otherErr := config.Load(sourcesOf(row, given{source: config.FromEnvironment, text: text}))
		if (err == nil) != (otherErr == nil) || !sameConfig(c, other) {
			t.Errorf("--%s and its variable read a text differently", row.Flag)
		}
		if strings.ContainsFunc(text, isNotPrinted) {
			return // YAML folds or refuses what is not printed
		}
		other, _, otherErr = config.Load(sourcesOf(row, given{source: config.FromFile, text: text}))
		if (err == nil) != (otherErr == nil) || !sameConfig(c, other) {
			t.Errorf("--%s and its key read a text differently", row.Flag)
		}
	})
}

func isNotPrinted(c rune) bool { return c < ' ' || c > '~' }

// FuzzArguments holds down that no command line panics its judge, and that a
// bearer is found wherever it is a whole value.
func FuzzArguments(f *testing.F) {
	f.Add("serve", "--node-id")
	f.Add("--", "-")
	f.Add("--a=b", "")
	rules := rulesOfThisPackage(f)
	f.Fuzz(func(t *testing.T, first, second string) {
		if err := config.JudgeArguments([]string{first, second}); err != nil {
			checkArguments(t, err, rules)
		}
		for _, args := range [][]string{{first, second, bearer}, {first, bearer, second}, {first, "--x=" + bearer, second}} {
			err := config.JudgeArguments(args)
			if err == nil {
				t.Fatalf("%q hid a bearer", args)
			}
			checkArguments(t, err, rules)
			if strings.Contains(err.Error(), bearer[len(bearer)-16:]) {
				t.Error("the error quotes the bearer")
			}
		}
	})
}

func checkArguments(t *testing.T, err error, rules map[config.Rule]bool) {
	t.Helper()
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v, want an *InvalidError", err)
	}
	for _, r := range invalid.Reasons {
		position := strings.HasPrefix(r.Setting, "argument ")
		if !rules[r.Rule] || !position && strings.ContainsFunc(r.Setting, isNoNameRune) {
			t.Errorf("the reason %+v", r)
		}
	}
}
