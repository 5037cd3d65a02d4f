package network

import (
	"strings"

	"serve.zone/relay/contract"
)

// Fate is what becomes of one member when a network takes the place of another.
type Fate uint8

// The fates.
const (
	Continues      Fate = iota // its live session stays; deadline, prefixes and grants move under it
	Joined                     // it was no member
	Withdrawn                  // it is a member no more
	KeyChanged                 // it is another member under the same node id: the session ends
	AddressChanged             // the same with its key unchanged: its control address, the prefix or the authority is another
	Fates                      // how many there are
)

var fateNames = [Fates]string{
	Continues: "continues", Joined: "joined", Withdrawn: "withdrawn", KeyChanged: "key-changed",
	AddressChanged: "address-changed",
}

// String returns the name of the fate.
func (f Fate) String() string { return fateNames[f] }

// Ends reports whether a session that the member has must end.
func (f Fate) Ends() bool { return f == Withdrawn || f == KeyChanged || f == AddressChanged }

// Passage is the fate of one member.
type Passage struct {
	NodeID     string
	Fate       Fate
	Held, Next int // its place in Nodes of either network, -1 where it has none
}

// Compare returns the fate of every member of either network, sorted by node id
// (contract §10.5). Nil is the network of an empty hub. Expiry is no fate: a
// Deadline says it, in whichever network.
//
// A member is its node id, its key and its control address together, under one
// authority and one control prefix: a tunnel is bound to all of them. A key that
// moved to another node id ends the membership there and begins one here.
func Compare(held, next *contract.VPNNetwork) []Passage {
	var from, to []contract.VPNNode
	if held != nil {
		from = held.Nodes
	}
	if next != nil {
		to = next.Nodes
	}
	bound := held != nil && next != nil &&
		held.AuthorityID == next.AuthorityID && held.ControlPrefix == next.ControlPrefix

	passages := make([]Passage, 0, max(len(from), len(to)))
	for i, j := 0, 0; i < len(from) || j < len(to); {
		switch order := compareAt(from, i, to, j); {
		case order < 0:
			passages = append(passages, Passage{NodeID: from[i].NodeID, Fate: Withdrawn, Held: i, Next: -1})
			i++
		case order > 0:
			passages = append(passages, Passage{NodeID: to[j].NodeID, Fate: Joined, Held: -1, Next: j})
			j++
		default:
			fate := fateOf(&from[i], &to[j], bound)
			passages = append(passages, Passage{NodeID: to[j].NodeID, Fate: fate, Held: i, Next: j})
			i, j = i+1, j+1
		}
	}
	return passages
}

// compareAt orders the members that a walk over two lists stands at; the end of
// a list comes after everything.
func compareAt(from []contract.VPNNode, i int, to []contract.VPNNode, j int) int {
	switch {
	case i == len(from):
		return 1
	case j == len(to):
		return -1
	}
	return strings.Compare(from[i].NodeID, to[j].NodeID)
}

// fateOf is the fate of a node that both networks carry. bound tells whether they
// have one authority and one control prefix.
func fateOf(held, next *contract.VPNNode, bound bool) Fate {
	switch {
	case held.PublicKey != next.PublicKey:
		return KeyChanged
	case held.ControlAddress != next.ControlAddress || !bound:
		return AddressChanged
	}
	return Continues
}
