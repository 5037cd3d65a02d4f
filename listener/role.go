package listener

// The roles of a socket (contract §7.1, §11.3). One that is Unbound becomes one
// of the others by an accepted registration, and stays it.
const (
	Unbound = "unbound"
	Node    = "node"
	Ingress = "ingress"
)

type role uint8

const (
	unbound role = iota
	node
	ingress
	roles // how many there are
)

var roleNames = [roles]string{unbound: Unbound, node: Node, ingress: Ingress}

// String returns the role's name.
func (r role) String() string { return roleNames[r] }

// roleNamed finds a role by its name.
func roleNamed(name string) (role, bool) {
	for r := range roles {
		if roleNames[r] == name {
			return r, true
		}
	}
	return 0, false
}
