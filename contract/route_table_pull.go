package contract

// IngressRouteTableRequest is the request of getClusterIngressRouteTable
// (contract §11.3). getClusterRouteTable is asked with an empty body.
type IngressRouteTableRequest struct {
	// KnownRevision is the revision the ingress has applied, a counter; nil,
	// null on the wire, when it has applied none.
	KnownRevision *int64
}

// ReadIngressRouteTableRequest reads the request body.
func ReadIngressRouteTableRequest(body []byte) (IngressRouteTableRequest, error) {
	return readAs[IngressRouteTableRequest](MethodGetIngressRouteTable+" request", body, 0)
}

func (x *IngressRouteTableRequest) shape() valueReader {
	return object(required("knownRevision", nullable(&x.KnownRevision, integer)))
}

// Validate returns one named reason for each violation.
func (x IngressRouteTableRequest) Validate() []string { return reasonsOf(x.judge) }

func (x IngressRouteTableRequest) judge(v *verdict) {
	if x.KnownRevision != nil {
		v.counter("knownRevision", *x.KnownRevision)
	}
}

// AppendJSON appends the request body.
func (x IngressRouteTableRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	if x.KnownRevision == nil {
		w.null("knownRevision")
	} else {
		w.integer("knownRevision", *x.KnownRevision)
	}
	return w.end()
}

// RouteTableAnswer is the answer of getClusterRouteTable and of
// getClusterIngressRouteTable (contract §11.1, §11.3). It is secret-bearing.
type RouteTableAnswer struct {
	// Table is nil, null on the wire, when Cloudly has computed none yet. That
	// is a fact and not an empty table.
	Table *RouteTable
}

// Zero overwrites the table.
func (x RouteTableAnswer) Zero() {
	if x.Table != nil {
		x.Table.Zero()
	}
}

// ReadRouteTableAnswer reads the answer body of the named method. No reason
// quotes a value or an unknown member's name.
func ReadRouteTableAnswer(method string, body []byte) (RouteTableAnswer, error) {
	return readAs[RouteTableAnswer](method+" answer", body, secretBearing)
}

func (x *RouteTableAnswer) shape() valueReader {
	return answer(required("table", nullable(&x.Table, readRouteTable)))
}

// Validate returns one named reason for each violation.
func (x RouteTableAnswer) Validate() []string { return reasonsOf(x.judge) }

func (x RouteTableAnswer) judge(v *verdict) {
	if x.Table != nil {
		v.in("table", *x.Table)
	}
}

// AppendJSON appends the answer body, the table as it came.
func (x RouteTableAnswer) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	if x.Table == nil {
		w.null("table")
	} else {
		w.value("table", *x.Table)
	}
	return w.end()
}
