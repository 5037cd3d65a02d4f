package cloudly

import "testing"

func TestEveryTroubleHasANameAndAdvice(t *testing.T) {
	seen := map[string]bool{}
	for trouble := range numTroubles {
		if name := trouble.String(); name == "" || seen[name] || advice[trouble].Hint == "" {
			t.Errorf("trouble %d: name %q, hint %q", uint8(trouble), name, advice[trouble].Hint)
		} else {
			seen[name] = true
		}
	}
}
