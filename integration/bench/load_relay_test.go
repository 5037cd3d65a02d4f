package bench

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"serve.zone/relay/integration/rig"
)

const (
	// buildWait bounds the build of the relay with an empty cache.
	buildWait = 8 * time.Minute

	// settleEvery and settleLooks say when memory counts as settled: when it has
	// not become less for so many collections. The runtime gives memory back in
	// the background.
	settleEvery = 200 * time.Millisecond
	settleLooks = 5
	settleWait  = 8 * time.Second
)

// builtRelay is the relay that the rigs of this process run. It outlives a
// benchmark since the rig remembers where it was; TestMain removes it.
var builtRelay struct {
	once sync.Once
	dir  string // "" when nothing was built
	err  error
}

// newRig makes a rig around the program as a user has it: built without the race
// detector, and with its own log level. Its relay is not started.
func newRig(b *testing.B) *rig.Rig {
	b.Helper()
	if os.Getenv(rig.BinaryVariable) == "" {
		builtRelay.once.Do(func() { builtRelay.err = buildRelay() })
		if builtRelay.err != nil {
			b.Fatal(builtRelay.err)
		}
		b.Setenv(rig.BinaryVariable, filepath.Join(builtRelay.dir, "relay"))
	}
	return rig.New(b, rig.NotStarted(), rig.Without("log-level"))
}

func buildRelay() (err error) {
	if builtRelay.dir, err = os.MkdirTemp("", "relay-bench-"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildWait)
	defer cancel()
	output, err := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", filepath.Join(builtRelay.dir, "relay"), "serve.zone/relay/cmd/relay").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the relay: %w\n%s", err, output)
	}
	return nil
}

// settledMemory returns what the relay has resident once garbage is collected and
// given back, in bytes.
func settledMemory(b *testing.B, r *rig.Rig) int {
	b.Helper()
	least, since := math.MaxInt, 0
	for end := time.Now().Add(settleWait); since < settleLooks && time.Now().Before(end); {
		r.Get("/debug/pprof/heap?gc=1")
		since++
		if now := residentOf(b, r.PID()); now < least {
			least, since = now, 0
		}
		time.Sleep(settleEvery)
	}
	return least
}

// inside is what the relay says of how long messages were inside it.
type inside struct {
	request, answer histogram
}

// histogram is durations by how long they were: how many were at most bounds[i],
// in seconds and ascending.
type histogram struct {
	bounds, upTo []float64
}

var insideBucket = regexp.MustCompile(`(?m)^relay_forward_inside_seconds_bucket\{message="(request|answer)",le="([^"]+)"\} (\S+)$`)

// readInside reads a page of metrics.
func readInside(page []byte) (x inside, err error) {
	for _, found := range insideBucket.FindAllSubmatch(page, -1) {
		bound, failed := strconv.ParseFloat(string(found[2]), 64)
		count, wrong := strconv.ParseFloat(string(found[3]), 64)
		if failed != nil || wrong != nil {
			return x, fmt.Errorf("a bucket %q", found[0])
		}
		h := &x.request
		if string(found[1]) == "answer" {
			h = &x.answer
		}
		h.bounds, h.upTo = append(h.bounds, bound), append(h.upTo, count)
	}
	if len(x.request.bounds) == 0 || !slices.Equal(x.request.bounds, x.answer.bounds) || !slices.IsSorted(x.request.bounds) {
		return x, fmt.Errorf("/metrics tells not how long messages are inside")
	}
	return x, nil
}

// minus returns what was counted since an earlier look.
func (x inside) minus(before inside) inside {
	return inside{x.request.minus(before.request), x.answer.minus(before.answer)}
}

func (h histogram) minus(before histogram) histogram {
	upTo := slices.Clone(h.upTo)
	for i := range upTo {
		upTo[i] -= before.upTo[i]
	}
	return histogram{h.bounds, upTo}
}

func (h histogram) count() float64 { return h.upTo[len(h.upTo)-1] }

// at returns how long the one was that has this many before it in order of
// length, as if those of a bucket lay evenly in it: buckets double, so the truth
// is at most a factor of two away.
func (h histogram) at(rank float64) time.Duration {
	var low, below float64
	for i, bound := range h.bounds {
		if h.upTo[i] > rank || i == len(h.bounds)-1 {
			if math.IsInf(bound, 1) {
				bound = low
			}
			share := 0.0
			if in := h.upTo[i] - below; in > 0 {
				share = min(1, (rank-below)/in)
			}
			return time.Duration((low + share*(bound-low)) * float64(time.Second))
		}
		low, below = bound, h.upTo[i]
	}
	return 0
}

// without returns between which two durations a percentile lies of those that are
// left when n of them are not looked at, of which nothing is known.
func (h histogram) without(n, percent float64) (least, most time.Duration) {
	left := max(0, h.count()-n) * percent / 100
	return h.at(left), h.at(min(n+left, h.count()))
}
