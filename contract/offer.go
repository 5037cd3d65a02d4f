package contract

// Offer is IProtocolOffer: what release a side speaks and the oldest it talks
// to (contract §4). There is one offer for each session kind that a deployable
// serves.
type Offer struct {
	InterfacesVersion  string // release version
	MinimumPeerVersion string // release version, same major, not above
}

func readOffer(x *Offer) valueReader { return x.shape() }

func (x *Offer) shape() valueReader {
	return object(
		required("interfacesVersion", text(&x.InterfacesVersion)),
		required("minimumPeerVersion", text(&x.MinimumPeerVersion)),
	)
}

// Validate returns one named reason for each violation. The relay judges its
// own offer with it before it binds a port.
func (x Offer) Validate() []string { return reasonsOf(x.judge) }

func (x Offer) judge(v *verdict) {
	v.releaseVersion("interfacesVersion", x.InterfacesVersion)
	v.releaseVersion("minimumPeerVersion", x.MinimumPeerVersion)
	if !IsReleaseVersion(x.InterfacesVersion) || !IsReleaseVersion(x.MinimumPeerVersion) {
		return
	}
	v.require(releaseMajor(x.MinimumPeerVersion) == releaseMajor(x.InterfacesVersion),
		"minimumPeerVersion", "is of another major than interfacesVersion")
	v.require(CompareReleaseVersions(x.MinimumPeerVersion, x.InterfacesVersion) <= 0,
		"minimumPeerVersion", "is above interfacesVersion")
}

// AppendJSON appends the offer in contract order.
func (x Offer) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("interfacesVersion", x.InterfacesVersion)
	w.text("minimumPeerVersion", x.MinimumPeerVersion)
	return w.end()
}

// ReadOffer reads the offer from the protocol key of a body and nothing else of
// it, so that negotiation comes before any other judgement of the message
// (contract §4, step 2). The body, which the carrier has bounded, must be a
// well-formed object; what its other members are called or hold is not judged.
func ReadOffer(body []byte) (Offer, error) {
	// Some bodies that carry an offer carry a bearer too, so no name is quoted.
	x, err := readAs[carrier]("protocol offer", body, secretBearing)
	return x.protocol, err
}

// carrier is any body of which only the protocol key is read.
type carrier struct{ protocol Offer }

func (x *carrier) shape() valueReader {
	return onlyMembers(required("protocol", readOffer(&x.protocol)))
}

func (x carrier) Validate() []string { return reasonsOf(x.judge) }

func (x carrier) judge(v *verdict) { v.in("protocol", x.protocol) }

// SessionKind labels the kinds of session for which an offer is made. OWN: the
// seeds name only kinds the relay has no part in. The labels never travel.
type SessionKind string

// The session kinds in which the relay states or judges an offer.
const (
	// CloudlyClientSession covers registerCloudlyClientSession and
	// registerClusterRelay, where the relay is the client.
	CloudlyClientSession SessionKind = "cloudlyClientSession"
	// ClusterIngressSession covers registerClusterIngress, where the relay is
	// the server of the first hop.
	ClusterIngressSession SessionKind = "clusterIngress"
)
