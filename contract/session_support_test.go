package contract

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	zeroDigest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	offerText  = `{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"}`
	bearerText = "clusterRelayToken_cred_1_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	keyText    = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
)

// bodyCase is a body and every reason for which it is refused.
type bodyCase struct {
	name, body string
	want       []string
}

func checkBodies[T any](t *testing.T, read func([]byte) (T, error), cases []bodyCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, err := read([]byte(tc.body))
			if diff := cmp.Diff(tc.want, reasonsIn(t, err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// with returns body with one part of it replaced.
func with(t testing.TB, body, old, replacement string) string {
	t.Helper()
	if strings.Count(body, old) != 1 {
		t.Fatalf("%q does not stand once in %s", old, body)
	}
	return strings.Replace(body, old, replacement, 1)
}

// errorOf leaves the value of a reader away.
func errorOf[T any](read func([]byte) (T, error)) func([]byte) error {
	return func(body []byte) error {
		_, err := read(body)
		return err
	}
}

// checkWritten proves that what is written reads as what was written.
func checkWritten[T appender](t *testing.T, draw func(t *rapid.T) T, read func([]byte) (T, error)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		want := draw(t)
		body := want.AppendJSON(nil)
		got, err := read(body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		clear(body) // what was read must not alias the frame
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// fuzzReader proves that any body is either refused with plain reasons or reads
// as something that is written and read back the same.
func fuzzReader[T appender](f *testing.F, read func([]byte) (T, error), seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		want, err := read(body)
		if err != nil {
			checkReasons(t, err)
			return
		}
		got, err := read(want.AppendJSON(nil))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func drawNodeID(t *rapid.T, label string) string {
	return rapid.StringMatching(`[A-Za-z0-9_-]{1,12}|[A-Za-z0-9_-]{128}`).Draw(t, label)
}

func drawIdentifier(t *rapid.T, label string) string {
	return rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9:._-]{0,12}`).Draw(t, label)
}

func drawDigest(t *rapid.T, label string) string {
	return rapid.StringMatching(`sha256:[0-9a-f]{64}`).Draw(t, label)
}

func drawCount(t *rapid.T, label string) int64 {
	return rapid.Int64Range(0, MaximumSafeInteger).Draw(t, label)
}

func drawCounter(t *rapid.T, label string) int64 {
	return rapid.Int64Range(1, MaximumSafeInteger).Draw(t, label)
}

func drawReference(t *rapid.T, label string) Reference {
	return Reference{drawIdentifier(t, label), drawCounter(t, label), drawDigest(t, label)}
}

func drawNoiseKey(t *rapid.T, label string) string {
	var key NoiseKey
	copy(key[:], rapid.SliceOfN(rapid.Byte(), len(key), len(key)).Draw(t, label))
	return key.String()
}

func drawJWT(t *rapid.T) Secret {
	return Secret(rapid.StringMatching(`[A-Za-z0-9_-]{1,20}(\.[A-Za-z0-9_-]{1,20}){2}`).Draw(t, "jwt"))
}
