package rig

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"serve.zone/relay/config"
)

// load reads an invocation as the relay does.
func load(t *testing.T, call invocation) config.Config {
	t.Helper()
	sources := config.Sources{Flags: map[string]string{}, Environ: call.environment,
		Open: func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(call.document)), nil }}
	for _, argument := range call.arguments[1:] {
		name, value, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		sources.Flags[name] = value
	}
	loaded, report, err := config.Load(sources)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Unknown) > 0 {
		t.Errorf("unknown variables %v", report.Unknown)
	}
	return loaded
}

// Every source says the same.
func TestInvoke(t *testing.T) {
	settings := map[string]string{
		"cloudly-url": "https://127.0.0.1:20001", "credential-file": "/a folder/credential", "node-id": "node-a",
		"listen": "127.0.0.1:0", "operator-listen": "127.0.0.1:20002", "tls-cert-file": "/t.crt", "tls-key-file": "/t.key",
		"allow-loopback": "true", "log-level": "debug", "log-format": "text",
	}
	const document = "protocol:\n  socketPath: /socket\n"
	var first config.Config
	for source, want := range map[Source]string{Flags: "--listen=127.0.0.1:0", Environment: "RELAY_LISTEN=127.0.0.1:0", File: `listen: "127.0.0.1:0"`} {
		call := invoke(settings, &options{source: source, document: document}, "/etc/relay.yaml")
		if call.arguments[0] != "serve" {
			t.Errorf("source %d: verb %s", source, call.arguments[0])
		}
		all := strings.Join(append(append(call.arguments, call.environment...), call.document), "\n")
		if !strings.Contains(all, want+"\n") {
			t.Errorf("source %d: %s is not in\n%s", source, want, all)
		}
		loaded := load(t, call)
		if loaded.Protocol.SocketPath != "/socket" {
			t.Errorf("source %d: the document is not read", source)
		}
		if first.NodeID == "" {
			first = loaded
		}
		if diff := cmp.Diff(first, loaded, cmpopts.EquateComparable(first.Listen)); diff != "" {
			t.Errorf("source %d differs:\n%s", source, diff)
		}
	}
}

func TestInvokeWithoutDocument(t *testing.T) {
	o := &options{arguments: []string{"--x"}, environment: []string{"A=b"}}
	got := invoke(map[string]string{"node-id": "n", "listen": "l"}, o, "/etc/relay.yaml")
	want := invocation{arguments: []string{"serve", "--listen=l", "--node-id=n", "--x"}, environment: []string{"A=b"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(invocation{})); diff != "" {
		t.Errorf("invocation (-want +got):\n%s", diff)
	}
}

// What options and the test say stands above what the rig says.
func TestSettingsOfACommand(t *testing.T) {
	r := New(t, NotStarted(), pretending("plain"), With("log-level", "warn"), With("hub-workers", "2"), Without("tls-key-file"))
	r.Set("log-format", "text")
	r.Unset("hub-workers")
	cmd, err := r.command()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, argument := range cmd.Args[2:] {
		name, value, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		got[name] = value
	}
	want := map[string]string{
		"cloudly-url": "https://" + r.Upstream.Address(), "cloudly-ca-file": r.Path(AuthorityFile),
		"credential-file": r.Path(CredentialFile), "node-id": RelayNode,
		"listen": r.ListenAddress(), "operator-listen": r.OperatorAddress(), "tls-cert-file": r.Path(CertificateFile),
		"allow-loopback": "true", "log-level": "warn", "log-format": "text",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	for _, variable := range cmd.Env {
		if strings.HasPrefix(variable, "RELAY_") {
			t.Errorf("the relay is given %s", variable)
		}
	}
}
