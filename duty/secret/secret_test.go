package secret

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFind(t *testing.T) {
	hex64 := strings.Repeat("0123456789abcdef", 4)
	for _, row := range []struct {
		name, text string
		want       Shape
	}{
		{"nothing", "", None},
		{"a node id", "worker-eu-central-1a", None},
		{"a node id with a leading dash", "-abc", None},
		{"a UUID", "3f2504e0-4f89-41d3-9a0c-0305e82c3301", None},
		{"the longest method name", "completeSecretRecipientEnrollmentForCluster", None},
		{"an address", "192.0.2.1:443", None},
		{"a dashed name of many words", "a-long-name-of-many-words-that-ends-after-forty-3", None},
		{"31 hexadecimal digits", hex64[:31], None},
		{"32 hexadecimal digits", hex64[:32], Hex},
		{"32 upper-case hexadecimal digits", strings.ToUpper(hex64[:32]), Hex},
		{"hexadecimal inside words", "id=" + hex64 + ";", Hex},
		{"a digest", "sha256:" + hex64, Hex},
		{"the relay's bearer", "clusterRelayToken_cred-1_" + hex64, Bearer},
		{"a bearer in shouting", "CLUSTERRELAYTOKEN_x", Bearer},
		{"a bearer in a sentence", "refused clusterRelayToken_a_b", Bearer},
		{"an authorization header", "Authorization: Bearer x", Bearer},
		{"basic credentials", "basic dTpw", Bearer},
		{"the word bearer alone", "bearer ", None},
		{"a JWT", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln", JWT},
		{"an unsigned JWT", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.", JWT},
		{"a JWT behind a false start", "eyJ.eyJhbGciOiJub25lIn0.e30.", JWT},
		{"two parts only", "eyJhbGciOiJub25lIn0.e30", None},
		{"a PEM block", "-----BEGIN PRIVATE KEY-----", PEM},
		{"a short base64 text", "dGhlIHF1aWNrIGJyb3duIGZveA", None},
		{"a key in base64", "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789+/aBcDe=", Mixed},
		{"a lower-case token of 40", "abcdefghijklmnopqrstuvwxyz0123456789abcd", Mixed},
		{"a key in base64 without a digit", "AbCdEfGhIjKlMnOpQrStUvWxYzabcdeFGHIJklmnOPQ", Mixed},
		{"39 characters", "abcdefghijklmnopqrstuvwxyz0123456789abc", None},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := Find(row.text); got != row.want {
				t.Errorf("Find = %v, want %v", got, row.want)
			}
		})
	}
}

// Random keys must be caught wherever they stand in a text.
func TestFindCatchesRandomKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// A seeded generator: rapid's own favours small bytes, which no key has.
		var seed [32]byte
		binary.LittleEndian.PutUint64(seed[:], rapid.Uint64().Draw(t, "seed"))
		key := make([]byte, 32)
		_, _ = rand.NewChaCha8(seed).Read(key)
		before := rapid.StringMatching(`[a-z :;"=-]{0,12}`).Draw(t, "before")
		after := rapid.StringMatching(`[a-z :;"=-]{0,12}`).Draw(t, "after")
		if got := Find(before + hex.EncodeToString(key) + after); got == None {
			t.Errorf("a key in hexadecimal was not found")
		}
		if got := Find(before + base64.StdEncoding.EncodeToString(key) + after); got == None {
			t.Errorf("a key in base64 was not found")
		}
	})
}

func TestFindAllocatesNothing(t *testing.T) {
	text := "clusterRelay-cred-1-worker-eu-central-1a.eyJ.192.0.2.1:443"
	if n := testing.AllocsPerRun(100, func() { Find(text) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestShapesHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for s := None; s <= Mixed; s++ {
		if s.String() == "" || seen[s.String()] {
			t.Errorf("shape %d has no name of its own", s)
		}
		seen[s.String()] = true
	}
}

// FuzzFind holds down that what stands around a secret never hides it.
func FuzzFind(f *testing.F) {
	f.Add("", "")
	f.Add("eyJ", ".")
	f.Add("clusterRelayToken", "_")
	f.Add("-----BEGI", "N")
	f.Fuzz(func(t *testing.T, before, after string) {
		for _, text := range []string{
			"clusterRelayToken_a_" + strings.Repeat("ab", 32),
			"eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.c2ln",
			"-----BEGIN EC PRIVATE KEY-----",
			strings.Repeat("0f", 16),
		} {
			if Find(before+text+after) == None {
				t.Errorf("%q + %q hid a secret", before, after)
			}
		}
		if Find(before) != None && Find(before+after) == None {
			t.Errorf("%q hid what %q had shown", after, before)
		}
	})
}
