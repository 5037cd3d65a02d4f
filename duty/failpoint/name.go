package failpoint

// Variable names, in the environment of a program with the tag, the Unix socket on
// which a test waits.
const Variable = "FAILPOINTS_SOCKET"

// Name is a failpoint: a place, a kind of connection, or the clock.
type Name string

// Connections, for Dial and Listen. They can be cut and stalled.
const (
	// CloudlyConnection is the connection to Cloudly.
	CloudlyConnection Name = "failpoint-cloudly-connection"
	// NodeConnection are those that nodes and ingresses opened.
	NodeConnection Name = "failpoint-node-connection"
)

// Clock is the wall clock of the whole relay, for Wall. It can be set.
const Clock Name = "failpoint-wall-clock"

// Places, for Reach. Whoever comes there can be held.
const (
	// RegistrationAnswered: the answer to the relay's registration was read, and the
	// session does not know it yet. Held is one step of the handshake.
	RegistrationAnswered Name = "failpoint-registration-answered"
	// LossSeen: the session is over, and no duty was told. Held is the session's loop.
	LossSeen Name = "failpoint-session-loss-seen"
	// CloudlyRequestRead: a request of Cloudly was read, and nobody has it yet. Held
	// is the reader of the socket to Cloudly.
	CloudlyRequestRead Name = "failpoint-cloudly-request-read"
	// NodeRequestRead is the same of a node or an ingress. Held is the reader of its
	// socket.
	NodeRequestRead Name = "failpoint-node-request-read"
	// NetworkCompiled: a network was judged and compiled, and the one before is in
	// force. Held is whoever takes networks over.
	NetworkCompiled Name = "failpoint-network-compiled"
	// NetworkInForce: a network is in force, and QUIC may hold what it forbids. Held is
	// as for NetworkCompiled.
	NetworkInForce Name = "failpoint-network-in-force"
	// NetworkFenced: what QUIC may hold of the network before is waited for. Held is
	// that wait, and so the answer idle.
	NetworkFenced Name = "failpoint-network-fenced"
	// MemberConfirmed: a node has confirmed its handshake, and has not taken its
	// member's place. Held is its connection.
	MemberConfirmed Name = "failpoint-member-confirmed"
	// RenewalDue: a renewal is to be released to a node, and was not sent. Held is its
	// push.
	RenewalDue Name = "failpoint-renewal-due"
)

// Names returns every failpoint.
func Names() []Name {
	return []Name{
		CloudlyConnection, NodeConnection, Clock,
		RegistrationAnswered, LossSeen, CloudlyRequestRead, NodeRequestRead,
		NetworkCompiled, NetworkInForce, NetworkFenced, MemberConfirmed, RenewalDue,
	}
}
