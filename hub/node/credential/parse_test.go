package credential

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/hub/node"
)

// Keys of tests: any 32 bytes are a private key, and most are a public one.
const (
	private = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
	public  = "ywlpIi8SL2Q1mRtXBdq/9P3NjU6fQdRaNlRFEfqD1jM="
)

// whole is a credential with everything.
const whole = "hub: 192.0.2.10:4433\nhub-public-key: " + public + "\nauthority-id: authority-1\nprivate-key: " + private + "\nexpires-at: 1764547200000\n"

func keyOf(t testing.TB, text string) node.PrivateKey {
	t.Helper()
	key, err := node.ParsePrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestParse_Whole(t *testing.T) {
	for name, text := range map[string]string{
		"in order":            whole,
		"quoted":              strings.NewReplacer("192.0.2.10:4433", `"192.0.2.10:4433"`, "authority-1", "'authority-1'").Replace(whole),
		"in JSON":             `{"hub":"192.0.2.10:4433","hub-public-key":"` + public + `","authority-id":"authority-1","private-key":"` + private + `","expires-at":1764547200000}`,
		"with comments":       "# of node-a\n---\n" + whole + "# end\n",
		"a time of RFC 3339":  strings.Replace(whole, "1764547200000", "2025-12-01T00:00:00Z", 1),
		"a time of elsewhere": strings.Replace(whole, "1764547200000", "2025-12-01T01:00:00+01:00", 1),
	} {
		c, err := parse([]byte(text), "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.Hub != netip.MustParseAddrPort("192.0.2.10:4433") || c.HubKey.String() != public || c.AuthorityID != "authority-1" ||
			c.Key.Secret() != private || !c.ExpiresAt.Equal(time.Date(2025, 12, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// The expiry may be left out, and what a credential is for is then not known.
func TestParse_WithoutExpiry(t *testing.T) {
	c, err := parse([]byte(strings.Replace(whole, "expires-at: 1764547200000\n", "", 1)), "")
	if err != nil || !c.ExpiresAt.IsZero() {
		t.Errorf("%v, %v", c.ExpiresAt, err)
	}
}

func TestParse_Refused(t *testing.T) {
	with := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(whole) }
	const marker = "5ec2e7000123456789abcdef5ec2e7000123456789abcdef5ec2e7000123dead"
	tests := []struct {
		name, text string
		want       Error
	}{
		{"nothing", "", Error{Name: KeyMissing, Key: "hub"}},
		{"comments alone", "# " + marker + "\n", Error{Name: KeyMissing, Key: "hub"}},
		{"a text", marker, Error{Name: NotPlain, Line: 1}},
		{"a list", "- " + marker, Error{Name: NotPlain, Line: 1}},
		{"no YAML", "hub: [" + marker, Error{Name: NotYAML}},
		{"no UTF-8", whole + "# \xff", Error{Name: NotYAML}},
		{"two documents", whole + "---\nhub: x\n", Error{Name: NotYAML}},
		{"two documents, the second broken", whole + "---\nhub: [\n", Error{Name: NotYAML}},
		{"an unknown key", whole + marker + ": x\n", Error{Name: UnknownKey, Line: 6}},
		{"a key in other case", with("hub: ", "Hub: "), Error{Name: UnknownKey, Line: 1}},
		{"a key twice", whole + "private-key: " + marker + "\n", Error{Name: Repeated, Key: "private-key", Line: 6}},
		{"a key that is a list", "? [" + marker + "]\n: x\n", Error{Name: NotPlain, Line: 1}},
		{"an anchor", with("authority-1", "&a authority-1"), Error{Name: NotPlain, Key: "authority-id", Line: 3}},
		{"an alias", with("authority-1", "&a authority-1", "private-key: "+private, "private-key: *a"), Error{Name: NotPlain, Key: "authority-id", Line: 3}},
		{"a tag", with("authority-1", "!!str authority-1"), Error{Name: NotPlain, Key: "authority-id", Line: 3}},
		{"a merged mapping", "<<: {hub: x}\n" + whole, Error{Name: UnknownKey, Line: 1}},
		{"a value that is a mapping", with("private-key: "+private, "private-key: {"+marker+": x}"), Error{Name: NotPlain, Key: "private-key", Line: 4}},
		{"no value", with("authority-1", ""), Error{Name: NotPlain, Key: "authority-id", Line: 3}},
		{"null", with("authority-1", "~"), Error{Name: NotPlain, Key: "authority-id", Line: 3}},

		{"no hub", with("hub: 192.0.2.10:4433\n", ""), Error{Name: KeyMissing, Key: "hub"}},
		{"a hub without a port", with(":4433", ""), Error{Name: NoAddress, Key: "hub", Line: 1}},
		{"port 0", with(":4433", ":0"), Error{Name: NoAddress, Key: "hub", Line: 1}},
		{"a wildcard", with("192.0.2.10", "0.0.0.0"), Error{Name: NoAddress, Key: "hub", Line: 1}},
		{"a name", with("192.0.2.10", "hub.example"), Error{Name: NoAddress, Key: "hub", Line: 1}},
		{"an address with a zone", with("192.0.2.10", "'[fe80::1%eth0]'"), Error{Name: NotYAML}},
		{"a quoted address with a zone", with("192.0.2.10:4433", "'[fe80::1%eth0]:4433'"), Error{Name: NoAddress, Key: "hub", Line: 1}},

		{"no key of the hub", with("hub-public-key: "+public+"\n", ""), Error{Name: KeyMissing, Key: "hub-public-key"}},
		{"a key of the hub in hex", with(public, marker), Error{Name: NoKey, Key: "hub-public-key", Line: 2}},
		{"a key of the hub that is not canonical", with(public, public[:42]+"N="), Error{Name: NoKey, Key: "hub-public-key", Line: 2}},
		{"a key of zeroes", with(public, strings.Repeat("A", 43)+"="), Error{Name: NoKey, Key: "hub-public-key", Line: 2}},

		{"no authority", with("authority-id: authority-1\n", ""), Error{Name: KeyMissing, Key: "authority-id"}},
		{"an empty one", with("authority-1", "''"), Error{Name: NoID, Key: "authority-id", Line: 3}},
		{"one that is too long", with("authority-1", strings.Repeat("é", 65)), Error{Name: NoID, Key: "authority-id", Line: 3}},

		{"no private key", with("private-key: "+private+"\n", ""), Error{Name: KeyMissing, Key: "private-key"}},
		{"a private key in hex", with(private, marker), Error{Name: NoKey, Key: "private-key", Line: 4}},
		{"both", whole + "private-key-file: " + marker + "\n", Error{Name: TwoKeys, Line: 6}},
		{"an empty name of its file", with("private-key: "+private, "private-key-file: ''"), Error{Name: Missing, Key: "private-key-file", Line: 4}},

		{"an expiry of 0", with("1764547200000", "0"), Error{Name: NoTime, Key: "expires-at", Line: 5}},
		{"an expiry before 1970", with("1764547200000", "-1"), Error{Name: NoTime, Key: "expires-at", Line: 5}},
		{"an expiry that is no safe integer", with("1764547200000", "9007199254740992"), Error{Name: NoTime, Key: "expires-at", Line: 5}},
		{"an expiry with a fraction", with("1764547200000", "1764547200000.5"), Error{Name: NoTime, Key: "expires-at", Line: 5}},
		{"an expiry in words", with("1764547200000", "tomorrow"), Error{Name: NoTime, Key: "expires-at", Line: 5}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := parse([]byte(test.text), "")
			var got *Error
			if !errors.As(err, &got) || *got != test.want {
				t.Fatalf("%#v, want %#v", err, test.want)
			}
			if text := err.Error(); strings.Contains(text, marker[:8]) || strings.Contains(text, private[:8]) {
				t.Errorf("it shows the content: %s", text)
			}
		})
	}
}

// The key may stand in a file of its own, which is looked for beside the credential.
func TestRead_KeyInAFileOfItsOwn(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.Mkdir(filepath.Join(folder, "keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	key := write("keys/node.key", private+"\n", 0o600)
	write("open.key", private, 0o644)
	write("wrong.key", "no key", 0o600)
	for name, test := range map[string]struct {
		file string
		want *Error
	}{
		"beside it":       {"keys/node.key", nil},
		"anywhere":        {key, nil},
		"not there":       {"none.key", &Error{Name: Missing, Key: "private-key-file", Line: 4}},
		"open to others":  {"open.key", &Error{Name: TooOpen, Key: "private-key-file", Line: 4}},
		"without a key":   {"wrong.key", &Error{Name: NoKey, Key: "private-key-file", Line: 4}},
		"a folder":        {"keys", &Error{Name: NotAFile, Key: "private-key-file", Line: 4}},
		"no name of file": {`"a\0b"`, &Error{Name: Missing, Key: "private-key-file", Line: 4}},
	} {
		c, err := Read(write("credential.yaml", strings.Replace(whole, "private-key: "+private, "private-key-file: "+test.file, 1), 0o600))
		var got *Error
		switch errors.As(err, &got); {
		case test.want == nil && (err != nil || c.Key.Secret() != private):
			t.Errorf("%s: %v", name, err)
		case test.want != nil && (got == nil || *got != *test.want):
			t.Errorf("%s: %#v", name, err)
		}
	}
}

// Whatever a file holds, it is a whole credential or is refused by name, and what is
// refused shows nothing of it.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", whole, "hub: &a x\nprivate-key: *a\n", "? [a]\n: b\n", "- x", "{", "hub: !!binary aGk=", "%YAML 1.1\n---\n" + whole, "\ufeff" + whole,
		"hub: |\n  192.0.2.10:4433\n", "a: b\n---\nc: d\n", "expires-at: 0x10\n", "\t", "hub: 'x", whole + whole,
	} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		c, err := parse(content, dir)
		if err == nil {
			if !c.Hub.IsValid() || c.Key.IsZero() || c.HubKey == (node.PublicKey{}) || c.AuthorityID == "" {
				t.Errorf("%q is %+v", content, c)
			}
			return
		}
		var why *Error
		if !errors.As(err, &why) || sentences[why.Name] == "" {
			t.Fatalf("%q: %#v", content, err)
		}
		for line := range strings.Lines(string(content)) {
			if _, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && len(value) > 40 && strings.Contains(err.Error(), value) {
				t.Errorf("%q is shown: %v", value, err)
			}
		}
	})
}
