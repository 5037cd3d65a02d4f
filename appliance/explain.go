package appliance

import (
	"net/netip"

	"serve.zone/relay/hub/policy"
	"serve.zone/relay/operator"
)

// explain answers an operator out of the hub, which there is.
func (a *Appliance) explain(from, to netip.Addr) operator.Explanation {
	x := a.hub.Explain(from, to)
	shown := operator.Explanation{
		Admitted: x.Action != policy.Drop, Action: x.Action.String(), Revision: x.Revision,
		From: explained(x.From, x.FromConnected), To: explained(x.To, x.ToConnected),
		Suspended: x.Suspended, Sentence: x.Sentence,
	}
	if x.Action == policy.Drop {
		shown.Reason = x.Reason.String()
	}
	return shown
}

func explained(e policy.End, connected bool) operator.End {
	shown := operator.End{Address: e.Address.String(), Node: e.NodeID, Domain: e.Domain, Connected: connected}
	if e.Prefix.IsValid() {
		shown.Prefix = e.Prefix.String()
	}
	return shown
}
