package contract

// RestoreDatabaseClosureRequest is the request of restoreServiceDatabaseClosure,
// with which the relay asks Cloudly for a closure (contract §12.4).
type RestoreDatabaseClosureRequest struct {
	BackupID  string
	ServiceID string // canonical identifier
	NodeID    string
}

// ReadRestoreDatabaseClosureRequest reads the request body.
func ReadRestoreDatabaseClosureRequest(body []byte) (RestoreDatabaseClosureRequest, error) {
	return readAs[RestoreDatabaseClosureRequest](MethodRestoreDatabaseClosure+" request", body, 0)
}

func (x *RestoreDatabaseClosureRequest) shape() valueReader {
	return object(
		required("backupId", text(&x.BackupID)),
		required("serviceId", text(&x.ServiceID)),
		required("nodeId", text(&x.NodeID)),
	)
}

// Validate returns one named reason for each violation.
func (x RestoreDatabaseClosureRequest) Validate() []string { return reasonsOf(x.judge) }

func (x RestoreDatabaseClosureRequest) judge(v *verdict) {
	v.corestoreID("backupId", x.BackupID)
	v.identifier("serviceId", x.ServiceID)
	v.nodeID("nodeId", x.NodeID)
}

// AppendJSON appends the request body in contract order.
func (x RestoreDatabaseClosureRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("backupId", x.BackupID)
	w.text("serviceId", x.ServiceID)
	w.text("nodeId", x.NodeID)
	return w.end()
}

// RestoreDatabaseClosureAnswer is the answer of restoreServiceDatabaseClosure.
type RestoreDatabaseClosureAnswer struct {
	Descriptor DatabaseClosureDescriptor
	Closure    Raw // descriptor of the stream the relay receives on; the carrier's to read
}

// ReadRestoreDatabaseClosureAnswer reads the answer body.
func ReadRestoreDatabaseClosureAnswer(body []byte) (RestoreDatabaseClosureAnswer, error) {
	return readAs[RestoreDatabaseClosureAnswer](MethodRestoreDatabaseClosure+" answer", body, 0)
}

func (x *RestoreDatabaseClosureAnswer) shape() valueReader {
	return answer(
		required("descriptor", readDatabaseClosureDescriptor(&x.Descriptor)),
		required("closure", plainObject(&x.Closure)),
	)
}

// Validate returns one named reason for each violation.
func (x RestoreDatabaseClosureAnswer) Validate() []string { return reasonsOf(x.judge) }

func (x RestoreDatabaseClosureAnswer) judge(v *verdict) {
	v.in("descriptor", x.Descriptor)
	v.require(x.Closure.IsObject(), "closure", "is not an object")
}

// AppendJSON appends the answer body in contract order.
func (x RestoreDatabaseClosureAnswer) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("descriptor", x.Descriptor)
	w.value("closure", x.Closure)
	return w.end()
}
