package simulate

import (
	"net/netip"
	"time"

	"serve.zone/relay/contract"
)

// AcceptedRegistration is the record that an accepted registerClusterRelay
// wrote, and where it came from.
type AcceptedRegistration struct {
	Socket     int
	At         time.Time
	Sequence   int64
	Relay      contract.RelayFacts
	Offer      contract.Offer
	Credential contract.Reference
	Reference  contract.Reference // of this record
}

// registerRelay judges registerClusterRelay in the order of contract §4 and
// §5.3: the offer, the shape, the socket's credential, Cloudly's records of the
// cluster and the node, the sequence.
func (c *Cloudly) registerRelay(s *relaySocket, body []byte) verdict {
	if v, ok := negotiate(c.offer, body); !ok {
		return v
	}
	read := contract.ReadRelayRegistrationRequest
	if c.cfg.AllowLoopback {
		read = contract.ReadLoopbackRelayRegistrationRequest
	}
	request, err := read(body)
	if err != nil {
		return refused(err)
	}
	if v, ok := c.fence(s); !ok {
		return v
	}
	if v, ok := c.admitRelay(s, request); !ok {
		return v
	}
	if hub := request.Relay.VPNHub; hub != nil && !c.inPlan(hub.Address) {
		return refuseText("relay.vpnHub.address: is not inside the hub prefix of the address plan")
	}
	return accepted(c.acceptRelay(s, request))
}

// admitRelay judges by the records that the undispatched refusals are about
// (contract §6.1).
func (c *Cloudly) admitRelay(s *relaySocket, request contract.RelayRegistrationRequest) (verdict, bool) {
	node := c.cluster.known(request.Relay.NodeID)
	switch {
	case c.cluster.origin == "":
		return refuseNamed(contract.RelayClusterNotEnabled, "nobody enabled the relay of this cluster"), false
	case node == nil:
		return refuseNamed(contract.RelayNodeUnknown, "relay.nodeId names no enrolled node"), false
	case node.foreign:
		return refuseNamed(contract.RelayNodeForeign, "relay.nodeId is a node of another cluster"), false
	case request.RegistrationSequence <= s.sequence:
		return refuseNamed(contract.RelaySequenceNotAdvancing, "registrationSequence does not increase on this socket"), false
	}
	return verdict{}, true
}

func (c *Cloudly) inPlan(address string) bool {
	a, ok := contract.ParseIPv4(address)
	return c.cfg.HubPrefix == (netip.Prefix{}) || ok && c.cfg.HubPrefix.Contains(a)
}

// acceptRelay writes the record and makes the socket the one that carries the
// relay.
func (c *Cloudly) acceptRelay(s *relaySocket, request contract.RelayRegistrationRequest) contract.RelayRegistrationAnswer {
	now := c.wall()
	c.accepted++
	record := compose().text("id", "registration-"+c.cfg.ClusterID).text("cluster", c.cfg.ClusterID).
		integer("generation", c.accepted).value("relay", request.Relay).
		integer("registrationSequence", request.RegistrationSequence).
		integer("acceptedAt", now.UnixMilli()).value("credential", c.credential.reference).end()
	accepted := AcceptedRegistration{
		Socket: s.number, At: now, Sequence: request.RegistrationSequence, Relay: request.Relay, Offer: request.Protocol,
		Credential: c.credential.reference,
		Reference:  reference(contract.AcceptedRegistrationDigest, "registration-"+c.cfg.ClusterID, c.accepted, record),
	}
	if len(c.registrations) >= maximumRegistrations {
		c.registrations = c.registrations[1:]
	}
	c.registrations = append(c.registrations, accepted)
	s.sequence, s.wasAccepted, s.undispatched = request.RegistrationSequence, true, time.Time{}
	c.registered = s
	c.renewSoon()
	return contract.RelayRegistrationAnswer{
		Origin: c.cluster.origin, Protocol: c.offer,
		Credential: accepted.Credential, AcceptedRegistration: accepted.Reference,
	}
}

// Registrations returns the accepted registrations, oldest first.
func (c *Cloudly) Registrations() []AcceptedRegistration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]AcceptedRegistration(nil), c.registrations...)
}
