package field

import (
	"encoding/json"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

var hex64 = strings.Repeat("0123456789abcdef", 4)

const key32 = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

func TestTexts(t *testing.T) {
	long := func(n int) string { return strings.Repeat("a", n) }
	for _, row := range []struct {
		name string
		got  Field
		want string
	}{
		{"a method", Method("registerClusterRelay"), "registerClusterRelay"},
		{"the longest known method", Method("completeSecretRecipientEnrollment"), "completeSecretRecipientEnrollment"},
		{"a configured method", Method("cloudly.push-config_2"), "cloudly.push-config_2"},
		{"a method with a space", Method("push config"), Withheld},
		{"a method that begins with a digit", Method("2push"), Withheld},
		{"a method of 129 bytes", Method("m" + strings.Repeat("e.", 64)), Withheld},
		{"a node", Node("worker-1"), "worker-1"},
		{"a node with a leading dash", Node("-abc"), "-abc"},
		{"a node of 128 bytes", Node(strings.Repeat("n", 128)), strings.Repeat("n", 128)},
		{"a node of 129 bytes", Node(long(129)), Withheld},
		{"a node with a dot", Node("a.b"), Withheld},
		{"a bearer as a node", Node("clusterRelayToken_c-1_" + hex64), Withheld},
		{"a refusal", Refusal("relay-node-unknown"), "relay-node-unknown"},
		{"a refusal with its text", Refusal("relay-node-unknown: worker-1"), Withheld},
		{"a refusal in capitals", Refusal("Conflict"), Withheld},
		{"a name with an empty word", Reason("a--b"), Withheld},
		{"a name with a trailing dash", State("a-"), Withheld},
		{"a name that begins with a digit", Outcome("1-a"), Withheld},
		{"a name with a word of 25 letters", Event(long(25)), Withheld},
		{"a name of 65 bytes", Check(strings.Repeat("abcd-", 13)[:64] + "e"), Withheld},
		{"hexadecimal as a name", Role("a" + hex64[:40]), Withheld},
		{"a role", Role("ingress"), "ingress"},
		{"a digest", Digest("sha256:" + hex64), "sha256:" + hex64},
		{"a bare digest", Digest(hex64), hex64},
		{"a digest in capitals", Digest(strings.ToUpper(hex64)), Withheld},
		{"a digest of 63", Digest(hex64[:63]), Withheld},
		{"a public key", PublicKey(key32), key32},
		{"a public key of 31 bytes", PublicKey("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg=="), Withheld},
		{"a public key spelled twice", PublicKey("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9="), Withheld},
		{"a version", Version("32.44.0"), "32.44.0"},
		{"a version with a leading zero", Version("32.044.0"), Withheld},
		{"a version of two parts", Version("32.44"), Withheld},
		{"a host", Host("relay.cluster-a.example"), "relay.cluster-a.example"},
		{"a host literal", Host("192.0.2.1"), "192.0.2.1"},
		{"a host with a zone", Host("fe80::1%secret"), Withheld},
		{"a host with a space", Host("a b"), Withheld},
		{"an origin", Origin("https://relay.example:8443"), "https://relay.example:8443"},
		{"an origin of an IPv6 literal", Origin("https://[2001:db8::1]:443"), "https://[2001:db8::1]:443"},
		{"an origin with user information", Origin("https://user:pass@relay.example"), Withheld},
		{"an origin with a path", Origin("https://relay.example/token"), Withheld},
		{"an origin with a query", Origin("https://relay.example?jwt=x"), Withheld},
		{"an origin with a bad port", Origin("https://relay.example:0443"), Withheld},
		{"an origin of another scheme", Origin("ftp://relay.example"), Withheld},
		{"a path", Path("/run/secrets/Relay2/credentials-of-the-cluster/bearer"), "/run/secrets/Relay2/credentials-of-the-cluster/bearer"},
		{"a path with a space", Path("/run/a b"), Withheld},
		{"a path with key material", Path("/run/" + hex64), Withheld},
		{"a direction", Direction(PartyNode, PartyCloudly), "node-to-cloudly"},
		{"a direction to nowhere", Direction(PartyNode, partyCount), Withheld},
		{"an address", Address(netip.MustParseAddrPort("192.0.2.1:443")), "192.0.2.1:443"},
		{"a mapped address", Address(netip.MustParseAddrPort("[::ffff:192.0.2.1]:443")), "192.0.2.1:443"},
		{"an address with a zone", Address(netip.MustParseAddrPort("[fe80::1%secret]:443")), "[fe80::1]:443"},
		{"a TCP address", NetAddr(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443}), "192.0.2.1:443"},
		{"a UDP address", NetAddr(&net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 51820}), "192.0.2.1:51820"},
		{"a prefix", Prefix(netip.MustParsePrefix("10.1.0.0/16")), "10.1.0.0/16"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := row.got.String(); got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
			if row.got.IsZero() {
				t.Errorf("the field says nothing")
			}
			if row.got.IsWithheld() != (row.want == Withheld) {
				t.Errorf("IsWithheld = %v", row.got.IsWithheld())
			}
		})
	}
}

func TestFieldsThatSayNothing(t *testing.T) {
	var noTCP *net.TCPAddr
	for name, f := range map[string]Field{
		"an empty text":        Node(""),
		"no error":             Error(nil),
		"no panic":             Panic(nil),
		"no stack":             Stack(nil),
		"no address":           Address(netip.AddrPort{}),
		"no network address":   NetAddr(nil),
		"a nil TCP address":    NetAddr(noTCP),
		"a Unix address":       NetAddr(&net.UnixAddr{Name: "/run/x", Net: "unix"}),
		"no prefix":            Prefix(netip.Prefix{}),
		"the zero time":        Expires(time.Time{}),
		"the zero Field":       {},
		"an empty typed alias": Refusal(slogName("")),
	} {
		if !f.IsZero() || f.String() != "" || f.IsWithheld() {
			t.Errorf("%s: says %q", name, f)
		}
	}
}

// slogName stands for the named string types of other rooms.
type slogName string

func TestNumbers(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.FixedZone("", 3600))
	for _, row := range []struct {
		got       Field
		key, json string
	}{
		{Bytes(1 << 20), "bytes", "1048576"},
		{Count(0), "count", "0"},
		{Limit(int32(-1)), "limit", "-1"},
		{Revision(uint64(math.MaxInt64)), "revision", "9223372036854775807"},
		{Revision(uint64(math.MaxInt64) + 1), "revision", `"[withheld]"`},
		{Sequence(uint8(7)), "sequence", "7"},
		{Generation(3), "generation", "3"},
		{Seq(uint64(1)), "seq", "1"},
		{Attempt(2), "attempt", "2"},
		{Stream(uint32(5)), "stream", "5"},
		{CloseCode(1012), "closeCode", "1012"},
		{HTTPStatus(404), "httpStatus", "404"},
		{Suppressed(9), "suppressed", "9"},
		{Duration(1500*time.Millisecond + 49), "durationSeconds", "1.5"},
		{Duration(-time.Second), "durationSeconds", "-1"},
		{Duration(math.MaxInt64), "durationSeconds", "9223372036.854776"},
		{Next(1500*time.Millisecond + 49), "nextSeconds", "1.5"},
		{Expires(at), "expiresAt", `"2026-01-02T02:04:05.678Z"`},
	} {
		got := string(AppendJSON(nil, []Field{row.got}))
		if want := `{"` + row.key + `":` + row.json + `}`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("%s is not JSON", got)
		}
	}
}

func TestEveryKeyHasARule(t *testing.T) {
	seen := map[string]bool{}
	for k := keyNone + 1; k < numKeys; k++ {
		r := rules[k]
		if r.name == "" || r.says == "" || seen[r.name] {
			t.Errorf("key %d: name %q, says %q", k, r.name, r.says)
		}
		if (r.fits != nil) != (r.max > 0) {
			t.Errorf("key %s: a grammar without a bound, or a bound without a grammar", r.name)
		}
		// slog's own keys, which a field must not take over.
		if r.name == slog.TimeKey || r.name == slog.LevelKey || r.name == slog.MessageKey {
			t.Errorf("key %s belongs to the line", r.name)
		}
		seen[r.name] = true
	}
	if got := len(Keys()); got != int(numKeys)-1 {
		t.Errorf("Keys lists %d, want %d", got, numKeys-1)
	}
}

func TestJoin(t *testing.T) {
	got := Join(
		[]Field{Node("a"), Count(1), {}},
		nil,
		[]Field{Method("m"), Node("b"), Count(2), Count(3)},
	)
	if got, want := string(AppendJSON(nil, got)), `{"node":"b","count":3,"method":"m"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := Join(nil, nil); got != nil {
		t.Errorf("nothing joined is %v", got)
	}
}

func TestAppendJSONLeavesOutWhatSaysNothing(t *testing.T) {
	got := string(AppendJSON([]byte("x"), []Field{{}, Node("a"), {}, Count(1), {}}))
	if want := `x{"node":"a","count":1}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAppendString(t *testing.T) {
	got := string(AppendString(nil, "a\"b\\c\nd\x7fé"))
	if want := `"a\"b\\c\ufffdd\ufffd\ufffd\ufffd"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestCloneHasATextOfItsOwn(t *testing.T) {
	buffer := []byte("worker-1")
	f := Node(string(buffer))
	if c := f.Clone(); c.String() != "worker-1" || c.Key() != f.Key() || c.Size() != len(buffer) {
		t.Errorf("the clone is %v %q of %d bytes", c.Key(), c, c.Size())
	}
}

func TestFromAttr(t *testing.T) {
	for _, row := range []struct {
		name string
		attr slog.Attr
		want string // "" if it is dropped
	}{
		{"a node, which only we may name", slog.String("node", "worker-1"), ""},
		{"an address", slog.String("address", "192.0.2.1:443"), "192.0.2.1:443"},
		{"a state, which may be a password", slog.String("state", "s3cr3tpassword"), ""},
		{"a host, which may be one too", slog.String("host", "My_Password.123"), ""},
		{"a node that does not fit", slog.String("node", "worker 1"), ""},
		{"an empty node", slog.String("node", ""), ""},
		{"a key of nobody", slog.String("user", "worker-1"), ""},
		{"a node that is a number", slog.Int("node", 1), ""},
		{"a count", slog.Int("count", 3), "3"},
		{"a large count", slog.Uint64("count", 1<<63), ""},
		{"a count that is a text", slog.String("count", "3"), ""},
		{"a count that is a float", slog.Float64("count", 3), ""},
		{"a duration", slog.Duration("durationSeconds", time.Second), "1"},
		{"a duration that is a number", slog.Int("durationSeconds", 3), ""},
		{"a wait, which only we may state", slog.Duration("nextSeconds", time.Second), ""},
		{"an expiry", slog.Time("expiresAt", time.UnixMilli(0)), "1970-01-01T00:00:00.000Z"},
		{"an expiry that is a number", slog.Int("expiresAt", 3), ""},
		{"an error", slog.Any("err", net.ErrClosed), "use of closed network connection"},
		{"an error as text", slog.String("error", "EOF"), ""},
		{"an error under another key", slog.Any("cause", net.ErrClosed), ""},
		{"a digest, which only we may state", slog.String("digest", hex64), ""},
		{"a public key, which only we may state", slog.String("publicKey", key32), ""},
		{"a path, which only we may state", slog.String("path", "/v2/token"), ""},
		{"a group", slog.Group("node", slog.String("node", "worker-1")), ""},
		{"a value that would compute itself", slog.Any("node", valuer{}), ""},
		{"any value", slog.Any("node", []byte("worker-1")), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			f, ok := FromAttr(row.attr)
			if ok != (row.want != "") || ok && f.String() != row.want {
				t.Errorf("%q, %v", f, ok)
			}
		})
	}
}

type valuer struct{}

func (valuer) LogValue() slog.Value { panic("must not be asked") }

func TestAddressText(t *testing.T) {
	if f, ok := AddressText("192.0.2.1:4711"); !ok || f.String() != "192.0.2.1:4711" {
		t.Errorf("%q, %v", f, ok)
	}
	for _, s := range []string{"", "192.0.2.1", "@", "relay.example:443", "[fe80::1%secret]:1", "192.0.2.1:04711"} {
		if f, ok := AddressText(s); ok {
			t.Errorf("%q passed as %q", s, f)
		}
	}
}

// FuzzText holds down the promise of the package for every constructor that
// takes a text: what is shown is printable, bounded and free of quotes, and
// the text itself or Withheld, never a part of it.
func FuzzText(f *testing.F) {
	for _, seed := range []string{
		"", "worker-1", "relay-node-unknown: x", "clusterRelayToken_a_" + hex64, "sha256:" + hex64, key32,
		"https://a:b@c", "/run/secrets", "192.0.2.1:443", "10.0.0.0/8", "a\nb", "a\"b", "\xff", "eyJhbGciOiJub25lIn0.e30.",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for k := keyNone + 1; k < numKeys; k++ {
			if rules[k].fits == nil || rules[k].own && !rules[k].shaped {
				continue
			}
			got := text(k, s)
			switch {
			case s == "":
				if !got.IsZero() {
					t.Errorf("%s: an empty text says %q", k, got)
				}
				continue
			case got.String() != s && got.String() != Withheld:
				t.Errorf("%s: %q became %q", k, s, got)
			case len(got.String()) > rules[k].max && !got.IsWithheld():
				t.Errorf("%s: longer than its bound", k)
			}
			if !isPrintable(got.String()) || k != keyStack && strings.ContainsAny(got.String(), "\"\\ =") && !strings.HasSuffix(s, "=") {
				t.Errorf("%s: %q could break a line", k, got)
			}
			if line := AppendJSON(nil, []Field{got}); !json.Valid(line) {
				t.Errorf("%s is not JSON", line)
			}
		}
	})
}
