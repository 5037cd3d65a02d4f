package hub

import (
	"slices"
	"testing"

	"serve.zone/relay/hub/policy"
)

// R62: a packet passes by a directed grant, and a grant that is added takes effect
// without a new connection.
func TestR62_PacketsPassByDirectedGrant(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		c.must(netOf(1, 2, 0, 1))
		a, b := r.dial(0), r.dial(1)
		a.send(packetOf(ip(0), ip(1), 100, 1))
		b.send(packetOf(ip(1), ip(0), 100, 2))
		settle()
		if got := numbers(b.take()); !slices.Equal(got, []int{1}) {
			t.Errorf("b got %v", got)
		}
		if got := numbers(a.take()); len(got) != 0 {
			t.Errorf("a got %v without a grant", got)
		}
		if n := r.drops(policy.NoGrant); n != 1 {
			t.Errorf("%d drops for want of a grant", n)
		}
		c.must(netOf(2, 2, 0, 1, 1, 0))
		b.send(packetOf(ip(1), ip(0), 1400, 3))
		settle()
		if got := numbers(a.take()); !slices.Equal(got, []int{3}) {
			t.Errorf("a got %v", got)
		}
		if !a.open() || !b.open() || r.member(0).Sessions != 1 {
			t.Errorf("a connection did not survive: %+v", r.member(0))
		}
	})
}
