package main

import (
	"errors"
	"io/fs"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"serve.zone/relay/appliance"
	"serve.zone/relay/config"
	"serve.zone/relay/contract"
)

// Every flag of the table is understood, in both forms, and its value arrives as
// it stands.
func TestParse_KeepsValues(t *testing.T) {
	settings := slices.DeleteFunc(config.Settings(), func(s config.Setting) bool { return s.Flag == "" })
	if len(settings) < 20 {
		t.Fatalf("the table has %d flags", len(settings))
	}
	rapid.Check(t, func(t *rapid.T) {
		want := map[string]string{}
		args := []string{"serve"}
		for _, s := range settings {
			value := rapid.String().Draw(t, s.Flag)
			form := rapid.SampledFrom([]string{"absent", "joined", "apart", "alone"}).Draw(t, "form")
			isSwitch := s.Kind == config.KindSwitch
			switch {
			case form == "joined":
				args = append(args, "--"+s.Flag+"="+value)
			case form == "apart" && !isSwitch && (!strings.HasPrefix(value, "-") || value == "-"):
				args = append(args, "--"+s.Flag, value)
			case form == "alone" && isSwitch:
				args, value = append(args, "--"+s.Flag), "true"
			default:
				continue
			}
			want[s.Flag] = value
		}
		v, err := parse(args, verbs())
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		serve, ok := v.(*serveVerb)
		if !ok {
			t.Fatalf("%q is %s", args, v.name())
		}
		if diff := cmp.Diff(want, serve.given()); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", args, diff)
		}
	})
}

// Whatever is on the command line, it is understood or refused by name.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "serve", "serve --listen=192.0.2.1:1", "serve --allow-loopback --log-level debug", "version --json",
		"help serve", "-h", "serve -- x", "node --address 10.0.0.1 --address=x --userspace", "keygen --out=a --public b", "explain --from a --to b --json", "serve --node-id=a --node-id=b", "--", "-", "serve --listen", "version -hx",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, " ")
		all := verbs()
		v, err := parse(args, all)
		var usage *usageError
		help, _ := v.(*helpVerb)
		switch {
		case err == nil && verbNamed(all, v.name()) == nil:
			t.Errorf("%q: verb %q", args, v.name())
		case help != nil && help.Topic != "" && verbNamed(all, help.Topic) == nil:
			t.Errorf("%q: topic %q", args, help.Topic)
		case err != nil && !errors.As(err, &usage):
			t.Errorf("%q: %T", args, err)
		case err != nil && (usage.text == "" || strings.ContainsAny(usage.text, "\n\x1b")):
			t.Errorf("%q: says %q", args, usage.text)
		}
	})
}

// What a line could do to a terminal it does not do, and it stays short.
func TestOneLine(t *testing.T) {
	tests := []struct{ text, want string }{
		{"open /etc/relé: no such file", "open /etc/relé: no such file"},
		{"a\nb\n", "a; b"},
		{"a\x1b[2Jb\tc\u202ed", "a\uFFFD[2Jb\uFFFDc\uFFFDd"},
		{strings.Repeat("a", maximumPlain+1), strings.Repeat("a", maximumPlain) + "..."},
	}
	for _, test := range tests {
		if got := oneLine(test.text); got != test.want {
			t.Errorf("oneLine(%q) = %q, want %q", test.text, got, test.want)
		}
	}
}

// B168: wherever a secret stands on the command line, it is repeated nowhere.
func TestB168_SecretInArgumentsIsNeverEchoed(t *testing.T) {
	const key = "5ec2e7000123456789abcdef5ec2e7000123456789abcdef5ec2e7000123dead"
	secrets := []string{
		"clusterRelayToken_cred_" + key,
		"eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiI1ZWMyZTcifQ.c2lnbmF0dXJlLW9mLXNvbWUtbGVuZ3Ro" + key,
		"-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEI" + key + "\n-----END PRIVATE KEY-----",
	}
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.SampledFrom(secrets).Draw(t, "secret")
		form := rapid.SampledFrom([]string{"%", "--%", "-%", "--listen=%", "--token=%", "--%=x", "x=%", "-h%", "a%b", "--"}).Draw(t, "form")
		around := rapid.SliceOfN(rapid.SampledFrom([]string{
			"serve", "node", "keygen", "explain", "version", "help", "--listen", "--out", "--from", "--credential-file", "--json", "-h", "--", "bogus", "--bogus", "--allow-loopback", "--node-id",
		}), 0, 4)
		args := around.Draw(t, "before")
		if form == "--" {
			args = append(args, "--")
			form = "%"
		}
		args = append(args, strings.ReplaceAll(form, "%", secret))
		args = append(args, around.Draw(t, "after")...)
		var stdout, stderr strings.Builder
		code := run(process{args: args, stdout: &stdout, stderr: &stderr})
		if said := stdout.String() + stderr.String(); strings.Contains(said, "5ec2e7") || strings.Contains(said, "eyJ") {
			t.Errorf("%q says %s", args, said)
		}
		if code != exitConfiguration || !strings.Contains(stderr.String(), "holds a secret") {
			t.Errorf("%q ends with %d and says %s", args, code, stderr.String())
		}
	})
}

// Help is made of the one table: every flag with its variables and its default.
func TestHelpNamesEverySetting(t *testing.T) {
	var stdout strings.Builder
	if code := run(process{args: []string{"serve", "--help"}, stdout: &stdout}); code != exitClean {
		t.Fatalf("ended with %d", code)
	}
	for _, s := range config.Settings() {
		if s.Flag == "" {
			continue
		}
		entry := regexp.MustCompile(`(?ms)^  --` + s.Flag + `(?:=\S+)?\n(?:      [^\n]*\n)+`).FindString(stdout.String())
		for _, want := range append(slices.Clone(s.Env), s.Default, "environment: "+s.Env[0]) {
			if entry == "" || !strings.Contains(entry, want) {
				t.Errorf("--%s: no %q in %q", s.Flag, want, entry)
			}
		}
	}
}

// Help lists every verb once, and each can be asked for and explains itself.
func TestHelpListsTheVerbs(t *testing.T) {
	_, list, _ := strings.Cut(helpText(""), "verbs:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var listed, names []string
	for line := range strings.Lines(list) {
		listed = append(listed, strings.Fields(line)[0])
	}
	for _, v := range verbs() {
		names = append(names, v.name())
	}
	if diff := cmp.Diff(names, listed); diff != "" || len(names) < 3 {
		t.Errorf("verbs (-there are +listed):\n%s", diff)
	}
	for _, name := range names {
		v, err := parse([]string{name, "--help"}, verbs())
		if help, ok := v.(*helpVerb); err != nil || !ok || help.Topic != name {
			t.Errorf("%s --help: %+v, %v", name, v, err)
		}
		text := helpText(name)
		if !strings.HasPrefix(text, "usage: relay "+name) {
			t.Errorf("help of %s: %s", name, text)
		}
		if words := strings.Join(strings.Fields(text), " "); !strings.Contains(words, "64 the command line was not understood") {
			t.Errorf("help of %s does not say the exit code of a command line that is not understood: %s", name, text)
		}
		for line := range strings.Lines(text) {
			if len(line) > 101 {
				t.Errorf("help of %s has a line of %d characters: %s", name, len(line)-1, line)
			}
		}
	}
}

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// An answer that could not be written is no success.
func TestAnswerThatIsNotTaken(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"help"}, {"serve", "--help"}} {
		var stderr strings.Builder
		if code := run(process{args: args, stdout: fullWriter{}, stderr: &stderr}); code != exitFailed {
			t.Errorf("%q ended with %d", args, code)
		}
		if want := "relay: could not write the answer: no space left\n"; stderr.String() != want {
			t.Errorf("%q says %q, want %q", args, stderr.String(), want)
		}
	}
}

// O21: the version that Cloudly is told.
func TestVersionIsAReleaseVersion(t *testing.T) {
	if !contract.IsReleaseVersion(version) {
		t.Errorf("%q is none", version)
	}
}

func TestVersionText(t *testing.T) {
	toolchain := runtime.Version()
	tests := []struct {
		build  appliance.Build
		asJSON bool
		want   string
	}{
		{appliance.Build{Version: "1.2.3", Revision: "abc"}, false, "relay 1.2.3, revision abc, " + toolchain + "\n"},
		{appliance.Build{Version: "1.2.3"}, false, "relay 1.2.3, " + toolchain + "\n"},
		{appliance.Build{Version: "1.2.3", Revision: "abc"}, true, `{"version":"1.2.3","revision":"abc","go":"` + toolchain + "\"}\n"},
		{appliance.Build{Version: "1.2.3"}, true, `{"version":"1.2.3","revision":"","go":"` + toolchain + "\"}\n"},
	}
	for _, test := range tests {
		if got := versionText(test.build, test.asJSON); got != test.want {
			t.Errorf("%+v: %q, want %q", test.build, got, test.want)
		}
	}
}

func TestRevisionOf(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	tests := []struct {
		name string
		info *debug.BuildInfo
		want string
	}{
		{"no build information", nil, ""},
		{"no version control", &debug.BuildInfo{Settings: []debug.BuildSetting{setting("GOOS", "linux")}}, ""},
		{"a commit", &debug.BuildInfo{Settings: []debug.BuildSetting{setting("vcs.revision", commit), setting("vcs.modified", "false")}}, commit},
		{"changes behind it", &debug.BuildInfo{Settings: []debug.BuildSetting{setting("vcs.revision", commit), setting("vcs.modified", "true")}}, ""},
		{"in another order", &debug.BuildInfo{Settings: []debug.BuildSetting{setting("vcs.modified", "true"), setting("vcs.revision", commit)}}, ""},
	}
	for _, test := range tests {
		if got := revisionOf(test.info); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// Every violation is a line of its own, and those that are not listed are counted.
func TestSayInvalid(t *testing.T) {
	var b strings.Builder
	sayInvalid(&b, &config.InvalidError{
		Reasons: []config.Reason{
			{Place: config.Place{Setting: "listen", Source: config.FromFlag, Name: "--listen"}, Rule: config.NotAddressPort},
			{Place: config.Place{Setting: "lisen", Source: config.FromFile, Line: 3}, Rule: config.UnknownSetting, Suggest: "listen"},
		},
		More: 4,
	})
	want := "relay: the configuration is not valid:\n" +
		"relay:   listen (from --listen): is not an address and a port\n" +
		"relay:   lisen (line 3 of the file): is not a setting (did you mean listen?)\n" +
		"relay:   and 4 more\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("says (-want +got):\n%s", diff)
	}
}

// What is told of an error never has the shape of a secret.
func TestPlain(t *testing.T) {
	tests := []struct {
		err  error
		want string
	}{
		{errors.New("cloudly-ca-file: holds no certificate"), "cloudly-ca-file: holds no certificate"},
		{
			&fs.PathError{Op: "open", Path: "clusterRelayToken_cred_5ec2e7", Err: fs.ErrNotExist},
			"open [withheld]: file does not exist",
		},
	}
	for _, test := range tests {
		if got := plain(test.err); got != test.want {
			t.Errorf("plain(%T) = %q, want %q", test.err, got, test.want)
		}
	}
}
