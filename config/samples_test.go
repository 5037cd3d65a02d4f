package config_test

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"strings"
	"testing"

	"serve.zone/relay/config"
)

// A sample is a setting with two values that are not its default, as a source
// writes them, and what the field holds then. Where a kind has only two values,
// one of them is the default.
type sample struct {
	name       string
	a, b       string // of a list: names with commas between
	unset      string // what the field shows by default
	show       func(config.Config) any
	wantA      string // what the field shows for a; a itself when empty
	wantB      string
	notInFile  bool
	fileAlone  bool
	isRequired bool
}

// samples has a row for each setting.
var samples = []sample{
	{name: "cloudly-url", a: "https://cloudly.example", b: "http://127.0.0.1:8080", isRequired: true,
		show: func(c config.Config) any { return c.Cloudly.URL }},
	{name: "cloudly-ca-file", a: "/etc/a.pem", b: "b.pem", show: func(c config.Config) any { return c.Cloudly.CAFile }},
	{name: "credential-file", a: "/run/a", b: "/run/b", isRequired: true, show: func(c config.Config) any { return c.Cloudly.CredentialFile }},
	{name: "node-id", a: "-abc", b: strings.Repeat("a", 128), isRequired: true, show: func(c config.Config) any { return c.NodeID }},
	{name: "listen", a: "10.0.4.7:8443", b: "192.0.2.7:1", isRequired: true, show: func(c config.Config) any { return c.Listen }},
	{name: "hub-listen", a: "192.0.2.1:4433", b: "192.0.2.2:65535", unset: "invalid AddrPort", show: func(c config.Config) any { return c.Hub.Listen }},
	{name: "hub-key-file", a: "/etc/hub.key", b: "hub.key", show: func(c config.Config) any { return c.Hub.KeyFile }},
	{name: "hub-workers", a: "2", b: "64", unset: "1", show: func(c config.Config) any { return c.Hub.Workers }},
	{name: "operator-listen", a: "0.0.0.0:9000", b: "[::1]:9001", unset: "127.0.0.1:9465", show: func(c config.Config) any { return c.OperatorListen }},
	{name: "tls-source", a: "acme", b: "cloudly", unset: "files", show: func(c config.Config) any { return c.TLS.Source }},
	{name: "tls-cert-file", a: "/etc/a.crt", b: "b.crt", show: func(c config.Config) any { return c.TLS.CertFile }},
	{name: "tls-key-file", a: "/etc/a.key", b: "b.key", show: func(c config.Config) any { return c.TLS.KeyFile }},
	{name: "acme-directory", a: "https://acme.example/directory", b: "https://localhost:14000/dir", show: func(c config.Config) any { return c.TLS.ACME.Directory }},
	{name: "acme-email", a: "a@example.com", b: "b+c@example.com", show: func(c config.Config) any { return c.TLS.ACME.Email }},
	{name: "acme-ca-file", a: "/etc/acme.pem", b: "acme.pem", show: func(c config.Config) any { return c.TLS.ACME.CAFile }},
	{name: "acme-storage", a: "/var/lib/relay/acme", b: "acme", show: func(c config.Config) any { return c.TLS.ACME.Storage }},
	{name: "acme-challenge", a: "tls-alpn-01", b: "dns-01", show: func(c config.Config) any { return c.TLS.ACME.Challenge }},
	{name: "acme-dns-server", a: "ns.example:53", b: "[2001:db8::1]:5353", show: func(c config.Config) any { return c.TLS.ACME.DNSServer }},
	{name: "acme-tsig-file", a: "/etc/tsig", b: "tsig", show: func(c config.Config) any { return c.TLS.ACME.TSIGFile }},
	{name: "registry-upstream", a: "https://registry.example:5000", b: "http://[::1]:5000", unset: baseCloudly,
		show: func(c config.Config) any { return c.Registry.Upstream }},
	{name: "registry-realm-origin", a: "https://auth.example", b: "https://auth2.example", unset: baseCloudly,
		show: func(c config.Config) any { return c.Registry.RealmOrigin }},
	{name: "config", a: "a.yaml", b: "b.yaml", notInFile: true},
	{name: "log-level", a: "debug", b: "error", wantA: "DEBUG", wantB: "ERROR", unset: "INFO", show: func(c config.Config) any { return c.Log.Level }},
	{name: "log-format", a: "text", b: "json", wantA: "1", wantB: "0", unset: "0", show: func(c config.Config) any { return c.Log.Format }},
	{name: "allow-loopback", a: "true", b: "false", unset: "false", show: func(c config.Config) any { return c.AllowLoopback }},

	{name: "protocol.interfacesVersion", fileAlone: true, a: "32.45.0", b: "32.50.2", unset: "32.44.0",
		show: func(c config.Config) any { return c.Protocol.Offer.InterfacesVersion }},
	{name: "protocol.minimumPeerVersion", fileAlone: true, a: "32.1.0", b: "32.44.0", unset: "32.0.0",
		show: func(c config.Config) any { return c.Protocol.Offer.MinimumPeerVersion }},
	{name: "protocol.socketPath", fileAlone: true, a: "/socket", b: "/a/b/", unset: "/", show: func(c config.Config) any { return c.Protocol.SocketPath }},
	{name: "protocol.exchangeMethod", fileAlone: true, a: "exchangeA", b: "exchangeB", unset: "getIdentityByToken",
		show: func(c config.Config) any { return c.Protocol.ExchangeMethod }},
	{name: "protocol.configurationPushMethod", fileAlone: true, a: "pushA", b: "pushB", unset: "pushClusterConfig",
		show: func(c config.Config) any { return c.Protocol.ConfigurationPushMethod }},
	{name: "protocol.configurationPullMethod", fileAlone: true, a: "pullA", b: "pullB", unset: "getClusterConfig",
		show: func(c config.Config) any { return c.Protocol.ConfigurationPullMethod }},
	{name: "protocol.forward.nodeToCloudly", fileAlone: true, a: "reportA", b: "reportB,reportC",
		wantA: "[reportA]", wantB: "[reportB reportC]", unset: "[]", show: func(c config.Config) any { return c.Protocol.NodeToCloudly }},
	{name: "protocol.forward.cloudlyToNode", fileAlone: true, a: "applyA", b: "applyB,applyC",
		wantA: "[applyA]", wantB: "[applyB applyC]", unset: "[]", show: func(c config.Config) any { return c.Protocol.CloudlyToNode }},
	corestorePath("inventoryPath", "/control/inventory", func(c config.Corestore) string { return c.InventoryPath }),
	corestorePath("legacyResourcesPath", "/control/legacy-resources", func(c config.Corestore) string { return c.LegacyResourcesPath }),
	corestorePath("backupPath", "/control/backup", func(c config.Corestore) string { return c.BackupPath }),
	corestorePath("restorePath", "/control/restore", func(c config.Corestore) string { return c.RestorePath }),
	corestorePath("prunePath", "/control/prune", func(c config.Corestore) string { return c.PrunePath }),
	corestorePath("isolatedPreparePath", "/isolated-restore/prepare", func(c config.Corestore) string { return c.IsolatedPreparePath }),
	corestorePath("isolatedStagePath", "/isolated-restore/write", func(c config.Corestore) string { return c.IsolatedStagePath }),
	corestorePath("isolatedProgressPath", "/isolated-restore/status", func(c config.Corestore) string { return c.IsolatedProgressPath }),
	corestorePath("isolatedExecutePath", "/isolated-restore/execute", func(c config.Corestore) string { return c.IsolatedExecutePath }),
	corestorePath("isolatedCleanupPath", "/isolated-restore/cleanup", func(c config.Corestore) string { return c.IsolatedCleanupPath }),
	{name: "protocol.corestore.timeout", fileAlone: true, a: "1s", b: "24h", wantB: "24h0m0s", unset: "30s",
		show: func(c config.Config) any { return c.Protocol.Corestore.Timeout }},
	{name: "protocol.corestore.executeTimeout", fileAlone: true, a: "90s", b: "20m", wantA: "1m30s", wantB: "20m0s", unset: "10m0s",
		show: func(c config.Config) any { return c.Protocol.Corestore.ExecuteTimeout }},
	{name: "protocol.corestore.backupTimeout", fileAlone: true, a: "2h", b: "30m", wantA: "2h0m0s", wantB: "30m0s", unset: "1h0m0s",
		show: func(c config.Config) any { return c.Protocol.Corestore.BackupTimeout }},
}

func corestorePath(name, standard string, path func(config.Corestore) string) sample {
	return sample{name: "protocol.corestore." + name, fileAlone: true, a: "/a/" + name, b: "/b/" + name, unset: standard,
		show: func(c config.Config) any { return path(c.Protocol.Corestore) }}
}

func (s sample) shown(c config.Config) string { return fmt.Sprint(s.show(c)) }

// want returns what the field shows for one of the two values.
func (s sample) want(text string) string {
	switch {
	case text == s.a && s.wantA != "":
		return s.wantA
	case text == s.b && s.wantB != "":
		return s.wantB
	}
	return text
}

// baseCloudly is the origin that the base gives.
const baseCloudly = "https://base.example"

// base is a whole configuration by flags, in which every certificate source and
// challenge has what it needs.
func base() map[string]string {
	return map[string]string{
		"cloudly-url": baseCloudly, "credential-file": "/base/credential", "node-id": "base", "listen": "10.9.9.9:9",
		"tls-cert-file": "/base/crt", "tls-key-file": "/base/key",
		"acme-directory": "https://base.example/acme", "acme-storage": "/base/acme", "acme-challenge": "dns-01",
		"acme-dns-server": "base.example:53", "acme-tsig-file": "/base/tsig",
	}
}

// baseWithout is the base without one setting, which a test gives itself.
func baseWithout(name string) map[string]string {
	flags := base()
	delete(flags, name)
	return flags
}

// settingsByName returns the table by the settings' names.
func settingsByName() map[string]config.Setting {
	table := map[string]config.Setting{}
	for _, s := range config.Settings() {
		table[s.Name()] = s
	}
	return table
}

// yamlOf writes a file with one key.
func yamlOf(s config.Setting, text string) string {
	var b strings.Builder
	parts := strings.Split(s.Key, ".")
	for depth, part := range parts {
		b.WriteString(strings.Repeat("  ", depth) + part + ":")
		if depth < len(parts)-1 {
			b.WriteString("\n")
		}
	}
	if s.Kind == config.KindMethods {
		return b.String() + " [" + text + "]\n"
	}
	return b.String() + " '" + text + "'\n"
}

// files opens files that a test wrote.
type files map[string]string

func (f files) open(name string) (io.ReadCloser, error) {
	content, found := f[name]
	if !found {
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	return io.NopCloser(strings.NewReader(content)), nil
}

// withFile gives a file beside flags and variables.
func withFile(flags map[string]string, environ []string, content string) config.Sources {
	flags = maps.Clone(flags)
	if flags == nil {
		flags = map[string]string{}
	}
	if _, given := flags["config"]; !given {
		flags["config"] = "relay.yaml"
	}
	return config.Sources{Flags: flags, Environ: environ, Open: files{"relay.yaml": content}.open}
}

func TestEverySettingHasASample(t *testing.T) {
	table := settingsByName()
	for _, s := range samples {
		row, known := table[s.name]
		if !known {
			t.Errorf("%s is not a setting, or has two samples", s.name)
			continue
		}
		if s.fileAlone != (row.Flag == "" && row.Env == nil) || s.notInFile != (row.Key == "") || s.isRequired != row.Required {
			t.Errorf("%s: the sample and the table differ in the sources", s.name)
		}
		delete(table, s.name)
	}
	for name := range table {
		t.Errorf("%s has no sample", name)
	}
}
