package contract

// PushRouteTableRequest is the request of pushClusterRouteTable (contract
// §11.1). It is secret-bearing.
type PushRouteTableRequest struct {
	Table RouteTable
}

// Zero overwrites the table.
func (x PushRouteTableRequest) Zero() { x.Table.Zero() }

// ReadPushRouteTableRequest reads the request body. No reason quotes a value or
// an unknown member's name.
func ReadPushRouteTableRequest(body []byte) (PushRouteTableRequest, error) {
	return readAs[PushRouteTableRequest](MethodPushRouteTable+" request", body, secretBearing)
}

func (x *PushRouteTableRequest) shape() valueReader {
	return object(required("table", readRouteTable(&x.Table)))
}

// Validate returns one named reason for each violation.
func (x PushRouteTableRequest) Validate() []string { return reasonsOf(x.judge) }

func (x PushRouteTableRequest) judge(v *verdict) { v.in("table", x.Table) }

// AppendJSON appends the request body, the table as it came.
func (x PushRouteTableRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("table", x.Table)
	return w.end()
}

// PushRouteTableAnswer is the answer of pushClusterRouteTable.
type PushRouteTableAnswer struct {
	// AppliedRevision is the revision held after the decision, so a repeated or
	// crossed push is answered with the newer one. Counter.
	AppliedRevision int64
}

// ReadPushRouteTableAnswer reads the answer body.
func ReadPushRouteTableAnswer(body []byte) (PushRouteTableAnswer, error) {
	return readAs[PushRouteTableAnswer](MethodPushRouteTable+" answer", body, 0)
}

func (x *PushRouteTableAnswer) shape() valueReader {
	return answer(required("appliedRevision", integer(&x.AppliedRevision)))
}

// Validate returns one named reason for each violation.
func (x PushRouteTableAnswer) Validate() []string { return reasonsOf(x.judge) }

func (x PushRouteTableAnswer) judge(v *verdict) { v.counter("appliedRevision", x.AppliedRevision) }

// AppendJSON appends the answer body.
func (x PushRouteTableAnswer) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.integer("appliedRevision", x.AppliedRevision)
	return w.end()
}
