package contract

// ClusterRelay is IClusterRelay, the block of a cluster document by which a
// cluster is relayed (contract §5.4).
type ClusterRelay struct {
	Origin string // canonical https origin
}

func (x *ClusterRelay) shape() valueReader {
	return object(required("origin", text(&x.Origin)))
}

// Validate returns one named reason for each violation.
func (x ClusterRelay) Validate() []string { return reasonsOf(x.judge) }

func (x ClusterRelay) judge(v *verdict) { v.relayOrigin("origin", x.Origin) }

// AppendJSON appends the block.
func (x ClusterRelay) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("origin", x.Origin)
	return w.end()
}

// CertificateDomainName returns the name that the relay's certificate is issued
// for: the hostname of the origin. False means that there is none, because the
// origin is not valid or names an address literal.
func (x ClusterRelay) CertificateDomainName() (string, bool) {
	origin, ok := ParseOrigin(x.Origin)
	if !ok || origin.Scheme != "https" || origin.IsAddress() {
		return "", false
	}
	return origin.Host, true
}
