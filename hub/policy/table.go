package policy

import (
	"iter"
	"net/netip"
	"time"

	"github.com/gaissmai/bart"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network"
)

// Slots is how many places for members a table has: arrays that stand beside
// tables, such as that of the sessions, are as long.
const Slots = contract.MaximumVPNNodes

// ID names one membership: from the table in which a member first appeared to the
// last one in which it continues. It is never used again, so that whoever kept one
// cannot take one member for another. The zero value names none.
type ID struct {
	slot  uint16
	since uint64 // epoch of the table in which the membership began
}

// Slot is the place of the membership, below Slots. Only while it lasts does it
// belong to it alone.
func (id ID) Slot() int { return int(id.slot) }

// Member is one member of a network. Nobody changes it.
type Member struct {
	ID             ID
	NodeID         string
	Key            contract.NoiseKey
	ControlAddress netip.Addr
	Deadline       network.Deadline
}

// Table is a network in the form in which packets are judged. It never changes,
// and any number of goroutines may use it at once.
type Table struct {
	epoch   uint64
	network *contract.VPNNetwork // nil when empty

	control netip.Prefix
	hub     netip.Addr // the first host address of control (contract O24)

	members []Member // in the order of the network's nodes
	slots   [Slots]*Member
	keys    map[contract.NoiseKey]*Member

	prefixes bart.Table[place]
	domains  []string // by number
	grants   map[grant]struct{}
}

// place is whose a workload prefix is.
type place struct {
	slot   uint16
	domain uint16
}

// grant is a pair of domains: the number of the source above that of the
// destination.
type grant uint32

func grantOf(source, destination uint16) grant { return grant(source)<<16 | grant(destination) }

// Empty is a table without a network, which drops everything: the first one, and
// the one after a custody drop. prev is the table in force, nil only when there
// was none before in this process.
func Empty(prev *Table) *Table { return &Table{epoch: prev.Epoch() + 1} }

// Epoch numbers the tables of a process. It is greater than that of the table
// which this one was made to replace, and never 0.
func (t *Table) Epoch() uint64 {
	if t == nil {
		return 0
	}
	return t.epoch
}

// Network is the network that the table was compiled from, nil when it is empty.
// Nobody changes it.
func (t *Table) Network() *contract.VPNNetwork { return t.network }

// Revision is that of the network, 0 when the table is empty.
func (t *Table) Revision() int64 {
	if t.network == nil {
		return 0
	}
	return t.network.Revision
}

// ControlPrefix is the control prefix of the network, invalid when the table is
// empty.
func (t *Table) ControlPrefix() netip.Prefix { return t.control }

// HubAddress is the hub's own address within the control prefix, invalid when the
// table is empty.
func (t *Table) HubAddress() netip.Addr { return t.hub }

// Member returns the member of a membership, nil when it is not in force.
func (t *Table) Member(id ID) *Member {
	if id.slot >= Slots {
		return nil
	}
	if m := t.slots[id.slot]; m != nil && m.ID == id {
		return m
	}
	return nil
}

// MemberByKey returns the member that a static key belongs to, nil when there is
// none. It may have expired.
func (t *Table) MemberByKey(key contract.NoiseKey) *Member { return t.keys[key] }

// Members yields every member, ordered by node id.
func (t *Table) Members() iter.Seq[*Member] {
	return func(yield func(*Member) bool) {
		for i := range t.members {
			if !yield(&t.members[i]) {
				return
			}
		}
	}
}

// NextExpiry is how long it takes until the first of the members that have not
// expired does, and false when there is none. The wall clock can be set: whoever
// waits looks again from time to time.
func (t *Table) NextExpiry(now network.Instant) (wait time.Duration, ok bool) {
	for i := range t.members {
		d := t.members[i].Deadline
		if d.Reached(now) {
			continue
		}
		if left := d.Remaining(now); !ok || left < wait {
			wait, ok = left, true
		}
	}
	return wait, ok
}
