package forward

import (
	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket/envelope"
)

// judgePush decides whether a request of Cloudly passes to the node that its
// session names (contract §7.3; design §4, O9). h is that node's, without a
// session when the node is not carried. It returns nil or the refusal.
func judgePush(body *envelope.Body, h holder, s state) *contract.Refusal {
	switch {
	case body.Streams > 0:
		return refusal(contract.RelayMethodNotForwarded, "streams do not pass")
	case s.draining:
		return refusal(contract.RelayNotReady, "the relay is about to stop")
	case !s.attached:
		return refusal(contract.RelayNotReady, "no registration of this relay stands on this socket")
	case body.SessionNodeID == nil:
		return refusal(contract.RelayNodeSessionNotCurrent, "session.nodeId is missing")
	case h.session == nil:
		return refusal(contract.RelayNodeNotCarried, "the node has no session here")
	case !h.confirmed:
		return refusal(contract.RelayNodeSessionNotCurrent, "the node has not registered since Cloudly's session is new")
	}
	return judgeSession(body, h)
}
