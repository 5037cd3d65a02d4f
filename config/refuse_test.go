package config_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/config"
	"serve.zone/relay/contract"
)

// checkReasons checks that an error is an *InvalidError with exactly these
// reasons.
func checkReasons(t *testing.T, what string, err error, want ...config.Reason) {
	t.Helper()
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) {
		t.Errorf("%s: got error %v, want an *InvalidError", what, err)
		return
	}
	if diff := cmp.Diff(want, invalid.Reasons); diff != "" || invalid.More != 0 {
		t.Errorf("%s: %d more, reasons (-want +got):\n%s", what, invalid.More, diff)
	}
}

// Rules of contract's judges, as Load passes them on.
const (
	notIPv4        = config.Rule(contract.AddressNotIPv4)
	loopback       = config.Rule(contract.AddressLoopback)
	linkLocal      = config.Rule(contract.AddressLinkLocal)
	unspecified    = config.Rule(contract.AddressUnspecified)
	multicast      = config.Rule(contract.AddressMulticast)
	broadcast      = config.Rule(contract.AddressBroadcast)
	otherMajor     = config.Rule("is of another major than interfacesVersion")
	aboveVersion   = config.Rule("is above interfacesVersion")
	neverPasses    = config.Rule("is a method that never passes the relay")
	otherDirection = config.Rule("is forwarded in the other direction")
	bothDirections = config.Rule("stands in both directions")
)

// refused are values and the rule that each breaks; "" where it is admitted.
var refused = []struct {
	setting string
	text    string
	rule    config.Rule
}{
	{"cloudly-url", "cloudly.example", config.NotOrigin},
	{"cloudly-url", "https://cloudly.example/", config.NotOrigin},
	{"cloudly-url", "https://cloudly.example:443", config.NotOrigin},
	{"cloudly-url", "https://Cloudly.example", config.NotOrigin},
	{"cloudly-url", "https://user:pass@cloudly.example", config.NotOrigin},
	{"cloudly-url", "wss://cloudly.example", config.NotOrigin},
	{"cloudly-url", "http://cloudly.example", config.NotSecure},
	{"cloudly-url", "http://localhost:8080", config.NotSecure},
	{"cloudly-url", "http://10.0.0.1:8080", config.NotSecure},
	{"cloudly-url", "http://[2001:db8::1]", config.NotSecure},
	{"cloudly-url", "http://127.8.9.1:8080", ""},
	{"cloudly-url", "http://[::1]:8080", ""},
	{"cloudly-url", "https://10.0.0.1:8443", ""},
	{"registry-upstream", "http://registry.example", config.NotSecure},
	{"registry-realm-origin", "https://auth.example/token", config.NotOrigin},

	{"credential-file", "a\nb", config.NotFileName},
	{"credential-file", "a\x00", config.NotFileName},
	{"credential-file", "\xff", config.NotFileName},
	{"credential-file", strings.Repeat("d/", 2048) + "f", config.NotFileName},
	{"credential-file", strings.Repeat("d/", 2048), ""},
	{"credential-file", "with space", ""},

	{"node-id", "a.b", config.NotNodeID},
	{"node-id", "a:b", config.NotNodeID},
	{"node-id", strings.Repeat("a", 129), config.NotNodeID},
	{"node-id", "_abc", ""},

	{"hub-workers", "0", config.NotWorkerCount},
	{"hub-workers", "65", config.NotWorkerCount},
	{"hub-workers", "-1", config.NotWorkerCount},
	{"hub-workers", "01", config.NotWorkerCount},
	{"hub-workers", "1.0", config.NotWorkerCount},
	{"hub-workers", "99999999999999999999", config.NotWorkerCount},

	{"operator-listen", "9465", config.NotAddressPort},
	{"operator-listen", "localhost:9465", config.NotAddressPort},
	{"operator-listen", "127.0.0.1", config.NotAddressPort},
	{"operator-listen", "127.0.0.1:09465", config.NotAddressPort},
	{"operator-listen", "127.0.0.1:65536", config.NotAddressPort},
	{"operator-listen", "[fe80::1%eth0]:9465", config.NotAddressPort},
	{"operator-listen", "[::ffff:10.0.0.1]:9465", config.NotAddressPort},
	{"operator-listen", "224.0.0.1:9465", config.ManyHosts},
	{"operator-listen", "[ff02::1]:9465", config.ManyHosts},
	{"operator-listen", "255.255.255.255:9465", config.ManyHosts},
	{"operator-listen", "127.0.0.1:0", config.NotListenPort},
	{"operator-listen", "10.9.9.9:9", config.ListenPortTaken},
	{"operator-listen", "0.0.0.0:9", config.ListenPortTaken},
	{"operator-listen", "[::]:9", config.ListenPortTaken},
	{"operator-listen", "127.0.0.1:9", ""},
	{"operator-listen", "[::]:9465", ""},

	{"tls-source", "file", config.NotChoice},
	{"tls-source", "Files", config.NotChoice},
	{"acme-challenge", "http-01", config.NotChoice},
	{"log-level", "INFO", config.NotChoice},
	{"log-format", "logfmt", config.NotChoice},
	{"allow-loopback", "yes", config.NotSwitch},
	{"allow-loopback", "True", config.NotSwitch},
	{"allow-loopback", "1", ""},
	{"allow-loopback", "0", ""},

	{"acme-directory", "acme.example/directory", config.NotURL},
	{"acme-directory", "https://", config.NotURL},
	{"acme-directory", "https://acme.example/a//b", config.NotURL},
	{"acme-directory", "https://acme.example/directory?token=x", config.NotURL},
	{"acme-directory", "https://acme.example/a#b", config.NotURL},
	{"acme-directory", "https://user@acme.example/a", config.NotURL},
	{"acme-directory", "http://acme.example/directory", config.NotSecure},
	{"acme-directory", "http://127.0.0.1:14000/dir", ""},
	{"acme-directory", "https://acme.example", ""},
	{"acme-directory", "https://acme.example/v2/", ""},
	{"acme-email", "example.com", config.NotEmail},
	{"acme-email", "A <a@example.com>", config.NotEmail},
	{"acme-email", "a@example.com, b@example.com", config.NotEmail},
	{"acme-email", strings.Repeat("a", 243) + "@example.com", config.NotEmail},
	{"acme-email", strings.Repeat("a", 242) + "@example.com", ""},
	{"acme-dns-server", "ns.example", config.NotServer},
	{"acme-dns-server", "ns.example:0", config.NotServer},
	{"acme-dns-server", "ns.example:53:53", config.NotServer},
	{"acme-dns-server", "2001:db8::1:53", config.NotServer},
	{"acme-dns-server", "ns.example/x:53", config.NotServer},
	{"acme-dns-server", "192.0.2.53:53", ""},

	{"protocol.interfacesVersion", "32.44", config.NotVersion},
	{"protocol.interfacesVersion", "v32.44.0", config.NotVersion},
	{"protocol.minimumPeerVersion", "32.0.0-rc1", config.NotVersion},
	{"protocol.socketPath", "socket", config.NotPath},
	{"protocol.socketPath", "/a/../b", config.NotPath},
	{"protocol.socketPath", "//", config.NotPath},
	{"protocol.socketPath", "/a?b", config.NotPath},
	{"protocol.socketPath", "/a%2fb", config.NotPath},
	{"protocol.corestore.backupPath", "http://other/", config.NotPath},
	{"protocol.corestore.timeout", "30", config.NotDuration},
	{"protocol.corestore.timeout", "999ms", config.NotDuration},
	{"protocol.corestore.timeout", "-1m", config.NotDuration},
	{"protocol.corestore.timeout", "24h1s", config.NotDuration},
	{"protocol.corestore.timeout", "forever", config.NotDuration},
	{"protocol.exchangeMethod", "exchange.method", config.NotMethod},
	{"protocol.exchangeMethod", strings.Repeat("m", 129), config.NotMethod},
	{"protocol.exchangeMethod", "__typedsocket_setTag", config.CarrierMethod},
	{"protocol.exchangeMethod", contract.MethodRegisterClusterRelay, config.MethodTaken},
	{"protocol.exchangeMethod", "applyRuntimeAssignment", config.MethodTaken},
	{"protocol.exchangeMethod", "openRuntimeAssignmentExec", config.MethodTaken},
	{"protocol.configurationPushMethod", contract.DefaultMethodGetConfiguration, config.MethodTaken},
	{"protocol.configurationPullMethod", contract.DefaultMethodGetConfiguration, ""},
	{"protocol.exchangeMethod", strings.Repeat("m", 128), ""},
}

// Each rule is found in each source of its setting, and the reason says where.
func TestRefusals(t *testing.T) {
	table := settingsByName()
	for _, test := range refused {
		row := table[test.setting]
		for _, place := range placesFor(row) {
			// YAML cannot hold these bytes as they are, see TestFileOfBytes.
			if place.source == config.FromFile && (strings.ContainsAny(test.text, "\x00\n") || !utf8.ValidString(test.text)) {
				continue
			}
			place.text = test.text
			_, _, err := config.Load(sourcesOf(row, place))
			what := test.setting + " = " + test.text
			if test.rule == "" {
				if err != nil {
					t.Errorf("%s: refused: %v", what, err)
				}
				continue
			}
			checkReasons(t, what, err, config.Reason{Place: placeOf(row, place), Rule: test.rule})
		}
	}
}

// R14: a listen address that nodes cannot reach is refused by its own name; the switch
// admits loopback and port 0 and nothing else.
func TestR14_ListenAddress(t *testing.T) {
	for _, test := range []struct {
		text             string
		refused, allowed config.Rule // without and with --allow-loopback
	}{
		{"10.0.4.7:8443", "", ""},
		{"10.0.4.7:1", "", ""},
		{"10.0.4.7:65535", "", ""},
		{"relay.example:8443", notIPv4, notIPv4},
		{"localhost:8443", notIPv4, notIPv4},
		{"[::1]:8443", notIPv4, notIPv4},
		{"[2001:db8::1]:8443", notIPv4, notIPv4},
		{"::1", notIPv4, notIPv4},
		{"010.0.4.7:8443", notIPv4, notIPv4},
		{":8443", notIPv4, notIPv4},
		{"10.0.4:8443", notIPv4, notIPv4},
		{"127.0.0.1:8443", loopback, ""},
		{"127.255.0.1:8443", loopback, ""},
		{"169.254.1.1:8443", linkLocal, linkLocal},
		{"0.0.0.0:8443", unspecified, unspecified},
		{"224.0.0.1:8443", multicast, multicast},
		{"239.255.255.255:8443", multicast, multicast},
		{"255.255.255.255:8443", broadcast, broadcast},
		{"10.0.4.7:0", config.NotListenPort, ""},
		{"127.0.0.1:0", loopback, ""},
		{"10.0.4.7", config.NotAddressPort, config.NotAddressPort},
		{"10.0.4.7:", config.NotAddressPort, config.NotAddressPort},
		{"10.0.4.7:65536", config.NotAddressPort, config.NotAddressPort},
		{"10.0.4.7:08443", config.NotAddressPort, config.NotAddressPort},
		{"10.0.4.7:+8443", config.NotAddressPort, config.NotAddressPort},
		{"10.0.4.7:https", config.NotAddressPort, config.NotAddressPort},
	} {
		for _, name := range []string{"listen", "hub-listen"} {
			for loopback, rule := range map[string]config.Rule{"false": test.refused, "true": test.allowed} {
				flags := base()
				flags[name], flags["allow-loopback"] = test.text, loopback
				_, _, err := config.Load(config.Sources{Flags: flags})
				what := "--" + name + "=" + test.text + " --allow-loopback=" + loopback
				if rule == "" {
					if err != nil {
						t.Errorf("%s: refused: %v", what, err)
					}
					continue
				}
				checkReasons(t, what, err, config.Reason{
					Place: config.Place{Setting: name, Source: config.FromFlag, Name: "--" + name}, Rule: rule,
				})
			}
		}
	}
	flags := base()
	flags["operator-listen"], flags["allow-loopback"] = "127.0.0.1:0", "true"
	if _, _, err := config.Load(config.Sources{Flags: flags}); err != nil {
		t.Errorf("port 0 of the operator endpoint with --allow-loopback: %v", err)
	}
}

// R07: a bad offer of its own is refused, whichever half of it stands in the file.
func TestR07_OwnOffer(t *testing.T) {
	for _, test := range []struct {
		name, version, minimum string
		rule                   config.Rule // of the minimum
		line                   int         // where the minimum stands
	}{
		{"minimum above", "32.1.0", "32.1.1", aboveVersion, 3},
		{"minimum above, compared as numbers", "32.9.0", "32.10.0", aboveVersion, 3},
		{"another major", "33.0.0", "32.0.0", otherMajor, 3},
		{"the default minimum is of another major", "33.0.0", "", otherMajor, 0},
		{"equal", "32.1.0", "32.1.0", "", 0},
	} {
		file := "protocol:\n  interfacesVersion: " + test.version + "\n"
		if test.minimum != "" {
			file += "  minimumPeerVersion: " + test.minimum + "\n"
		}
		c, _, err := config.Load(withFile(base(), nil, file))
		if test.rule == "" {
			if want := (contract.Offer{InterfacesVersion: test.version, MinimumPeerVersion: test.minimum}); err != nil || c.Protocol.Offer != want {
				t.Errorf("%s: offer %+v, error %v", test.name, c.Protocol.Offer, err)
			}
			continue
		}
		place := config.Place{Setting: "protocol.minimumPeerVersion"}
		if test.line > 0 {
			place.Source, place.Line = config.FromFile, test.line
		}
		checkReasons(t, test.name, err, config.Reason{Place: place, Rule: test.rule})
	}
	// Above and of another major are two violations.
	_, _, err := config.Load(withFile(base(), nil, "protocol: {minimumPeerVersion: 33.0.0}"))
	at := config.Place{Setting: "protocol.minimumPeerVersion", Source: config.FromFile, Line: 1}
	checkReasons(t, "both", err, config.Reason{Place: at, Rule: otherMajor}, config.Reason{Place: at, Rule: aboveVersion})
}

// Each certificate source needs its own settings and says so of each.
func TestCertificateSources(t *testing.T) {
	for _, test := range []struct {
		name   string
		flags  map[string]string
		rule   config.Rule
		needed []string
		unused []string
	}{
		{"files", nil, config.RequiredByFiles, []string{"tls-cert-file", "tls-key-file"}, nil},
		{"half a pair", map[string]string{"tls-key-file": "k"}, config.RequiredByFiles, []string{"tls-cert-file"}, nil},
		{"acme", map[string]string{"tls-source": "acme"}, config.RequiredByACME,
			[]string{"acme-directory", "acme-storage", "acme-challenge"}, nil},
		{"dns-01", map[string]string{"tls-source": "acme", "acme-directory": "https://a.example/d", "acme-storage": "s", "acme-challenge": "dns-01"},
			config.RequiredByDNS, []string{"acme-dns-server", "acme-tsig-file"}, nil},
		{"tls-alpn-01", map[string]string{"tls-source": "acme", "acme-directory": "https://a.example/d", "acme-storage": "s", "acme-challenge": "tls-alpn-01"},
			"", nil, nil},
		{"cloudly", map[string]string{"tls-source": "cloudly"}, "", nil, nil},
		{"files for cloudly", map[string]string{"tls-source": "cloudly", "tls-cert-file": "c", "acme-email": "a@example.com"},
			"", nil, []string{"tls-cert-file", "acme-email"}},
		{"a DNS server for tls-alpn-01", map[string]string{"tls-source": "acme", "acme-directory": "https://a.example/d", "acme-storage": "s",
			"acme-challenge": "tls-alpn-01", "acme-dns-server": "ns.example:53", "acme-email": "a@example.com", "acme-ca-file": "c"},
			"", nil, []string{"acme-dns-server"}},
		{"acme for files", map[string]string{"tls-cert-file": "c", "tls-key-file": "k", "acme-storage": "s"}, "", nil, []string{"acme-storage"}},
	} {
		flags := base()
		maps.DeleteFunc(flags, func(name, _ string) bool { return strings.HasPrefix(name, "acme-") || strings.HasPrefix(name, "tls-") })
		maps.Copy(flags, test.flags)
		_, report, err := config.Load(config.Sources{Flags: flags})
		if diff := cmp.Diff(test.unused, report.Unused); diff != "" {
			t.Errorf("%s: unused (-want +got):\n%s", test.name, diff)
		}
		if test.rule == "" {
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		var want []config.Reason
		for _, name := range test.needed {
			want = append(want, config.Reason{Place: config.Place{Setting: name}, Rule: test.rule})
		}
		checkReasons(t, test.name, err, want...)
	}
}

// What a program cannot honour is refused with everything else, where it stands, and
// what such a value would need is not asked for.
func TestProgramThatCannotHonourASetting(t *testing.T) {
	flags := map[string]string{"node-id": "!", "tls-source": "acme"}
	var seen config.Config
	sources := withFile(flags, []string{"RELAY_HUB_WORKERS=2"}, "cloudly-url: https://cloudly.example\ncredential-file: c\nlisten: relay:1\n")
	sources.Judge = func(c config.Config) []config.Refusal {
		seen = c
		return []config.Refusal{{"hub-workers", "is too much"}, {"tls-source", "is too new"}, {"node-id", "is foreign"}}
	}
	_, _, err := config.Load(sources)
	checkReasons(t, "all at once", err,
		config.Reason{Place: config.Place{Setting: "node-id", Source: config.FromFlag, Name: "--node-id"}, Rule: config.NotNodeID},
		config.Reason{Place: config.Place{Setting: "listen", Source: config.FromFile, Line: 3}, Rule: notIPv4},
		config.Reason{Place: config.Place{Setting: "hub-workers", Source: config.FromEnvironment, Name: "RELAY_HUB_WORKERS"}, Rule: "is too much"},
		config.Reason{Place: config.Place{Setting: "tls-source", Source: config.FromFlag, Name: "--tls-source"}, Rule: "is too new"},
	)
	if seen.Hub.Workers != 2 || seen.TLS.Source != config.FromACME || seen.NodeID != "" || seen.Registry.RealmOrigin != "https://cloudly.example" {
		t.Errorf("judged was %+v", seen)
	}
}
