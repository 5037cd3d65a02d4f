package simulate

import (
	"slices"

	"serve.zone/relay/contract"
)

// NodeRegistration is the request of registerPalletRuntimeSession as these peers
// speak it. OWN: the seeds spell nodeId, nodeInstanceNonce, resolvedAuthorities
// and protocol (contract §7.1). It is secret.
type NodeRegistration struct {
	NodeID      string
	Credential  NodeCredential
	Nonce       string   // nodeInstanceNonce, a canonical UUID
	Authorities []string // resolvedAuthorities, sorted
	Offer       contract.Offer
}

// AppendJSON appends the request body.
func (x NodeRegistration) AppendJSON(dst []byte) []byte {
	return append(dst, compose().text("nodeId", x.NodeID).value("credential", x.Credential).
		text("nodeInstanceNonce", x.Nonce).value("resolvedAuthorities", textList(x.Authorities)).
		value("protocol", x.Offer).end()...)
}

// workloadAuthorities are data.runtimeWorkloadAuthorities, sorted (contract §2.2).
var workloadAuthorities = []string{"network", "secrets", "storage"}

func readNodeRegistration(body []byte) (NodeRegistration, error) {
	const what = contract.MethodRegisterPalletRuntimeSession + " request"
	o := readObject(what, body, []string{"nodeId", "credential", "nodeInstanceNonce", "resolvedAuthorities", "protocol"})
	x := NodeRegistration{
		NodeID:      o.text("nodeId", contract.IsNodeID, "is not a node id"),
		Nonce:       o.text("nodeInstanceNonce", contract.IsInstanceNonce, "is not a canonical lower-case uuid"),
		Authorities: o.texts("resolvedAuthorities"),
	}
	for i, authority := range x.Authorities {
		if !slices.Contains(workloadAuthorities, authority) || i > 0 && x.Authorities[i-1] >= authority {
			o.refuse("resolvedAuthorities", "is not a sorted subset of the workload authorities")
			break
		}
	}
	if raw := o.members["credential"]; raw != nil {
		held := readObject(what, raw, []string{"generation", "token"})
		x.Credential = NodeCredential{
			Generation: held.counter("generation"),
			Token:      held.text("token", func(s string) bool { return s != "" }, "is not a text"),
		}
		for _, reason := range held.reasons {
			o.reasons = append(o.reasons, "credential."+reason)
		}
	}
	if err := o.err(); err != nil {
		return NodeRegistration{}, err
	}
	return x, nil
}
