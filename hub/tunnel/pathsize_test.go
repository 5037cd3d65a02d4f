package tunnel

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// pathStep is so many looks in a row, a second apart.
type pathStep struct {
	looks    int
	size     int
	active   bool
	answered bool // whether what was asked for at the look before has been answered, in part

	echoes    []int // at the looks, the last one being that of all that follow
	narrower  int   // how often it is said
	narrowsAt int   // the look at which that is first, from 1
}

func TestPathCheck(t *testing.T) {
	const full = DefaultInnerMTU
	tests := []struct {
		name  string
		steps []pathStep
	}{
		{"all is well", []pathStep{{looks: 100, size: full, active: true, answered: true, echoes: []int{1}}}},
		{"it becomes narrower", []pathStep{
			{looks: 5, size: full, active: true, answered: true, echoes: []int{1}},
			{looks: 5, size: full, active: true, echoes: []int{3}, narrower: 2, narrowsAt: 3},
			{looks: 5, size: SafeDatagram, active: true, echoes: []int{0}},
			{looks: 5, size: SafeDatagram + 1, active: true, answered: true, echoes: []int{1}},
		}},
		{"it is narrower from the start", []pathStep{
			{looks: 4, size: full, active: true, echoes: []int{1, 3}, narrower: 1, narrowsAt: 4},
		}},
		{"two looks are lost", []pathStep{
			{looks: 5, size: full, active: true, answered: true, echoes: []int{1}},
			{looks: 2, size: full, active: true, echoes: []int{3}},
			{looks: 5, size: full, active: true, answered: true, echoes: []int{1}},
			{looks: 2, size: full, active: true, echoes: []int{3}},
		}},
		{"nothing is large", []pathStep{{looks: 100, size: SafeDatagram, active: true, echoes: []int{0}}}},
		{"nothing passes", []pathStep{
			{looks: 11, size: full, answered: true, echoes: []int{1}},
			{looks: 59, size: full, answered: true, echoes: []int{0}},
			{looks: 1, size: full, answered: true, echoes: []int{1}},
			{looks: 59, size: full, answered: true, echoes: []int{0}},
		}},
		{"it becomes narrower while nothing passes", []pathStep{
			{looks: 11, size: full, answered: true, echoes: []int{1}},
			{looks: 59, size: full, answered: true, echoes: []int{0}},
			{looks: 1, size: full, echoes: []int{1}},
			{looks: 9, size: full, echoes: []int{3}, narrower: 4, narrowsAt: 3},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var p PathCheck
			now, answered, asked := time.Unix(0, 0), uint64(0), 0
			for n, step := range test.steps {
				said := 0
				for look := range step.looks {
					now = now.Add(time.Second)
					if step.answered && asked > 0 {
						answered++
					}
					echoes, narrower := p.Look(now, step.size, step.active, answered)
					asked = echoes
					if want := step.echoes[min(look, len(step.echoes)-1)]; echoes != want {
						t.Errorf("step %d, look %d: %d echoes, want %d", n, look+1, echoes, want)
					}
					if narrower {
						if said++; said == 1 && look+1 != step.narrowsAt {
							t.Errorf("step %d: narrower at look %d, want %d", n, look+1, step.narrowsAt)
						}
					}
				}
				if said != step.narrower {
					t.Errorf("step %d: it is narrower %d times, want %d", n, said, step.narrower)
				}
			}
		})
	}
}

// A path is said to be narrower if, and soon when, none of the packets since the last that
// came back came back: never before seven, and at the fourth look in a row at the latest.
// The hub's budget of echoes is never used up.
func TestPathCheckProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p PathCheck
		now, answered := time.Unix(0, 0), uint64(0)
		silent, missing := 0, 0 // looks and echoes since the last answer, while something is large
		for range rapid.IntRange(1, 200).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(900, 1100).Draw(t, "milliseconds")) * time.Millisecond)
			size := rapid.SampledFrom([]int{SafeDatagram - 1, SafeDatagram, SafeDatagram + 1, DefaultInnerMTU, DefaultInnerMTU}).Draw(t, "size")
			active := rapid.Bool().Draw(t, "active")
			if missing > 0 && rapid.IntRange(0, 3).Draw(t, "answers") == 0 {
				answered++
				silent, missing = 0, 0
			}
			if size <= SafeDatagram {
				silent, missing = 0, 0
			}
			echoes, narrower := p.Look(now, size, active, answered)
			switch {
			case narrower && (size <= SafeDatagram || missing < 7):
				t.Fatalf("narrower at a size of %d with %d missing", size, missing)
			case !narrower && silent >= 3:
				t.Fatalf("not narrower though %d echoes of %d looks are missing", missing, silent)
			case echoes > 3 || echoes > 0 && size <= SafeDatagram || echoes == 0 && size > SafeDatagram && (active || missing > 0):
				t.Fatalf("%d echoes at a size of %d, active %v, %d missing", echoes, size, active, missing)
			}
			missing += echoes
			if echoes > 0 {
				silent++
			}
			if narrower {
				silent, missing = 1, 1+echoes // said; it goes on
			}
		}
	})
}
