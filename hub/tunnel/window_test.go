package tunnel

import (
	"testing"

	"pgregory.net/rapid"
)

// A window against a slow one that forgets nothing.
func TestWindowAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w window
		seen := map[uint64]bool{}
		newest := rapid.SampledFrom([]uint64{0, 63, 64, 1 << 20, MaxSealed - 1}).Draw(t, "first")
		w.see(newest)
		seen[newest] = true
		for range rapid.IntRange(1, 200).Draw(t, "packets") {
			var counter uint64
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0: // near the newest
				counter = newest + uint64(rapid.IntRange(0, 70).Draw(t, "ahead"))
			case 1: // a jump
				counter = newest + uint64(rapid.IntRange(0, 2*windowSpan).Draw(t, "jump"))
			default: // anything at or below the newest
				counter = newest - uint64(rapid.IntRange(0, int(min(newest, windowSpan+130))).Draw(t, "behind"))
			}
			want := OpenNew
			switch {
			case counter+windowSpan <= newest:
				want = OpenTooOld
			case seen[counter]:
				want = OpenReplayed
			}
			if got := w.see(counter); got != want {
				t.Fatalf("counter %d, newest %d: got %v, want %v", counter, newest, got, want)
			}
			if want == OpenNew {
				seen[counter] = true
				newest = max(newest, counter)
			}
		}
	})
}

// Once around the ring and further, nothing is left of what was seen before.
func TestWindowInOrder(t *testing.T) {
	var w window
	for counter := range uint64(3 * 64 * windowBlocks) {
		if got := w.see(counter); got != OpenNew {
			t.Fatalf("counter %d: %v", counter, got)
		}
		if got := w.see(counter - min(counter, windowSpan-1)); got != OpenReplayed {
			t.Fatalf("the oldest at counter %d: %v", counter, got)
		}
	}
}

func TestWindowEdges(t *testing.T) {
	var w window
	for _, step := range []struct {
		counter uint64
		want    OpenResult
	}{
		{0, OpenNew},
		{0, OpenReplayed},
		{windowSpan, OpenNew},
		{1, OpenNew},
		{0, OpenTooOld},
		{windowSpan + 1, OpenNew},
		{1, OpenTooOld},
		{2, OpenNew},
		{2, OpenReplayed},
		{1 << 40, OpenNew},
		{1<<40 - windowSpan + 1, OpenNew},
		{1<<40 - windowSpan, OpenTooOld},
		{1<<40 - 5000, OpenNew},
		{1<<40 - 5000, OpenReplayed},
	} {
		if got := w.see(step.counter); got != step.want {
			t.Errorf("counter %d: got %v, want %v", step.counter, got, step.want)
		}
	}
	if windowSpan < 2048 {
		t.Errorf("a window of %d", windowSpan)
	}
}
