package networktest

import (
	"math/rand/v2"
	"testing"

	"serve.zone/relay/contract"
)

// read passes a network through the reader of an apply request.
func read(t *testing.T, name string, x contract.VPNNetwork) {
	t.Helper()
	if _, err := contract.ReadApplyVPNNetworkRequest(contract.ApplyVPNNetworkRequest{Network: x}.AppendJSON(nil)); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func TestNetworksPassTheirReader(t *testing.T) {
	read(t, "empty", Grid(0, 0))
	read(t, "grid", Grant(Grid(3, 2), "d0.0", "d1.1", "d1.1", "d0.0"))
	read(t, "wide", Wide())
	read(t, "granting", Granting())
	for seed := range uint64(60) {
		read(t, "random", Random(rand.New(rand.NewPCG(seed, 0)), int(seed%(RandomNodes+1)), 1))
	}
}

// The networks of design §5.5 are as large as they are said to be.
func TestLargestNetworks(t *testing.T) {
	w, g := Wide(), Granting()
	if n := w.CanonicalLength(); len(w.Nodes) != 256 || n < contract.VPNNetworkLimit-256*64 {
		t.Errorf("W has %d nodes, %d bytes", len(w.Nodes), n)
	}
	if len(g.Nodes) != 256 || len(g.Grants) != 4096 || len(g.Nodes[0].WorkloadPrefixes) != 4 {
		t.Errorf("G has %d nodes, %d grants, %d prefixes", len(g.Nodes), len(g.Grants), len(g.Nodes[0].WorkloadPrefixes))
	}
	if b := Beyond(); len(b.Nodes) != 256 || len(b.Nodes[255].WorkloadPrefixes) != 128 {
		t.Errorf("there are %d nodes", len(b.Nodes))
	}
	t.Logf("W: %d prefixes a member, %d grants, %d bytes; G: %d bytes",
		len(w.Nodes[0].WorkloadPrefixes), len(w.Grants), w.CanonicalLength(), g.CanonicalLength())
}
