package simulate

import (
	"crypto/subtle"
	"slices"

	"serve.zone/relay/contract"
)

// session is one registration of a node and the binding it was answered with.
type session struct {
	generation  int64  // of the node's credential
	nonce       string // nodeInstanceNonce
	authorities []string
	epoch       int64
	binding     contract.Raw // the exact bytes, also of every replay
	socket      *relaySocket // that it was last registered over
}

// registerNode judges a node's registration in the order of contract §4 and
// §7.1: the offer, the shape, the bearer, the identity of the registration.
func (c *Cloudly) registerNode(s *relaySocket, body []byte) verdict {
	if v, ok := negotiate(c.offer, body); !ok {
		return v
	}
	request, err := readNodeRegistration(body)
	if err != nil {
		return refused(err)
	}
	if c.registered != s {
		return refuseText("no relay is verified on this socket")
	}
	n := c.cluster.known(request.NodeID)
	if n == nil || n.foreign || !n.credential.is(request.Credential) {
		return refuseText("the node's credential is not current")
	}
	held := n.find(request)
	if held != nil && !slices.Equal(held.authorities, request.Authorities) {
		return refuseText("the registration repeats another one with other resolved authorities")
	}
	if held == nil {
		held = c.mintSession(n, request)
	}
	held.socket = s
	c.renewSoon()
	return accepted(compose().value("session", held.binding).value("protocol", c.offer).end())
}

func (c NodeCredential) is(other NodeCredential) bool {
	return c.Generation == other.Generation && subtle.ConstantTimeCompare([]byte(c.Token), []byte(other.Token)) == 1
}

// find returns the session that an unchanged nonce and generation replay.
func (n *node) find(request NodeRegistration) *session {
	for _, held := range n.history {
		if held.generation == request.Credential.Generation && held.nonce == request.Nonce {
			return held
		}
	}
	return nil
}

// mintSession makes a new binding and epoch and fences the session before.
func (c *Cloudly) mintSession(n *node, request NodeRegistration) *session {
	n.epoch++
	minted := &session{
		generation: request.Credential.Generation, nonce: request.Nonce, authorities: request.Authorities, epoch: n.epoch,
		binding: compose().value("controller", c.cfg.Controller).text("clusterId", c.cfg.ClusterID).
			text("nodeId", n.id).text("runtimeNamespace", c.cfg.RuntimeNamespace).
			integer("credentialGeneration", request.Credential.Generation).integer("sessionEpoch", n.epoch).end(),
	}
	if len(n.history) >= maximumHistory {
		n.history = n.history[1:]
	}
	n.history = append(n.history, minted)
	n.current = minted
	return minted
}

// NodeState is what Cloudly holds of a node's session.
type NodeState struct {
	Session    contract.Raw // the binding, nil before the first registration
	Epoch      int64
	Generation int64
	Nonce      string
	// Connected says that the session was registered over the socket that carries
	// the relay now.
	Connected bool
}

// Node returns what is held of a node, and false for one that is not enrolled.
func (c *Cloudly) Node(id string) (NodeState, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.cluster.known(id)
	if n == nil {
		return NodeState{}, false
	}
	if n.current == nil {
		return NodeState{}, true
	}
	return NodeState{n.current.binding, n.current.epoch, n.current.generation, n.current.nonce, c.connected(n)}, true
}

func (c *Cloudly) connected(n *node) bool {
	return n.current != nil && c.registered != nil && n.current.socket == c.registered
}

// ConnectedNodes returns how many nodes are registered over the socket that
// carries the relay now.
func (c *Cloudly) ConnectedNodes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := 0
	for _, n := range c.cluster.nodes {
		if !n.removed && c.connected(n) {
			count++
		}
	}
	return count
}
