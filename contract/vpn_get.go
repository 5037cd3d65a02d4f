package contract

// GetVPNNetworkAnswer is the accepted answer of getClusterVpnNetwork, whose
// request is Empty (contract §10.4).
type GetVPNNetworkAnswer struct {
	Network *VPNNetwork // nil while the cluster has none, which is a fact
}

// ReadGetVPNNetworkAnswer reads an accepted answer. The network in it is exact.
func ReadGetVPNNetworkAnswer(body []byte) (GetVPNNetworkAnswer, error) {
	return readAs[GetVPNNetworkAnswer](MethodGetVPNNetwork+" answer", body, 0)
}

func (x *GetVPNNetworkAnswer) shape() valueReader {
	return answer(required("network", nullable(&x.Network, readVPNNetwork)))
}

// Validate returns one named reason for each violation.
func (x GetVPNNetworkAnswer) Validate() []string { return reasonsOf(x.judge) }

func (x GetVPNNetworkAnswer) judge(v *verdict) {
	if x.Network != nil {
		v.in("network", x.Network)
	}
}

// AppendJSON appends the answer body.
func (x GetVPNNetworkAnswer) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	if x.Network == nil {
		w.null("network")
	} else {
		w.value("network", x.Network)
	}
	return w.end()
}
