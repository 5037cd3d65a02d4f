package carriertest

import "testing"

// TestReachableFinds what it is to find.
func TestReachableFinds(t *testing.T) {
	type inner struct{ b []byte }
	type outer struct {
		m map[string]*inner
		a any
	}
	for want, v := range map[string]outer{
		".m[...].b": {m: map[string]*inner{"x": {b: []byte("x secret")}}},
		".m[key]":   {m: map[string]*inner{"a secret": nil}},
		".a":        {a: "a secret"},
		".a[1]":     {a: [2][6]byte{1: [6]byte([]byte("secret"))}},
		"":          {m: map[string]*inner{"x": {b: []byte("x")}}},
	} {
		if got := Reachable(&v, "secret", ""); got != want {
			t.Errorf("found at %q, want %q", got, want)
		}
	}
}
