package policy

import (
	"math/rand/v2"
	"testing"

	"serve.zone/relay/hub/network"
	"serve.zone/relay/hub/network/networktest"
)

// B118: what is said of any packet is what an oracle says, for every member of a
// network and for a stranger.
func FuzzB118_Judge(f *testing.F) {
	x := networktest.Random(rand.New(rand.NewPCG(3, 0)), networktest.RandomNodes, 1)
	o := newOracle(x, admitted)
	table, err := Compile(nil, x, admitted)
	if err != nil {
		f.Fatal(err)
	}
	tr := newTraffic(rand.New(rand.NewPCG(4, 0)), x)
	for i := range 100 {
		p, _ := tr.next()
		f.Add(p, int64(i), int64(i%7))
	}
	f.Fuzz(func(t *testing.T, packet []byte, wall, mono int64) {
		now := network.Instant{Wall: admitted.Wall + wall%100, Mono: admitted.Mono + (mono%100+100)%100}
		if got, want := said(table.Judge(packet, ID{}, now)), o.judge(packet, "", now); got != want {
			t.Fatalf("from a stranger: %s, want %s", got, want)
		}
		for m := range table.Members() {
			if got, want := said(table.Judge(packet, m.ID, now)), o.judge(packet, m.NodeID, now); got != want {
				t.Fatalf("from %s: %s, want %s", m.NodeID, got, want)
			}
		}
	})
}
