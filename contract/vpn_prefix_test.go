package contract

import (
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// R58: a prefix inside or equal to another one is named, whichever nodes they belong
// to.
func TestR58_OverlapOfAnyNodes(t *testing.T) {
	x := vpnNetwork(4, 1)
	for i, cidr := range []string{"10.0.0.0/24", "10.0.0.0/16", "10.0.0.7/32", "10.1.0.0/16"} {
		x.Nodes[i].WorkloadPrefixes[0].CIDR = cidr
	}
	checkNetwork(t, "nested", x, []string{
		`nodes[0].workloadPrefixes[0].cidr: overlaps another workload prefix`,
		`nodes[2].workloadPrefixes[0].cidr: overlaps another workload prefix`,
	})
	x.Nodes[0].WorkloadPrefixes[0].CIDR = "10.2.0.0/24"
	x.Nodes[2].WorkloadPrefixes[0].CIDR = "10.2.0.0/24"
	checkNetwork(t, "equal", x, []string{`nodes[2].workloadPrefixes[0].cidr: overlaps another workload prefix`})
}

// R58: the overlaps that are named are exactly the prefixes that a comparison of all
// pairs finds inside another one.
func TestR58_OverlapAgreesWithAllPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var placed placedPrefixes
		var all []netip.Prefix
		for i := range rapid.IntRange(0, 24).Draw(t, "prefixes") {
			// Few address bits, so that most draws overlap.
			bits := rapid.IntRange(0, 32).Draw(t, "bits")
			address := rapid.SampledFrom([]uint32{0, 0x0a000000, 0x0a000001, 0x0a000100, 0x0a010000, 0x80000000, 0xffffffff}).Draw(t, "address")
			p := netip.PrefixFrom(addressOf(address), bits).Masked()
			all = append(all, p)
			placed.add(p, i, 0)
		}
		var want []string
		for i, p := range all {
			for j, q := range all {
				inside := q.Bits() < p.Bits() && q.Overlaps(p) || p == q && j < i
				if inside {
					want = append(want, "["+strconv.Itoa(i)+"].workloadPrefixes[0].cidr: overlaps another workload prefix")
					break
				}
			}
		}
		got := reasonsOf(placed.judgeOverlap)
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAddressRange(t *testing.T) {
	for cidr, want := range map[string][2]uint32{
		"0.0.0.0/0":          {0, 0xffffffff},
		"128.0.0.0/1":        {0x80000000, 0xffffffff},
		"10.0.0.0/8":         {0x0a000000, 0x0affffff},
		"192.168.0.4/30":     {0xc0a80004, 0xc0a80007},
		"255.255.255.255/32": {0xffffffff, 0xffffffff},
	} {
		first, last := addressRange(netip.MustParsePrefix(cidr))
		if first != want[0] || last != want[1] {
			t.Errorf("%s: got %x to %x", cidr, first, last)
		}
	}
}

// Eight times the prefixes cost little more than eight times as much; by pairs
// it would be 64 times.
func BenchmarkOverlapOfVPNPrefixes(b *testing.B) {
	place := func(n int) (placed placedPrefixes) {
		for i := range MaximumVPNNodes {
			for j := range n {
				placed.add(netip.PrefixFrom(addressOf(uint32(i<<16|j*7919%1024)), 32), i, j)
			}
		}
		return placed
	}
	small, large := place(MaximumVPNPrefixes/8), place(MaximumVPNPrefixes)
	judge := func(placed placedPrefixes) time.Duration {
		placed = slices.Clone(placed)
		start := time.Now()
		if reasons := reasonsOf(placed.judgeOverlap); reasons != nil {
			b.Fatal(reasons)
		}
		return time.Since(start)
	}
	var ofSmall, ofLarge time.Duration
	for b.Loop() {
		ofSmall += judge(small)
		ofLarge += judge(large)
	}
	b.ReportMetric(float64(ofLarge)/float64(ofSmall), "32768/4096")
}
