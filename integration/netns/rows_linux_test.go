package netns_test

import (
	"strings"
	"testing"
)

// R62: what two members' kernels send each other arrives: echoes up to the inner MTU that
// nobody may cut, TCP, and UDP. What is longer, the sender's kernel refuses by itself.
func TestR62_KernelsThroughTheHub(t *testing.T) {
	if !apart(t) {
		return
	}
	c, a, b := pair(t, direct(ethernet), direct(ethernet))
	a.ping(b, 10, smallEcho)
	b.ping(a, 10, smallEcho)
	a.ping(b, 10, fullEcho)
	b.ping(a, 10, fullEcho)
	longer := a.space.start("", "ping", a.echo(b, fullEcho+1, "-c", "1")...)
	if err := longer.wait(testLimit); err == nil || !strings.Contains(longer.output(), "message too long, mtu=1400") {
		t.Errorf("a packet above the inner MTU: %v, %s", err, longer.output())
	}
	c.bothWays(a, b, 2<<20)
	c.sameSession()
}
