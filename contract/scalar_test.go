package contract

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// R01: node ids are 1 to 128 letters, digits, hyphens and underscores, in any place;
// anything else is none.
func TestR01_NodeIDVocabulary(t *testing.T) {
	long := strings.Repeat("a", 128)
	for _, s := range []string{"-abc", "_abc", "a", "-", "_", "0", "A-Z_09", long} {
		if !IsNodeID(s) {
			t.Errorf("IsNodeID(%q) = false", s)
		}
	}
	for _, s := range []string{"", "a.b", "a:b", long + "a", "a b", "a\n", " a", "é", "a/b", "a\x00"} {
		if IsNodeID(s) {
			t.Errorf("IsNodeID(%q) = true", s)
		}
	}
}

// R02: identifiers are 1 to 200 characters that begin with a letter or digit; a leading
// colon, a length of 201 and anything else is refused.
func TestR02_CanonicalIdentifier(t *testing.T) {
	long := strings.Repeat("a", 200)
	for _, s := range []string{"a:b._-9", "0", "Z", long} {
		if !IsIdentifier(s) {
			t.Errorf("IsIdentifier(%q) = false", s)
		}
	}
	for _, s := range []string{"", ":x", "-abc", "_abc", ".a", long + "a", "a b", "a\n", "é", "a/b"} {
		if IsIdentifier(s) {
			t.Errorf("IsIdentifier(%q) = true", s)
		}
	}
}

func TestTextGrammars(t *testing.T) {
	hex := strings.Repeat("0123456789abcdef", 4)
	token := strings.Repeat("t", 32)
	for _, tc := range []struct {
		rule    string
		is      func(string) bool
		yes, no []string
	}{
		{"digest", IsDigest, []string{"sha256:" + hex},
			[]string{"", hex, "sha256:" + hex[1:], "sha256:" + hex + "0", "sha256:" + strings.ToUpper(hex), "SHA256:" + hex, "sha256:" + hex[1:] + "g"}},
		{"bare sha-256", IsSHA256, []string{hex}, []string{"", "sha256:" + hex, hex[1:], hex + "0", strings.ToUpper(hex)}},
		{"instance nonce", IsInstanceNonce, []string{"01234567-89ab-cdef-0123-456789abcdef"},
			[]string{"", "01234567-89AB-cdef-0123-456789abcdef", "0123456789abcdef0123456789abcdef", "01234567-89ab-cdef-0123-456789abcde",
				"01234567-89ab-cdef-0123-456789abcdefa", "0123456-789ab-cdef-0123-456789abcdef", "{1234567-89ab-cdef-0123-456789abcdef"}},
		{"policy domain", IsPolicyDomain, []string{"a", " ", "workload:sha256:" + hex, strings.Repeat("~", 256)},
			[]string{"", strings.Repeat("~", 257), "a\n", "é", "\x7f"}},
		{"ipv4", IsIPv4, []string{"0.0.0.0", "10.0.4.7", "255.255.255.255"},
			[]string{"", "10.0.4", "10.0.04.7", "10.0.4.7.1", "256.0.0.1", "10.0.4.7 ", "::1", "::ffff:10.0.4.7", "0x0a.0.0.1", "relay.example", "10.0.4.7%eth0"}},
		{"ipv4 cidr", IsIPv4Prefix, []string{"0.0.0.0/0", "10.0.0.0/8", "10.1.2.3/32", "192.0.2.0/30"},
			[]string{"", "10.0.0.0", "10.0.0.1/8", "10.0.0.0/08", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "010.0.0.0/8", "::/0", "10.0.0.0/8 "}},
		{"unicast ipv4", IsUnicastIPv4, []string{"10.0.4.7", "127.0.0.1", "169.254.1.1"},
			[]string{"0.0.0.0", "224.0.0.1", "239.255.255.255", "255.255.255.255", "x"}},
		{"relay bearer", IsRelayBearer,
			[]string{"clusterRelayToken_c1_" + hex, "clusterRelayToken_a_b_c_" + hex, "clusterRelayToken_" + hex + "_" + hex},
			[]string{"", "clusterRelayToken_c1_" + hex + "\n", "clusterRelayToken_c1_" + hex[1:], "clusterRelayToken_c1_" + strings.ToUpper(hex),
				"clusterRelayToken__" + hex, "clusterRelayToken_" + hex, "clusterRelayToken_-c_" + hex, "clusterRelayToken_c1" + hex,
				"ClusterRelayToken_c1_" + hex, " clusterRelayToken_c1_" + hex, "clusterRelayToken_c 1_" + hex, "clusterRelayToken_c1_" + hex + "0"}},
		{"control token", func(s string) bool { return IsControlToken([]byte(s)) },
			[]string{token, strings.Repeat("t", 4096), strings.Repeat("é", 16), token + "\u200b"},
			[]string{"", token[1:], strings.Repeat("t", 4097), token + " ", token + "\n", "\t" + token, token + "\u00a0", token + "\u2028",
				token + "\ufeff", token + "\u0085", token + "\u3000", token + "\xff"}},
		{"relay origin", IsRelayOrigin, []string{"https://relay.example", "https://relay.example:8443"},
			[]string{"http://relay.example", "https://relay.example:443", "https://relay.example/", "https://Relay.example", ""}},
		{"http origin", IsHTTPOrigin, []string{"http://10.0.0.1:3030", "https://core.example", "http://" + strings.Repeat("a", 63) + ".example"},
			[]string{"http://u@h", "http://h/path", "http://h/", "http://h:80", "ws://h", "http://" + strings.Repeat("a", 64) + ".example",
				"http://" + strings.Repeat("a.", 127) + "a", "http://a..b", "http://a.", "http://.a", "http://a:0", "http://[::ffff:1.2.3.4]", "http://[fe80::1%25eth0]"}},
	} {
		for _, s := range tc.yes {
			if !tc.is(s) {
				t.Errorf("%q is not a %s", s, tc.rule)
			}
		}
		for _, s := range tc.no {
			if tc.is(s) {
				t.Errorf("%q is a %s", s, tc.rule)
			}
		}
	}
}

// R11: the credential's id is found in a bearer, underscores and colons included.
func TestR11_BearerNamesItsCredential(t *testing.T) {
	id, ok := RelayBearerCredentialID("clusterRelayToken_a_b:c_" + strings.Repeat("0", 64))
	if id != "a_b:c" || !ok {
		t.Errorf("got %q, %t", id, ok)
	}
}

// R14: each address that cannot be published has the name of its own fault.
func TestR14_ListenAddressFaults(t *testing.T) {
	for address, want := range map[string]AddressFault{
		"10.0.4.7":        "",
		"192.0.2.1":       "",
		"relay.example":   AddressNotIPv4,
		"fd00::1":         AddressNotIPv4,
		"127.0.0.1":       AddressLoopback,
		"127.255.0.9":     AddressLoopback,
		"169.254.1.1":     AddressLinkLocal,
		"0.0.0.0":         AddressUnspecified,
		"224.0.0.251":     AddressMulticast,
		"255.255.255.255": AddressBroadcast,
	} {
		if got := JudgeListenAddress(address); got != want {
			t.Errorf("JudgeListenAddress(%q) = %q, want %q", address, got, want)
		}
	}
}

// R05: numbers are plain safe integers: 2^53, -0, fractions, exponents and leading
// zeros are refused.
func TestR05_NumberTokens(t *testing.T) {
	for token, want := range map[string]int64{
		"0": 0, "1": 1, "-1": -1, "10": 10, "9007199254740991": 9007199254740991, "-9007199254740991": -9007199254740991,
	} {
		if got, ok := parseSafeInteger([]byte(token)); got != want || !ok {
			t.Errorf("parseSafeInteger(%q) = %d, %t", token, got, ok)
		}
	}
	for _, token := range []string{"", "-", "-0", "01", "-01", "1.0", "1e3", "1E3", "+1", "9007199254740992", "-9007199254740992",
		"99999999999999999", "18446744073709551617", "0x1", "1 "} {
		if n, ok := parseSafeInteger([]byte(token)); ok {
			t.Errorf("parseSafeInteger(%q) = %d", token, n)
		}
	}
}

func TestNumberBounds(t *testing.T) {
	const top = MaximumSafeInteger
	for _, tc := range []struct {
		rule string
		is   func(int64) bool
		low  int64
		high int64
	}{
		{"counter", IsCounter, 1, top},
		{"count", IsCount, 0, top},
		{"time", IsUnixMilliseconds, 0, top},
		{"port", IsPort, 1, 65535},
	} {
		if !tc.is(tc.low) || !tc.is(tc.high) || tc.is(tc.low-1) || tc.is(tc.high+1) {
			t.Errorf("%s does not end at %d and %d", tc.rule, tc.low, tc.high)
		}
	}
}

// R15: a key has exactly one text; any changed character is another key or none.
func TestR15_NoiseKeyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var key NoiseKey
		copy(key[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key"))
		got, ok := ParseNoiseKey(key.String())
		if got != key || !ok {
			t.Fatalf("ParseNoiseKey(%q) = %v, %t", key, got, ok)
		}
		// A changed character is refused or is another key, never the same one.
		text := []byte(key.String())
		i := rapid.IntRange(0, len(text)-1).Draw(t, "position")
		text[i] = rapid.Byte().Draw(t, "byte")
		if got, ok := ParseNoiseKey(string(text)); ok && got == key && string(text) != key.String() {
			t.Fatalf("%q is a second encoding of %q", text, key)
		}
	})
}

func TestReleaseVersions(t *testing.T) {
	for _, s := range []string{"0.0.0", "32.44.0", "1.10.100", "99999999999999999999.0.1"} {
		if !IsReleaseVersion(s) {
			t.Errorf("IsReleaseVersion(%q) = false", s)
		}
	}
	for _, s := range []string{"", "1", "1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.02.3", "1.2.03", "1.2.3-rc1", "1.2.3+b", "1.2.x", " 1.2.3",
		"1.2.3\n", "1..3", ".1.2", "1.2.", "-1.2.3", "1.2.3 ", strings.Repeat("1", 61) + ".0.0"} {
		if IsReleaseVersion(s) {
			t.Errorf("IsReleaseVersion(%q) = true", s)
		}
	}
	if !IsReleaseVersion(strings.Repeat("1", 60) + ".0.0") {
		t.Error("a version of 64 characters is refused")
	}
	if CompareReleaseVersions("32.10.0", "32.9.0") != 1 {
		t.Error("32.10.0 is not above 32.9.0")
	}
	if CompareReleaseVersions("99999999999999999999.0.0", "100000000000000000000.0.0") != -1 {
		t.Error("components beyond 64 bits are not ordered by their value")
	}
}

func TestReleaseVersionOrderAgreesWithNumbers(t *testing.T) {
	part := rapid.SampledFrom([]uint64{0, 1, 2, 9, 10, 11, 32, 99, 100, 1 << 40})
	rapid.Check(t, func(t *rapid.T) {
		a := [3]uint64{part.Draw(t, "a0"), part.Draw(t, "a1"), part.Draw(t, "a2")}
		b := [3]uint64{part.Draw(t, "b0"), part.Draw(t, "b1"), part.Draw(t, "b2")}
		want := 0
		for i := range a {
			if want == 0 && a[i] != b[i] {
				want = 1
				if a[i] < b[i] {
					want = -1
				}
			}
		}
		left, right := fmt.Sprintf("%d.%d.%d", a[0], a[1], a[2]), fmt.Sprintf("%d.%d.%d", b[0], b[1], b[2])
		if got := CompareReleaseVersions(left, right); got != want {
			t.Fatalf("CompareReleaseVersions(%s, %s) = %d, want %d", left, right, got, want)
		}
	})
}

func TestComparingNoVersionPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("comparing with no release version did not panic")
		}
	}()
	CompareReleaseVersions("1.0.0", "1.0")
}

func TestParseOriginParts(t *testing.T) {
	for text, want := range map[string]Origin{
		"https://relay.example":      {"https", "relay.example", 443},
		"http://10.0.0.1":            {"http", "10.0.0.1", 80},
		"https://[2001:db8::1]:8443": {"https", "[2001:db8::1]", 8443},
		"http://h:443":               {"http", "h", 443},
	} {
		if got, ok := ParseOrigin(text); got != want || !ok {
			t.Errorf("ParseOrigin(%q) = %+v, %t", text, got, ok)
		}
		if got, want := want.IsAddress(), strings.ContainsAny(want.Host, "[1"); got != want {
			t.Errorf("%q: IsAddress = %t", text, got)
		}
	}
}
