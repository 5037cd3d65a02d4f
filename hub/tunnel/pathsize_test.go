package tunnel

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// pathStep is so many looks in a row, a second apart.
type pathStep struct {
	looks  int
	size   int
	active bool
	back   string // what of the echoes asked for at the look before comes back: "full" is some of all, "small", or ""
	others string // what else comes: "packets" are acknowledgements, "datagrams" those and datagrams, or ""

	full, small []int // echoes at the looks, the last one being that of all that follow
	narrower    int   // how often it is said
	narrowsAt   int   // the look at which that is first, from 1
}

func TestPathCheck(t *testing.T) {
	const full = DefaultInnerMTU
	well := pathStep{looks: 5, size: full, active: true, back: "full", full: []int{1}}
	tests := []struct {
		name  string
		steps []pathStep
	}{
		{"all is well", []pathStep{{looks: 100, size: full, active: true, back: "full", full: []int{1}}}},
		{"it becomes narrower", []pathStep{well,
			{looks: 5, size: full, active: true, back: "small", full: []int{3}, small: []int{3}, narrower: 2, narrowsAt: 3},
			{looks: 5, size: SafeDatagram, active: true, back: "small", full: []int{0}},
			{looks: 5, size: SafeDatagram + 1, active: true, back: "full", full: []int{1}},
		}},
		{"nothing is done about it", []pathStep{well,
			{looks: 12, size: full, active: true, back: "small", full: []int{3}, small: []int{3}, narrower: 5, narrowsAt: 3},
		}},
		{"it is narrower from the start", []pathStep{
			{looks: 4, size: full, active: true, back: "small", full: []int{1, 3}, small: []int{0, 3}, narrower: 1, narrowsAt: 4},
		}},
		{"two looks are lost", []pathStep{well,
			{looks: 2, size: full, active: true, back: "small", full: []int{3}, small: []int{3}},
			well,
			{looks: 2, size: full, active: true, back: "small", full: []int{3}, small: []int{3}},
		}},
		{"nothing comes for long, then small ones alone", []pathStep{well,
			{looks: 60, size: full, active: true, full: []int{3}, small: []int{3}},
			{looks: 4, size: full, active: true, back: "small", full: []int{3}, small: []int{3}, narrower: 1, narrowsAt: 3},
		}},
		{"others come, of ours nothing", []pathStep{well,
			{looks: 60, size: full, active: true, others: "datagrams", full: []int{3}, small: []int{3}},
		}},
		{"nothing comes but acknowledgements", []pathStep{well,
			{looks: 4, size: full, active: true, others: "packets", full: []int{3}, small: []int{3}, narrower: 1, narrowsAt: 3},
		}},
		{"nothing comes, then acknowledgements", []pathStep{well,
			{looks: 4, size: full, active: true, full: []int{3}, small: []int{3}},
			{looks: 30, size: full, active: true, others: "packets", full: []int{3}, small: []int{3}},
		}},
		{"nothing is large", []pathStep{{looks: 100, size: SafeDatagram, active: true, full: []int{0}}}},
		{"nothing passes", []pathStep{
			{looks: 11, size: full, back: "full", full: []int{1}},
			{looks: 59, size: full, back: "full", full: []int{0}},
			{looks: 1, size: full, back: "full", full: []int{1}},
			{looks: 59, size: full, back: "full", full: []int{0}},
		}},
		{"it becomes narrower while nothing passes", []pathStep{
			{looks: 11, size: full, back: "full", full: []int{1}},
			{looks: 59, size: full, back: "full", full: []int{0}},
			{looks: 1, size: full, back: "small", full: []int{1}},
			{looks: 9, size: full, back: "small", full: []int{3}, small: []int{3}, narrower: 4, narrowsAt: 3},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var p PathCheck
			var seen PathSeen
			now, asked := time.Unix(0, 0), Echoes{}
			for n, step := range test.steps {
				said := 0
				for look := range step.looks {
					now = now.Add(time.Second)
					come(&seen, step, asked)
					var narrower bool
					asked, narrower = p.Look(now, step.size, step.active, seen)
					want := Echoes{Full: step.full[min(look, len(step.full)-1)]}
					if len(step.small) > 0 {
						want.Small = step.small[min(look, len(step.small)-1)]
					}
					if asked != want {
						t.Errorf("step %d, look %d: %+v, want %+v", n, look+1, asked, want)
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

// come is what comes in a step where so many echoes were asked for.
func come(seen *PathSeen, step pathStep, asked Echoes) {
	if step.back == "full" && asked.Full > 0 {
		seen.Full++
		seen.Datagrams++
	}
	if step.back != "" {
		seen.Small += uint64(asked.Small)
		seen.Datagrams += uint64(asked.Small)
	}
	if step.back != "" || step.others != "" {
		seen.Packets += uint64(asked.Full + asked.Small)
	}
	if step.others == "datagrams" {
		seen.Datagrams++
		seen.Packets++
	}
}

// A path is said to be narrower when small echoes come back and none of the full ones does,
// at the fourth look in a row at the latest, and never where a full one does or none at all.
// The hub's budget of echoes is never used up.
func TestPathCheckProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p PathCheck
		var seen PathSeen
		now := time.Unix(0, 0)
		var asked, missing Echoes // at the look before; since the last full one that came back
		perfect, small := 0, 0    // looks since then at which every small one came; how many came
		for range rapid.IntRange(1, 200).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(900, 1100).Draw(t, "milliseconds")) * time.Millisecond)
			size := rapid.SampledFrom([]int{SafeDatagram - 1, SafeDatagram, SafeDatagram + 1, DefaultInnerMTU, DefaultInnerMTU}).Draw(t, "size")
			active := rapid.Bool().Draw(t, "active")
			back := asked.Small
			if rapid.IntRange(0, 9).Draw(t, "loses") == 0 {
				back = rapid.IntRange(0, asked.Small).Draw(t, "small")
			}
			seen.Small += uint64(back)
			seen.Datagrams += 1 + uint64(back) // others come as well
			seen.Packets += 10
			if perfect++; back < asked.Small {
				perfect = -200
			}
			small += back
			again := missing.Full > 0 && rapid.IntRange(0, 5).Draw(t, "answers") == 0
			if again {
				seen.Full++
				seen.Datagrams++
			}
			if again || size <= SafeDatagram {
				missing, perfect, small = Echoes{}, 0, 0
			}
			var narrower bool
			asked, narrower = p.Look(now, size, active, seen)
			switch {
			case narrower && (size <= SafeDatagram || missing.Full < 4 || small < 3):
				t.Fatalf("narrower at a size of %d with %+v missing, %d small ones came", size, missing, small)
			case !narrower && missing.Full >= 7 && perfect >= 3:
				t.Fatalf("not narrower though %+v of %d looks are missing", missing, perfect)
			case asked.Full+asked.Small > 6 || asked != (Echoes{}) && size <= SafeDatagram,
				asked.Full == 0 && size > SafeDatagram && (active || missing.Full > 0):
				t.Fatalf("%+v at a size of %d, active %v, %+v missing", asked, size, active, missing)
			}
			if narrower {
				missing, perfect, small = Echoes{Full: 1}, 0, 0 // said; it goes on
			}
			if missing == (Echoes{}) {
				perfect, small = 0, 0
			}
			missing.Full += asked.Full
			missing.Small += asked.Small
		}
	})
}

// B127, B128: loss that spares no size is hardly ever taken for a narrow path: not where 30 %
// are lost, and a few times in an hour however much it is. That holds whether it is of
// packets to the other end or from there, and also where nothing else passes.
func TestB127_B128_LossIsNoNarrowPath(t *testing.T) {
	const hours = 20
	for _, loss := range []float64{0.05, 0.125, 0.3, 0.5, 0.7, 0.9} {
		for _, there := range []bool{true, false} {
			for _, others := range []bool{true, false} {
				random := rand.New(rand.NewPCG(1, uint64(1000*loss)))
				arrives := func() bool { return random.Float64() >= loss }
				var p PathCheck
				var seen PathSeen
				now, said := time.Unix(0, 0), 0
				for range hours * 3600 {
					now = now.Add(time.Second)
					asked, narrower := p.Look(now, DefaultInnerMTU, true, seen)
					if narrower {
						said++
					}
					for n := range asked.Full + asked.Small {
						came := arrives()
						if there && came || !there && arrives() { // its acknowledgement
							seen.Packets++
						}
						switch {
						case !came:
							continue
						case n < asked.Full:
							seen.Full++
						default:
							seen.Small++
						}
						seen.Datagrams++
						seen.Packets++
					}
					for range 10 {
						if others && arrives() {
							seen.Datagrams++
							seen.Packets++
						}
					}
				}
				most := 5 * hours
				if loss <= 0.3 {
					most = hours / 4
				}
				if said > most {
					t.Errorf("at a loss of %v (there %v, others %v) it is said %d times in %d hours", loss, there, others, said, hours)
				}
			}
		}
	}
}
