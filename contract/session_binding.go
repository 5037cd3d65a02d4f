package contract

// SessionBinding is what the relay reads of the IRuntimeSessionBinding that a
// node obtained, and the binding itself as the bytes that came. Its other
// members belong to Cloudly and the node (contract §7.1).
type SessionBinding struct {
	ClusterID string    // canonical identifier, issued by Cloudly
	Scope     NodeScope // compared with that of escrowed renewals
	// Received is the whole session as it came. It is what a request's session
	// is compared with, and what the relay delivers renewals under.
	Received Raw
}

// controllerKindCloudly is the one kind of controller whose sessions pass a
// relay; a "onebox" drives its node over a local socket (contract §7.1).
const controllerKindCloudly = "cloudly"

// ReadSessionBinding reads the session out of an accepted answer of
// registerPalletRuntimeSession, given the node id that the request named
// (contract §7.1 rule 4). The answer is forwarded, so nothing else of it is
// judged. Within the session, names are unique at every depth and "__proto__"
// is no name of it or of its controller (design §4, O1).
func ReadSessionBinding(answer []byte, nodeID string) (SessionBinding, error) {
	x, err := readAs[sessionAnswer]("registerPalletRuntimeSession answer", answer, secretBearing)
	if err != nil {
		return SessionBinding{}, err
	}
	if x.session.Scope.NodeID != nodeID {
		return SessionBinding{}, &InvalidError{
			What:    "registerPalletRuntimeSession answer",
			Reasons: []string{"session.nodeId: is not the node that registered"},
		}
	}
	return x.session, nil
}

// sessionAnswer is an accepted answer of which only the session is read.
type sessionAnswer struct {
	session        SessionBinding
	controllerKind string
}

func (x *sessionAnswer) shape() valueReader {
	s := &x.session
	return onlyMembers(required("session", kept(&s.Received, openObject(
		required("controller", kept(&s.Scope.Controller, openObject(
			required("kind", text(&x.controllerKind)),
			optional("__proto__", forbidden),
		))),
		required("clusterId", text(&s.ClusterID)),
		required("nodeId", text(&s.Scope.NodeID)),
		required("runtimeNamespace", text(&s.Scope.RuntimeNamespace)),
		optional("__proto__", forbidden),
	))))
}

func (x sessionAnswer) Validate() []string { return reasonsOf(x.judge) }

func (x sessionAnswer) judge(v *verdict) {
	v.enter("session")
	v.enter("controller")
	v.require(x.controllerKind == controllerKindCloudly, "kind", "is not cloudly")
	v.leave()
	v.identifier("clusterId", x.session.ClusterID)
	v.nodeID("nodeId", x.session.Scope.NodeID)
	v.identifier("runtimeNamespace", x.session.Scope.RuntimeNamespace)
	v.leave()
}

// AppendJSON appends the session as it came.
func (x SessionBinding) AppendJSON(dst []byte) []byte { return x.Received.AppendJSON(dst) }

// forbidden refuses a member by its name alone.
func forbidden(r *reader) {
	r.add("is not allowed")
	r.skip()
}
