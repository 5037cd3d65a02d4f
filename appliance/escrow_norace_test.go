//go:build !race

package appliance

// leasedNodes is how many nodes the design counts on in one cluster.
const leasedNodes = 256
