package contract

// RelayRegistrationRequest is IRegisterClusterRelayRequest, the request of
// registerClusterRelay (contract §5.3). It states what the relay bound.
type RelayRegistrationRequest struct {
	Protocol             Offer
	Relay                RelayFacts
	RegistrationSequence int64 // count, 0 at process start
}

// RelayFacts are the facts of one relay process.
type RelayFacts struct {
	Version       string  // release version of the relay build (contract O21)
	NodeID        string  // the node that the relay runs on
	ListenAddress string  // IPv4 literal, published as the relay's A record
	ListenPort    int64   // 1 to 65535, the port really bound
	VPNHub        *VPNHub // nil when the relay serves no hub
}

const relayRegistrationRequest = "registerClusterRelay request"

// ReadRelayRegistrationRequest reads the request body. A server reads and
// negotiates the offer first, see ReadOffer.
func ReadRelayRegistrationRequest(body []byte) (RelayRegistrationRequest, error) {
	return readAs[RelayRegistrationRequest](relayRegistrationRequest, body, 0)
}

// ReadLoopbackRelayRegistrationRequest reads the request body as Cloudly never
// does: it admits a loopback listen address, for relays under test.
func ReadLoopbackRelayRegistrationRequest(body []byte) (RelayRegistrationRequest, error) {
	x, err := readAs[loopbackRelayRegistration](relayRegistrationRequest, body, 0)
	return x.RelayRegistrationRequest, err
}

func (x *RelayRegistrationRequest) shape() valueReader {
	return object(
		required("protocol", readOffer(&x.Protocol)),
		required("relay", readRelayFacts(&x.Relay)),
		required("registrationSequence", integer(&x.RegistrationSequence)),
	)
}

func readRelayFacts(x *RelayFacts) valueReader {
	return object(
		required("version", text(&x.Version)),
		required("nodeId", text(&x.NodeID)),
		required("listenAddress", text(&x.ListenAddress)),
		required("listenPort", integer(&x.ListenPort)),
		optional("vpnHub", pointer(&x.VPNHub, readVPNHub)),
	)
}

// Validate returns one named reason for each violation. A loopback and a
// link-local listen address are refused each by its own name.
func (x RelayRegistrationRequest) Validate() []string { return reasonsOf(x.judge) }

// ValidateLoopback is Validate for a relay under test: it admits a loopback
// listen address.
func (x RelayRegistrationRequest) ValidateLoopback() []string {
	return loopbackRelayRegistration{x}.Validate()
}

func (x RelayRegistrationRequest) judge(v *verdict) {
	x.judgeWith(v, JudgeListenAddress(x.Relay.ListenAddress))
}

func (x RelayRegistrationRequest) judgeWith(v *verdict, fault AddressFault) {
	v.in("protocol", x.Protocol)
	v.enter("relay")
	x.Relay.judgeWith(v, fault)
	v.leave()
	v.count("registrationSequence", x.RegistrationSequence)
}

func (x RelayFacts) judgeWith(v *verdict, fault AddressFault) {
	v.releaseVersion("version", x.Version)
	v.nodeID("nodeId", x.NodeID)
	v.require(fault == "", "listenAddress", string(fault))
	v.port("listenPort", x.ListenPort)
	if x.VPNHub != nil {
		v.in("vpnHub", *x.VPNHub)
	}
}

// loopbackRelayRegistration is a registration in which loopback is admitted.
type loopbackRelayRegistration struct{ RelayRegistrationRequest }

// Validate returns one named reason for each violation.
func (x loopbackRelayRegistration) Validate() []string { return reasonsOf(x.judge) }

func (x loopbackRelayRegistration) judge(v *verdict) {
	fault := JudgeListenAddress(x.Relay.ListenAddress)
	if fault == AddressLoopback {
		fault = ""
	}
	x.judgeWith(v, fault)
}

// AppendJSON appends the request body.
func (x RelayRegistrationRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("protocol", x.Protocol)
	w.value("relay", x.Relay)
	w.integer("registrationSequence", x.RegistrationSequence)
	return w.end()
}

// AppendJSON appends the facts.
func (x RelayFacts) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("version", x.Version)
	w.text("nodeId", x.NodeID)
	w.text("listenAddress", x.ListenAddress)
	w.integer("listenPort", x.ListenPort)
	if x.VPNHub != nil {
		w.value("vpnHub", *x.VPNHub)
	}
	return w.end()
}
