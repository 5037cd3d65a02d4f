package policy

import (
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network"
	"serve.zone/relay/hub/network/networktest"
)

// largest are the networks that design §5.5 gives 20 ms to compile, and one with
// every prefix that the bounds besides the size would allow.
var largest = []struct {
	name string
	make func() contract.VPNNetwork
}{
	{"W", networktest.Wide}, {"G", networktest.Granting}, {"256x128", networktest.Beyond},
}

// BenchmarkCompile compiles the successor of a network of the same size, whose
// members all continue, and prints beside it how long its reader takes.
func BenchmarkCompile(b *testing.B) {
	for _, tc := range largest {
		x := tc.make()
		prev, err := Compile(nil, x, admitted)
		if err != nil {
			b.Fatal(err)
		}
		body := contract.ApplyVPNNetworkRequest{Network: x}.AppendJSON(nil)
		b.Run(tc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Compile(prev, x, admitted); err != nil {
					b.Fatal(err)
				}
			}
			compiling := b.Elapsed() / time.Duration(b.N)
			const readings = 5
			begun := time.Now()
			for range readings {
				_, _ = contract.ReadApplyVPNNetworkRequest(body) // 256x128 is refused, once it was read
			}
			reading := time.Since(begun) / readings
			b.ReportMetric(compiling.Seconds()*1e3, "ms/compile")
			b.ReportMetric(float64(compiling)/float64(reading), "of-reading")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkJudge judges one packet of a busy flow, and packets that no cache knows.
func BenchmarkJudge(b *testing.B) {
	table, err := Compile(nil, networktest.Wide(), admitted)
	if err != nil {
		b.Fatal(err)
	}
	one := packet("10.0.0.1", "10.1.0.1")
	for _, tc := range []struct {
		name   string
		packet []byte
	}{
		{"relay", one}, {"fragment", packet("10.0.0.1", "10.1.0.1", fragment(800, false))},
		{"spoofed", packet("10.1.0.1", "10.0.0.1")}, {"no-grant", packet("10.0.1.1", "10.1.0.1")},
		{"options", packet("10.0.0.1", "10.1.0.1", at(0, 0x46))}, {"echo", packet("192.168.0.2", "192.168.0.1", echo)},
	} {
		id := table.node("node-000").ID
		b.Run(tc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				table.Judge(tc.packet, id, admitted)
			}
		})
	}
	b.Run("all-members", func(b *testing.B) {
		ids := make([]ID, Slots)
		for i := range ids {
			ids[i] = table.members[i].ID
		}
		now := network.Instant{Wall: admitted.Wall, Mono: admitted.Mono}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			from := i * 97 & (Slots - 1)
			one[sourceAt+1], one[destinationAt+1] = byte(from), byte(from+1)
			if v := table.Judge(one, ids[from], now); v.Action != Relay {
				b.Fatal(said(v))
			}
		}
	})
	// The same lookups by a linear scan, as a peer to compare with.
	b.Run("oracle", func(b *testing.B) {
		o := newOracle(networktest.Wide(), admitted)
		for b.Loop() {
			o.judge(one, "node-000", admitted)
		}
	})
}
