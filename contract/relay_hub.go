package contract

// VPNHub is IClusterRelayVpnHub: the hub as the relay bound it (contract §5.3).
// Whether the address lies inside the address plan's hub prefix is Cloudly's to
// check; the relay does not hold the plan.
type VPNHub struct {
	PublicKey string // canonical Noise key
	Address   string // unicast IPv4 literal
	QUICPort  int64  // 1 to 65535, UDP
}

func readVPNHub(x *VPNHub) valueReader { return x.shape() }

func (x *VPNHub) shape() valueReader {
	return object(
		required("publicKey", text(&x.PublicKey)),
		required("address", text(&x.Address)),
		required("quicPort", integer(&x.QUICPort)),
	)
}

// Validate returns one named reason for each violation.
func (x VPNHub) Validate() []string { return reasonsOf(x.judge) }

func (x VPNHub) judge(v *verdict) {
	v.noiseKey("publicKey", x.PublicKey)
	v.require(IsUnicastIPv4(x.Address), "address", "is not a unicast ipv4 literal")
	v.port("quicPort", x.QUICPort)
}

// AppendJSON appends the hub.
func (x VPNHub) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("publicKey", x.PublicKey)
	w.text("address", x.Address)
	w.integer("quicPort", x.QUICPort)
	return w.end()
}
