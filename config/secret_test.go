package config_test

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/config"
)

// Values that only a file of its own may hold. None is in use anywhere.
var (
	bearer = "clusterRelayToken_cred_1_" + strings.Repeat("0123456789abcdef", 4)
	jwt    = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.c2ln"
	pem    = "-----BEGIN PRIVATE KEY-----MC4C"
	keyHex = strings.Repeat("09afAF", 10) + "0123"
	key    = []byte("\x08an example of a private key 32b\xfe")[:32]
)

var secrets = map[string]string{
	"bearer":                    bearer,
	"bearer cut short":          bearer[:40],
	"bearer in capitals":        strings.ToUpper(bearer),
	"bearer of another service": "spark_userToken_" + strings.Repeat("0f", 32),
	"authorization":             "Bearer abc",
	"jwt":                       jwt,
	"jwt in a sentence":         "token=" + jwt,
	"pem":                       pem,
	"key in hex":                keyHex,
	"key in base64":             base64.StdEncoding.EncodeToString(key),
	"key in base64url":          base64.URLEncoding.EncodeToString(key),
	"key in base64 unpadded":    base64.RawStdEncoding.EncodeToString(key),
}

// Values that look alike and are none.
var harmless = map[string]string{
	"a docker secret":       "/run/secrets/relay_token_file",
	"a token's folder":      "/run/relay_token_v2/CloudlyProduction1",
	"a relative file":       "secrets/my_token_1",
	"a digest in a path":    "/nix/store/" + strings.Repeat("0f", 32) + "/relay.pem",
	"a digest":              "sha256:" + strings.Repeat("0f", 32),
	"a machine id":          strings.Repeat("0f", 16),
	"a path of 43":          "/etc/relay/Certificates/Production2/chain/c",
	"a commit":              strings.Repeat("0f", 20),
	"the word":              "bearer",
	"a short base64":        "dGhlIHF1aWNr",
	"a name of many words":  "a-long-name-of-many-words-that-ends-after-forty-3",
	"a path of hexadecimal": "/" + strings.Repeat("0f", 32)[1:],
}

// A secret ends the start in every source, under every setting that can hold a
// text, and is never quoted.
func TestSecretsInTheOpen(t *testing.T) {
	table := settingsByName()
	for what, text := range secrets {
		for _, s := range samples {
			row := table[s.name]
			mayBeKey := row.Kind == config.KindNodeID || row.Kind == config.KindMethod || row.Kind == config.KindMethods
			if mayBeKey && strings.HasPrefix(what, "key in") && what != "key in base64" {
				continue // TestNamesMayLookLikeKeys
			}
			for _, place := range placesFor(row) {
				place.text = text
				_, _, err := config.Load(sourcesOf(row, place))
				at := placeOf(row, place)
				if row.Kind == config.KindMethods {
					at.Setting += "[0]"
				}
				checkReasons(t, what+" in "+s.name+" from the "+place.source.String(), err, config.Reason{Place: at, Rule: config.SecretInTheOpen})
				if err != nil && strings.Contains(strings.ToLower(err.Error()), strings.ToLower(text[len(text)-8:])) {
					t.Errorf("%s in %s: the error quotes it", what, s.name)
				}
			}
		}
	}
}

// The variable of a setting that the command line overrides is judged as well.
func TestSecretThatDoesNotCount(t *testing.T) {
	_, _, err := config.Load(config.Sources{Flags: base(), Environ: []string{"RELAY_NODE_ID=" + bearer, "COREFLOW_NODE_ID=" + bearer}})
	checkReasons(t, "overridden", err,
		config.Reason{Place: config.Place{Setting: "node-id", Source: config.FromEnvironment, Name: "COREFLOW_NODE_ID"}, Rule: config.SecretInTheOpen},
		config.Reason{Place: config.Place{Setting: "node-id", Source: config.FromEnvironment, Name: "RELAY_NODE_ID"}, Rule: config.SecretInTheOpen})
}

// So is a variable of ours that is no setting's.
func TestSecretInAnUnknownVariable(t *testing.T) {
	for what, text := range secrets {
		_, _, err := config.Load(config.Sources{Flags: base(), Environ: []string{"RELAY_TOKEN=" + text, "OTHER_TOKEN=" + text}})
		checkReasons(t, what, err, config.Reason{
			Place: config.Place{Setting: "RELAY_TOKEN", Source: config.FromEnvironment}, Rule: config.SecretInTheOpen,
		})
	}
	_, report, err := config.Load(config.Sources{Flags: base(), Environ: []string{"RELAY_" + bearer + "=" + bearer}})
	checkReasons(t, "in the name", err, config.Reason{Place: config.Place{Source: config.FromEnvironment}, Rule: config.SecretInTheOpen})
	if len(report.Unknown) != 0 {
		t.Error("a name that is a secret is reported")
	}
}

func TestHarmlessValues(t *testing.T) {
	for what, text := range harmless {
		flags := base()
		flags["hub-key-file"] = text
		if _, _, err := config.Load(config.Sources{Flags: flags, Environ: []string{"RELAY_OTHER=" + text}}); err != nil {
			t.Errorf("%s is refused: %v", what, err)
		}
		if err := config.JudgeArguments([]string{"serve", text, "--hub-key-file=" + text, "--other", text}); err != nil {
			t.Errorf("%s as an argument is refused: %v", what, err)
		}
	}
}

// By their grammars node ids and methods may be spelled like a key.
func TestNamesMayLookLikeKeys(t *testing.T) {
	for _, text := range []string{keyHex, strings.Repeat("0f", 16), hex.EncodeToString(key), "worker_token_1"} {
		for _, place := range placesFor(settingsByName()["node-id"]) {
			place.text = text
			if _, _, err := config.Load(sourcesOf(settingsByName()["node-id"], place)); err != nil {
				t.Errorf("a node of %d characters is refused: %v", len(text), err)
			}
		}
		if err := config.JudgeArguments([]string{"--node-id", text, "--node-id=" + text}); err != nil {
			t.Errorf("a node of %d characters as an argument is refused: %v", len(text), err)
		}
	}
	c, _, err := config.Load(withFile(base(), nil, "protocol: {exchangeMethod: getIdentityByToken_v2}"))
	if err != nil || c.Protocol.ExchangeMethod != "getIdentityByToken_v2" {
		t.Errorf("method %q, error %v", c.Protocol.ExchangeMethod, err)
	}
}

func TestJudgeArguments(t *testing.T) {
	at := func(setting string) config.Reason {
		return config.Reason{Place: config.Place{Setting: setting, Source: config.FromFlag}, Rule: config.SecretArguments}
	}
	for what, text := range secrets {
		long, short := at("--token"), at("-t")
		if what == "pem" { // which begins as a flag does
			long, short = at("argument 3"), at("argument 3")
		}
		for _, test := range []struct {
			args []string
			want []config.Reason
		}{
			{[]string{"serve", text}, []config.Reason{at("argument 2")}},
			{[]string{"serve", "--token", text}, []config.Reason{long}},
			{[]string{"serve", "--token=" + text}, []config.Reason{at("--token")}},
			{[]string{"serve", "-t", text}, []config.Reason{short}},
			{[]string{"--credential-file=" + text, "x", text}, []config.Reason{at("--credential-file"), at("argument 3")}},
			{[]string{"--allow-loopback", "--", text}, []config.Reason{at("argument 3")}},
			{[]string{"--a=b", text}, []config.Reason{at("argument 2")}},
		} {
			err := config.JudgeArguments(test.args)
			checkReasons(t, what, err, test.want...)
			if err != nil && strings.Contains(strings.ToLower(err.Error()), strings.ToLower(text[len(text)-8:])) {
				t.Errorf("%s: the error quotes it", what)
			}
		}
	}
	checkReasons(t, "a flag's name", config.JudgeArguments([]string{"--" + bearer}), at("argument 1"))
	checkReasons(t, "a flag's name before a value", config.JudgeArguments([]string{"--" + bearer, "x"}), at("argument 1"))
	for _, args := range [][]string{nil, {}, {""}, {"-"}, {"--"}, {"serve", "--listen", "10.0.4.7:8443", "--hub-listen="}, {"--from", "10.0.0.1"}} {
		if err := config.JudgeArguments(args); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// The token of an earlier release is ignored, whatever it holds, and named once.
func TestCorestoreToken(t *testing.T) {
	environ := []string{"CORESTORE_API_TOKEN=" + bearer, "CORESTORE_API_TOKEN=x"}
	c, report, err := config.Load(config.Sources{Flags: base(), Environ: environ})
	without, _, _ := config.Load(config.Sources{Flags: base()})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"CORESTORE_API_TOKEN"}, report.Ignored); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
	if !sameConfig(c, without) {
		t.Error("the token changed the configuration")
	}
	_, report, err = config.Load(config.Sources{Environ: environ})
	if err == nil || len(report.Ignored) != 1 {
		t.Errorf("beside an error: ignored %v, error %v", report.Ignored, err)
	}
	for _, environ := range [][]string{nil, {"CORESTORE_API_TOKEN="}, {"RELAY_X=1"}} {
		if _, report, _ := config.Load(config.Sources{Flags: base(), Environ: environ}); report.Ignored != nil {
			t.Errorf("%q: ignored %v", environ, report.Ignored)
		}
	}
}

func TestUnknownVariables(t *testing.T) {
	_, report, err := config.Load(config.Sources{Flags: base(), Environ: []string{
		"RELAY_SERVICE_HOST=10.0.0.1", "RELAY_CLOUDLY_URI=https://x.example", "RELAY_NODE_ID=n", "CLOUDLY_URI=x", "RELAY_=x", "RELAY_A B=x",
		"RELAY_PROTOCOL_SOCKETPATH=/x", "RELAY_UNSET=",
	}})
	want := []config.Unknown{
		{Name: "RELAY_"},
		{Name: "RELAY_CLOUDLY_URI", Suggest: "RELAY_CLOUDLY_URL"},
		{Name: "RELAY_PROTOCOL_SOCKETPATH"},
		{Name: "RELAY_SERVICE_HOST"},
	}
	if diff := cmp.Diff(want, report.Unknown); diff != "" || err != nil {
		t.Errorf("error %v, unknown (-want +got):\n%s", err, diff)
	}
}

func TestUnknownFlags(t *testing.T) {
	flags := base()
	flags["credential"] = "x"
	flags["protocol.socketPath"] = "/x"
	flags[bearer] = "x"
	_, _, err := config.Load(config.Sources{Flags: flags})
	checkReasons(t, "flags", err,
		config.Reason{Place: config.Place{Source: config.FromFlag}, Rule: config.UnknownSetting},
		config.Reason{Place: config.Place{Setting: "credential", Source: config.FromFlag}, Rule: config.UnknownSetting},
		config.Reason{Place: config.Place{Setting: "protocol.socketPath", Source: config.FromFlag}, Rule: config.UnknownSetting})
}
