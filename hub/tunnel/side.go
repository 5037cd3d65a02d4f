package tunnel

// Side is an end of a tunnel. As a byte on the wire and in derivations it also
// names a direction: that of what this end sends.
type Side uint8

// The ends.
const (
	Node Side = 1 // dials, and is Noise's initiator
	Hub  Side = 2 // listens, and is Noise's responder
)

// String returns "node" or "hub".
func (s Side) String() string {
	switch s {
	case Node:
		return "node"
	case Hub:
		return "hub"
	}
	return "no side"
}

// other returns the end across.
func (s Side) other() Side { return Node + Hub - s }
