package simulate

import (
	"crypto/ecdh"
	"encoding/base64"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket/envelope"
)

// nodeRequest judges a request that a node sent, against Cloudly's own record
// of the node's session: a serialized session is never authentication (contract
// §7.2).
func (c *Cloudly) nodeRequest(s *relaySocket, method string, body []byte, facts *envelope.Body) verdict {
	if c.registered != s {
		return refuseText("no relay is verified on this socket")
	}
	id := string(facts.SessionNodeID)
	if facts.Session == nil {
		// Bound to the current session without naming it (contract O39).
		if !facts.NodeIDs.Uniform {
			return refuseText("the request names no session and not one node")
		}
		id = string(facts.NodeIDs.First)
	}
	n := c.cluster.known(id)
	if n == nil || n.current == nil {
		return refuseText("the session is not known")
	}
	if facts.Session != nil && !contract.EqualJSON(facts.Session, n.current.binding) {
		return refuseText("the session is not the node's current one")
	}
	if n.current.socket != s {
		c.violated(UnconfirmedSession, s.number, method)
		return refuseText("the session is not registered over this socket")
	}
	if answer := c.handlers[method]; answer != nil {
		return handled(answer(id, body))
	}
	switch method {
	case "reportRuntimeAssignmentLogs":
		return c.takeLogs(s, n, body)
	case "getRuntimeManagedVpnCredential":
		return c.vpnCredential(n, body)
	}
	return accepted(compose().text("status", "accepted").end())
}

// vpnCredential answers getRuntimeManagedVpnCredential from the registered hub
// and the network (contract §7.4).
func (c *Cloudly) vpnCredential(n *node, body []byte) verdict {
	o := readObject("getRuntimeManagedVpnCredential request", body, []string{"session", "projection"})
	if err := o.err(); err != nil {
		return refused(err)
	}
	hub := c.registrations[len(c.registrations)-1].Relay.VPNHub
	if hub == nil {
		return refuseText("relay-vpn-hub-absent: the relay registered no hub")
	}
	if n.projection == nil || !contract.EqualCanonical(o.members["projection"], n.projection.Reference.AppendJSON(nil)) {
		return refuseText("projection: is not the node's current one")
	}
	authority, expires := "managed-"+c.cfg.ClusterID, n.projection.DNS.ExpiresAt
	if network := c.cluster.network; network != nil {
		authority = network.AuthorityID
		for _, member := range network.Nodes {
			if member.NodeID == n.id {
				expires = member.ExpiresAt
			}
		}
	}
	return accepted(compose().value("session", o.members["session"]).value("projection", o.members["projection"]).
		text("transport", "quic").value("hub", compose().text("address", hub.Address).integer("port", hub.QUICPort).end()).
		text("authorityId", authority).text("serverPublicKey", hub.PublicKey).
		value("clientKeyPair", keyPair(n.vpnKey)).integer("expiresAt", expires).end())
}

func keyPair(key *ecdh.PrivateKey) contract.Raw {
	encode := base64.StdEncoding.EncodeToString
	return compose().text("publicKey", encode(key.PublicKey().Bytes())).text("privateKey", encode(key.Bytes())).end()
}
