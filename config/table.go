package config

import (
	"log/slog"
	"net/netip"
	"strings"

	"serve.zone/relay/duty"
)

// configFlag names the file, before which nothing else can be read from it.
const configFlag = "config"

// Sections of the table.
const (
	sectionCloudly     = "Cloudly"
	sectionListener    = "Node listener"
	sectionHub         = "VPN hub"
	sectionOperator    = "Operator endpoint"
	sectionCertificate = "Certificate"
	sectionRegistry    = "Registry"
	sectionProgram     = "Program"
)

// flagged completes a row of design §7: a flag, the same key in the file, and the
// variable RELAY_ with the flag's name, which goes before the row's others.
func flagged(name string, s Setting) Setting {
	s.Flag, s.Key = name, name
	s.Env = append([]string{relayPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))}, s.Env...)
	return s
}

// flagSettings is the table of design §7.
func flagSettings() []Setting {
	rows := append(connectionSettings(), certificateSettings()...)
	file := flagged(configFlag, Setting{Kind: KindFile, Unset: "no file", Section: sectionProgram,
		Meaning: "YAML file with the same keys"})
	file.Key = "" // a file cannot name the file
	file.set = func(*Config, value) Rule { return "" }
	return append(rows,
		flagged("registry-upstream", Setting{Kind: KindOrigin, Unset: "the Cloudly origin", Section: sectionRegistry,
			Meaning: "where image pulls go",
			set:     into(readOrigin, func(c *Config) *string { return &c.Registry.Upstream })}),
		flagged("registry-realm-origin", Setting{Kind: KindOrigin, Unset: "the upstream's", Section: sectionRegistry,
			Meaning: "origin of the registry's token realm",
			set:     into(readOrigin, func(c *Config) *string { return &c.Registry.RealmOrigin })}),
		file,
		flagged("log-level", Setting{Kind: KindChoice, Choices: []string{"debug", "info", "warn", "error"}, Default: "info",
			Section: sectionProgram, Meaning: "the least level that is written",
			set: into(readLevel, func(c *Config) *slog.Level { return &c.Log.Level })}),
		flagged("log-format", Setting{Kind: KindChoice, Choices: []string{"json", "text"}, Default: "json",
			Section: sectionProgram, Meaning: "how a line is written",
			set: into(readFormat, func(c *Config) *duty.Format { return &c.Log.Format })}),
		flagged("allow-loopback", Setting{Kind: KindSwitch, Default: "false", Section: sectionProgram,
			Meaning: "admits loopback addresses and port 0 where the relay listens, for tests and demonstrations",
			set:     into(readSwitch, func(c *Config) *bool { return &c.AllowLoopback })}),
	)
}

func connectionSettings() []Setting {
	return []Setting{
		flagged("cloudly-url", Setting{Kind: KindOrigin, Env: []string{"CLOUDLY_URL"}, Required: true, Section: sectionCloudly,
			Meaning: "origin of Cloudly; http only to a loopback address",
			set:     into(readOrigin, func(c *Config) *string { return &c.Cloudly.URL })}),
		flagged("cloudly-ca-file", Setting{Kind: KindFile, Unset: "the system's roots alone", Section: sectionCloudly,
			Meaning: "PEM file of extra roots for Cloudly",
			set:     into(readFileName, func(c *Config) *string { return &c.Cloudly.CAFile })}),
		flagged("credential-file", Setting{Kind: KindFile, Required: true, Section: sectionCloudly,
			Meaning: "file that holds the relay's bearer and no line end, mode 0600, watched for change",
			set:     into(readFileName, func(c *Config) *string { return &c.Cloudly.CredentialFile })}),
		flagged("node-id", Setting{Kind: KindNodeID, Env: []string{"COREFLOW_NODE_ID"}, Required: true, Section: sectionCloudly,
			Meaning: "the cluster node that this relay runs on",
			set:     into(readNodeID, func(c *Config) *string { return &c.NodeID })}),
		flagged("listen", Setting{Kind: KindListenAddress, Required: true, Section: sectionListener,
			Meaning: "where nodes, the ingress and image pulls arrive; Cloudly publishes the address, so it is no name and no wildcard",
			set:     into(readListen, func(c *Config) *netip.AddrPort { return &c.Listen })}),
		flagged("hub-listen", Setting{Kind: KindListenAddress, Unset: "no hub", Section: sectionHub,
			Meaning: "where the hub takes UDP; an address of the hub prefix of the cluster's address plan",
			set:     into(readListen, func(c *Config) *netip.AddrPort { return &c.Hub.Listen })}),
		flagged("hub-key-file", Setting{Kind: KindFile, Unset: "a new key at each start", Section: sectionHub,
			Meaning: "file that holds the hub's Noise private key, mode 0600",
			set:     into(readFileName, func(c *Config) *string { return &c.Hub.KeyFile })}),
		flagged("hub-workers", Setting{Kind: KindCount, Default: "1", Section: sectionHub,
			Meaning: "how many sockets share the hub's packets, at most 64",
			set:     into(readWorkers, func(c *Config) *int { return &c.Hub.Workers })}),
		flagged("operator-listen", Setting{Kind: KindAddress, Default: "127.0.0.1:9465", Section: sectionOperator,
			Meaning: "where liveness, readiness, status, events and metrics are served, in plain HTTP and without authentication",
			set:     into(readAddress, func(c *Config) *netip.AddrPort { return &c.OperatorListen })}),
	}
}

func certificateSettings() []Setting {
	return []Setting{
		flagged("tls-source", Setting{Kind: KindChoice, Choices: []string{"files", "acme", "cloudly"}, Default: "files",
			Section: sectionCertificate, Meaning: "where the certificate of the relay's origin comes from",
			set: into(oneOf(FromFiles, FromACME, FromCloudly), func(c *Config) *TLSSource { return &c.TLS.Source })}),
		flagged("tls-cert-file", Setting{Kind: KindFile, Section: sectionCertificate,
			Meaning: "`files`: PEM certificate chain, watched for change",
			set:     into(readFileName, func(c *Config) *string { return &c.TLS.CertFile })}),
		flagged("tls-key-file", Setting{Kind: KindFile, Section: sectionCertificate,
			Meaning: "`files`: PEM private key, mode 0600, watched for change",
			set:     into(readFileName, func(c *Config) *string { return &c.TLS.KeyFile })}),
		flagged("acme-directory", Setting{Kind: KindURL, Section: sectionCertificate,
			Meaning: "`acme`: URL of the ACME server's directory",
			set:     into(readURL, func(c *Config) *string { return &c.TLS.ACME.Directory })}),
		flagged("acme-email", Setting{Kind: KindEmail, Unset: "none", Section: sectionCertificate,
			Meaning: "`acme`: contact given to the ACME server",
			set:     into(readEmail, func(c *Config) *string { return &c.TLS.ACME.Email })}),
		flagged("acme-ca-file", Setting{Kind: KindFile, Unset: "the system's roots alone", Section: sectionCertificate,
			Meaning: "`acme`: PEM file of extra roots for the ACME server",
			set:     into(readFileName, func(c *Config) *string { return &c.TLS.ACME.CAFile })}),
		flagged("acme-storage", Setting{Kind: KindFolder, Section: sectionCertificate,
			Meaning: "`acme`: folder for account and certificates, mode 0700",
			set:     into(readFileName, func(c *Config) *string { return &c.TLS.ACME.Storage })}),
		flagged("acme-challenge", Setting{Kind: KindChoice, Choices: []string{"tls-alpn-01", "dns-01"}, Section: sectionCertificate,
			Meaning: "`acme`: how the name is proved; `tls-alpn-01` needs the origin's port to be 443",
			set:     into(oneOf(TLSALPN01, DNS01), func(c *Config) *Challenge { return &c.TLS.ACME.Challenge })}),
		flagged("acme-dns-server", Setting{Kind: KindServer, Section: sectionCertificate,
			Meaning: "`acme` with `dns-01`: DNS server that takes dynamic updates",
			set:     into(readServer, func(c *Config) *string { return &c.TLS.ACME.DNSServer })}),
		flagged("acme-tsig-file", Setting{Kind: KindFile, Section: sectionCertificate,
			Meaning: "`acme` with `dns-01`: file that holds the TSIG key for those updates",
			set:     into(readFileName, func(c *Config) *string { return &c.TLS.ACME.TSIGFile })}),
	}
}
