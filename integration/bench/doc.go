// Package bench measures the product against its peers. Every figure is a
// ratio of two processes driven in turn by the same load in the same run, since
// absolute times mean nothing on a shared machine; the budgets are those of the
// design, the results stand in docs/performance.md.
//
// Run it with:
//
//	go test -run '^$' -bench . -benchtime 1x ./integration/bench
//
// BenchmarkLoad and BenchmarkLoadReconnect drive the built relay with 256 nodes, and
// those that begin with Hub its VPN hub with up to 256 members; RELAY_BINARY names
// another one. The rest measures the carrier, in roles of this test binary.
//
// Its tests are of its own arithmetic: speed is never asserted.
package bench
