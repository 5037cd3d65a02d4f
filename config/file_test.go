package config_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/config"
)

// inFile is a reason about a line of the file.
func inFile(setting string, line int, rule config.Rule) config.Reason {
	return config.Reason{Place: config.Place{Setting: setting, Source: config.FromFile, Line: line}, Rule: rule}
}

// suggesting adds what was probably meant.
func suggesting(r config.Reason, suggest string) config.Reason {
	r.Suggest = suggest
	return r
}

func TestFileIsReadExactly(t *testing.T) {
	const long = 70
	for _, test := range []struct {
		name, file string
		want       []config.Reason
	}{
		{"unknown key", "nodeid: x\n", []config.Reason{suggesting(inFile("nodeid", 1, config.UnknownSetting), "node-id")}},
		{"unknown key in a section", "protocol:\n  socketpath: /x\n",
			[]config.Reason{suggesting(inFile("protocol.socketpath", 2, config.UnknownSetting), "protocol.socketPath")}},
		{"underscores", "cloudly_url: x\n", []config.Reason{suggesting(inFile("cloudly_url", 1, config.UnknownSetting), "cloudly-url")}},
		{"camel case", "\nhubListen: x\n", []config.Reason{suggesting(inFile("hubListen", 2, config.UnknownSetting), "hub-listen")}},
		{"nothing near", "zebra: x\n", []config.Reason{inFile("zebra", 1, config.UnknownSetting)}},
		{"the token of an earlier release", "corestore-api-token: x\n", []config.Reason{inFile("corestore-api-token", 1, config.UnknownSetting)}},
		{"a path as one key", "protocol.socketPath: /x\n", []config.Reason{suggesting(inFile("protocol.socketPath", 1, config.UnknownSetting), "protocol.socketPath")}},
		{"a key with case", "Node-ID: x\n", []config.Reason{inFile("Node-ID", 1, config.UnknownSetting)}},
		{"a long key is not repeated", strings.Repeat("k", long) + ": x\n", []config.Reason{inFile("", 1, config.UnknownSetting)}},
		{"a key that is no name is not repeated", "'a b': x\n", []config.Reason{inFile("", 1, config.UnknownSetting)}},
		{"a secret as key is not repeated", bearer + ": x\n", []config.Reason{inFile("", 1, config.UnknownSetting)}},
		{"the file names a file", "config: other.yaml\n", []config.Reason{inFile("config", 1, config.NotInFile)}},

		{"twice", "log-level: info\nlog-level: info\n", []config.Reason{inFile("log-level", 2, config.Repeated)}},
		{"twice, quoted", "log-level: info\n\"log-level\": debug\n", []config.Reason{inFile("log-level", 2, config.Repeated)}},
		{"a section twice", "protocol: {socketPath: /a}\nprotocol: {socketPath: /b}\n", []config.Reason{inFile("protocol", 2, config.Repeated)}},
		{"twice in a section", "protocol:\n  socketPath: /a\n  socketPath: /a\n", []config.Reason{inFile("protocol.socketPath", 3, config.Repeated)}},

		{"no value", "hub-listen:\n", []config.Reason{inFile("hub-listen", 1, config.NoValue)}},
		{"null", "hub-listen: null\n", []config.Reason{inFile("hub-listen", 1, config.NoValue)}},
		{"tilde", "hub-listen: ~\n", []config.Reason{inFile("hub-listen", 1, config.NoValue)}},
		{"a list for a value", "hub-listen: [192.0.2.1:4433]\n", []config.Reason{inFile("hub-listen", 1, config.NotOneValue)}},
		{"a mapping for a value", "hub-listen: {a: b}\n", []config.Reason{inFile("hub-listen", 1, config.NotOneValue)}},
		{"a value for a list", "protocol:\n  forward:\n    nodeToCloudly: reportA\n",
			[]config.Reason{inFile("protocol.forward.nodeToCloudly", 3, config.NotList)}},
		{"nothing for a list", "protocol:\n  forward:\n    nodeToCloudly:\n",
			[]config.Reason{inFile("protocol.forward.nodeToCloudly", 3, config.NoValue)}},
		{"a list in a list", "protocol:\n  forward:\n    nodeToCloudly:\n      - a\n      - [b]\n",
			[]config.Reason{inFile("protocol.forward.nodeToCloudly[1]", 5, config.NotOneValue)}},
		{"null in a list", "protocol:\n  forward:\n    nodeToCloudly: [null]\n",
			[]config.Reason{inFile("protocol.forward.nodeToCloudly[0]", 3, config.NotOneValue)}},
		{"a value for a section", "protocol: 8\n", []config.Reason{inFile("protocol", 1, config.NotMapping)}},
		{"a list for a section", "protocol:\n  corestore: [a]\n", []config.Reason{inFile("protocol.corestore", 2, config.NotMapping)}},
		{"a list", "- node-id: a\n", []config.Reason{inFile("", 1, config.NotMapping)}},
		{"a text", "node-id\n", []config.Reason{inFile("", 1, config.NotMapping)}},

		{"an alias", "node-id: &n a\nhub-key-file: *n\n", []config.Reason{
			inFile("node-id", 1, config.NotPlainYAML), inFile("hub-key-file", 2, config.NotPlainYAML)}},
		{"an alias that holds itself", "protocol: &p\n  forward: *p\n", []config.Reason{inFile("protocol", 1, config.NotPlainYAML)}},
		{"a merge", "protocol: {<<: {socketPath: /x}}\n", []config.Reason{inFile("", 1, config.UnknownSetting)}},
		{"a tag", "node-id: !!str a\n", []config.Reason{inFile("node-id", 1, config.NotPlainYAML)}},
		{"a tag of one's own", "node-id: !secret a\n", []config.Reason{inFile("node-id", 1, config.NotPlainYAML)}},
		{"a tagged key", "!!str node-id: a\n", []config.Reason{inFile("", 1, config.NotPlainYAML)}},
		{"a list as key", "[a]: b\n", []config.Reason{inFile("", 1, config.NotPlainYAML)}},
		{"a tag in a list", "protocol:\n  forward:\n    nodeToCloudly: [!x a]\n",
			[]config.Reason{inFile("protocol.forward.nodeToCloudly[0]", 3, config.NotPlainYAML)}},

		{"two documents", "node-id: a\n---\nnode-id: b\n", []config.Reason{inFile("", 2, config.NotOneDocument)}},
		{"not YAML", "node-id: a\nlisten: [\n", []config.Reason{inFile("", 2, config.NotYAML)}},
		{"not YAML behind the document", "node-id: a\n...\n}\n", []config.Reason{inFile("", 2, config.NotYAML)}},
		{"an unknown alias is not quoted", "node-id: *" + strings.Repeat("s", 8) + "\n", []config.Reason{inFile("", 0, config.NotYAML)}},
		{"not UTF-8", "node-id: \xff\n", []config.Reason{inFile("", 0, config.NotYAML)}},

		{"all at once", "zebra: x\nhub-workers: none\nlog-level: x\nprotocol: {timeout: 3}\n", []config.Reason{
			inFile("zebra", 1, config.UnknownSetting), inFile("protocol.timeout", 4, config.UnknownSetting),
			inFile("hub-workers", 2, config.NotWorkerCount), inFile("log-level", 3, config.NotChoice)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := config.Load(withFile(base(), nil, test.file))
			checkReasons(t, test.name, err, test.want...)
		})
	}
}

func TestFileForms(t *testing.T) {
	for _, test := range []struct{ name, file, node string }{
		{"plain", "node-id: a\n", "a"},
		{"a number", "node-id: 0123\n", "0123"},
		{"a word that YAML reads as a truth", "node-id: yes\n", "yes"},
		{"quoted nothing", "node-id: 'null'\n", "null"},
		{"double quotes", "node-id: \"\\x61\"\n", "a"},
		{"flow", "{node-id: a}", "a"},
		{"a start of document", "%YAML 1.1\n---\nnode-id: a\n...\n", "a"},
		{"a byte order mark", "\ufeffnode-id: a\n", "a"},
		{"carriage returns", "# first\r\nnode-id: a\r\n", "a"},
		{"an empty section", "node-id: a\nprotocol:\n  # socketPath: /x\n", "a"},
		{"sections without a key", "node-id: a\nprotocol: {forward: {}, corestore: }\n", "a"},
	} {
		c, _, err := config.Load(withFile(baseWithout("node-id"), nil, test.file))
		if err != nil || c.NodeID != test.node {
			t.Errorf("%s: node %q, error %v", test.name, c.NodeID, err)
		}
	}
	for name, file := range map[string]string{"empty": "", "comments": "# nothing\n\n# here\n", "an empty document": "---\n", "an empty mapping": "{}"} {
		if _, _, err := config.Load(withFile(base(), nil, file)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What YAML can only hold by an escape is judged after it.
func TestFileOfBytes(t *testing.T) {
	_, _, err := config.Load(withFile(base(), nil, `hub-key-file: "a\nb"`))
	checkReasons(t, "a line end", err, inFile("hub-key-file", 1, config.NotFileName))
	_, _, err = config.Load(withFile(base(), nil, "hub-key-file: |\n  /etc/key\n"))
	checkReasons(t, "a block", err, inFile("hub-key-file", 1, config.NotFileName))
}

func TestFileThatCannotBeRead(t *testing.T) {
	content := func(r io.Reader) func(string) (io.ReadCloser, error) {
		return func(string) (io.ReadCloser, error) { return io.NopCloser(r), nil }
	}
	failing := func(err error) func(string) (io.ReadCloser, error) {
		return func(name string) (io.ReadCloser, error) {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
	at := config.Place{Setting: "config", Source: config.FromFlag, Name: "--config"}
	comment := "# " + strings.Repeat("x", 256<<10-3) + "\n"
	for _, test := range []struct {
		name string
		file string
		open func(string) (io.ReadCloser, error)
		rule config.Rule
	}{
		{"missing", "f", failing(fs.ErrNotExist), config.FileMissing},
		{"forbidden", "f", failing(fs.ErrPermission), config.FileForbidden},
		{"broken", "f", failing(errors.New("a folder")), config.FileUnreadable},
		{"broken while it is read", "f", content(io.MultiReader(strings.NewReader("a"), iotest.ErrReader(errors.New("gone")))), config.FileUnreadable},
		{"no opener", "f", nil, config.FileUnreadable},
		{"the largest", "f", content(strings.NewReader(comment)), ""},
		{"larger", "f", content(strings.NewReader(comment + "\n")), config.FileTooLarge},
		{"endless", "f", content(endless{}), config.FileTooLarge},
		{"no file name", "a\nb", failing(errors.New("opened")), config.NotFileName},
	} {
		flags := base()
		if test.rule != "" {
			// What is required may stand in the file: that it is missing is not said.
			flags = map[string]string{}
		}
		flags["config"] = test.file
		_, _, err := config.Load(config.Sources{Flags: flags, Open: test.open})
		if test.rule == "" {
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		checkReasons(t, test.name, err, config.Reason{Place: at, Rule: test.rule})
	}
	// What the other sources give is judged all the same.
	_, _, err := config.Load(config.Sources{Flags: map[string]string{"config": "f", "node-id": "a.b"}, Open: failing(fs.ErrNotExist)})
	checkReasons(t, "beside a missing file", err, config.Reason{Place: at, Rule: config.FileMissing},
		config.Reason{Place: config.Place{Setting: "node-id", Source: config.FromFlag, Name: "--node-id"}, Rule: config.NotNodeID})
	// A file that is no YAML may hold what is required, too.
	_, _, err = config.Load(withFile(nil, nil, "]"))
	checkReasons(t, "no YAML", err, inFile("", 0, config.NotYAML))
}

// endless never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	return len(p), nil
}

// The file is closed once it is read, however that ended.
func TestFileIsClosed(t *testing.T) {
	for _, content := range []string{"node-id: a\n", "]", strings.Repeat("#", 256<<10+1)} {
		file := &closing{Reader: strings.NewReader(content)}
		flags := base()
		flags["config"] = "f"
		_, _, _ = config.Load(config.Sources{Flags: flags, Open: func(string) (io.ReadCloser, error) { return file, nil }})
		if file.closed != 1 {
			t.Errorf("a file of %d bytes was closed %d times", len(content), file.closed)
		}
	}
}

type closing struct {
	io.Reader
	closed int
}

func (c *closing) Close() error {
	c.closed++
	return nil
}

// A file of nothing but mistakes is cut short: the first are listed, the rest is
// counted.
func TestManyReasons(t *testing.T) {
	var b strings.Builder
	for i := range 25_000 {
		fmt.Fprintf(&b, "k%d: x\n", i)
	}
	_, _, err := config.Load(withFile(base(), nil, b.String()))
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v", err)
	}
	if len(invalid.Reasons) != 64 || invalid.More < 20_000 {
		t.Errorf("%d reasons and %d more", len(invalid.Reasons), invalid.More)
	}
	if diff := cmp.Diff(inFile("k63", 64, config.UnknownSetting), invalid.Reasons[63]); diff != "" {
		t.Error(diff)
	}
	if !strings.HasSuffix(err.Error(), fmt.Sprintf("; and %d more", invalid.More)) {
		t.Error("the error does not count the others")
	}
}
