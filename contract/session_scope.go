package contract

// NodeScope is the scope of a node: whose controller drives which node under
// which namespace. A session and a DNS lease renewal both carry it
// (contract §9.1).
type NodeScope struct {
	Controller       Raw    // an object; its inner members are opaque
	NodeID           string // node id
	RuntimeNamespace string // canonical identifier
}

// Equal reports whether two scopes are the same, their controllers by canonical
// content. A controller without a canonical form equals none.
func (x NodeScope) Equal(other NodeScope) bool {
	return x.NodeID == other.NodeID && x.RuntimeNamespace == other.RuntimeNamespace &&
		EqualCanonical(x.Controller, other.Controller)
}
