package contract

// BackupDatabaseClosureRequest is the request of backupServiceDatabaseClosure,
// with which the relay offers a closure to Cloudly (contract §12.4). It carries
// no identity: the session names the cluster.
type BackupDatabaseClosureRequest struct {
	BackupID   string
	ServiceID  string // canonical identifier
	NodeID     string
	Descriptor DatabaseClosureDescriptor
	Closure    Raw // descriptor of the stream the relay sends on; the carrier's to read
}

// ReadBackupDatabaseClosureRequest reads the request body.
func ReadBackupDatabaseClosureRequest(body []byte) (BackupDatabaseClosureRequest, error) {
	return readAs[BackupDatabaseClosureRequest](MethodBackupDatabaseClosure+" request", body, 0)
}

func (x *BackupDatabaseClosureRequest) shape() valueReader {
	return object(
		required("backupId", text(&x.BackupID)),
		required("serviceId", text(&x.ServiceID)),
		required("nodeId", text(&x.NodeID)),
		required("descriptor", readDatabaseClosureDescriptor(&x.Descriptor)),
		required("closure", plainObject(&x.Closure)),
	)
}

// Validate returns one named reason for each violation.
func (x BackupDatabaseClosureRequest) Validate() []string { return reasonsOf(x.judge) }

func (x BackupDatabaseClosureRequest) judge(v *verdict) {
	v.corestoreID("backupId", x.BackupID)
	v.identifier("serviceId", x.ServiceID)
	v.nodeID("nodeId", x.NodeID)
	v.in("descriptor", x.Descriptor)
	v.require(x.Closure.IsObject(), "closure", "is not an object")
}

// AppendJSON appends the request body in contract order.
func (x BackupDatabaseClosureRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("backupId", x.BackupID)
	w.text("serviceId", x.ServiceID)
	w.text("nodeId", x.NodeID)
	w.value("descriptor", x.Descriptor)
	w.value("closure", x.Closure)
	return w.end()
}

// BackupDatabaseClosureAnswer is the answer of backupServiceDatabaseClosure.
type BackupDatabaseClosureAnswer struct {
	// Accepted permits sending. It never confirms storage: only the receipt of
	// the stream does.
	Accepted bool
}

// ReadBackupDatabaseClosureAnswer reads the answer body.
func ReadBackupDatabaseClosureAnswer(body []byte) (BackupDatabaseClosureAnswer, error) {
	return readAs[BackupDatabaseClosureAnswer](MethodBackupDatabaseClosure+" answer", body, 0)
}

func (x *BackupDatabaseClosureAnswer) shape() valueReader {
	return answer(required("accepted", boolean(&x.Accepted)))
}

// Validate returns nil: both answers are valid.
func (x BackupDatabaseClosureAnswer) Validate() []string { return nil }

// AppendJSON appends the answer body.
func (x BackupDatabaseClosureAnswer) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.boolean("accepted", x.Accepted)
	return w.end()
}
