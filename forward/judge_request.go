package forward

import (
	"bytes"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket/envelope"
)

// state is where the room stands when a request is judged.
type state struct {
	attached bool // a registration of the relay stands, on the socket concerned
	draining bool
}

// holder is what is known of a node or a socket when a request is judged.
type holder struct {
	node      string // the node that the socket belongs to, bound or asked for; "" for none
	session   []byte // of the binding held; nil when there is none
	confirmed bool   // the binding was obtained from the Cloudly session that stands
	foreign   bool   // the socket has a role other than a node's
}

// judgeNodeRequest decides whether a node's request passes to Cloudly (contract
// §7.1, §7.2, O39; design §4, O9). h is the socket's; its session is that of a
// binding this very socket holds. It returns nil or the refusal.
func judgeNodeRequest(rt route, body *envelope.Body, h holder, s state) *contract.Refusal {
	switch {
	case h.foreign:
		return refusal(contract.RelayMethodNotForwarded, "this socket is not a node's")
	case body.Streams > 0:
		return refusal(contract.RelayMethodNotForwarded, "streams do not pass")
	case s.draining:
		return refusal(contract.RelayNotReady, "the relay is about to stop")
	case !s.attached:
		return refusal(contract.RelayNotReady, "there is no session to Cloudly")
	case rt.registers:
		return judgeRegistration(body, h)
	case h.session == nil:
		return refusal(contract.RelayNodeSessionNotCurrent, "this socket holds no session")
	case !h.confirmed:
		return refusal(contract.RelayNotReady, "the session to Cloudly is new: register again")
	case body.Session != nil:
		return judgeSession(body, h)
	case rt.needsSession:
		return refusal(contract.RelayNodeSessionNotCurrent, "session is missing")
	case !body.NodeIDs.Uniform || string(body.NodeIDs.First) != h.node:
		return refusal(contract.RelayNodeSessionNotCurrent,
			"without a session, at least one nodeId is needed and each must be this socket's node")
	}
	return nil
}

// judgeRegistration reads nodeId and nothing else (contract §7.1 rules 1 and 2).
func judgeRegistration(body *envelope.Body, h holder) *contract.Refusal {
	switch {
	case !contract.IsNodeID(string(body.NodeID)):
		return refusal(contract.RelayNodeNotCarried, "nodeId is not a node id")
	case h.node != "" && h.node != string(body.NodeID):
		return refusal(contract.RelayNodeSessionNotCurrent, "this socket belongs to another node")
	}
	return nil
}

// judgeSession holds the session of a body to the binding held (contract §7.2;
// design §4, row §7.2).
func judgeSession(body *envelope.Body, h holder) *contract.Refusal {
	switch {
	case string(body.SessionNodeID) != h.node:
		return refusal(contract.RelayNodeSessionNotCurrent, "session.nodeId is not the node of this binding")
	case !sameSession(body.Session, h.session):
		return refusal(contract.RelayNodeSessionNotCurrent, "session is not the one of this binding")
	}
	return nil
}

// sameSession reports whether a session is the one held: the same bytes, or else
// the same JSON value.
func sameSession(got, held []byte) bool {
	if len(got) > maximumSession {
		return bytes.Equal(got, held)
	}
	return contract.EqualJSON(got, held)
}

func refusal(name contract.RefusalName, reason string) *contract.Refusal {
	return &contract.Refusal{Name: name, Reason: reason}
}
