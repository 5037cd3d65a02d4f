package contract

// RouteTableChanged is the request of pushClusterIngressRouteTableChanged: a
// hint that carries the revision alone and nothing secret (contract §11.1). It
// is answered with an empty body; a lost or repeated hint costs nothing.
type RouteTableChanged struct {
	Revision int64 // counter
}

// ReadRouteTableChanged reads the request body.
func ReadRouteTableChanged(body []byte) (RouteTableChanged, error) {
	return readAs[RouteTableChanged](MethodPushIngressRouteTableChanged+" request", body, 0)
}

func (x *RouteTableChanged) shape() valueReader {
	return object(required("revision", integer(&x.Revision)))
}

// Validate returns one named reason for each violation.
func (x RouteTableChanged) Validate() []string { return reasonsOf(x.judge) }

func (x RouteTableChanged) judge(v *verdict) { v.counter("revision", x.Revision) }

// AppendJSON appends the request body.
func (x RouteTableChanged) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.integer("revision", x.Revision)
	return w.end()
}
