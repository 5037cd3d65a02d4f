//go:build race

package appliance

// leasedNodes is what the race detector, under which everything takes ten times as
// long, leaves time for.
const leasedNodes = 16
