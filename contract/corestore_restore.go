package contract

// RestoreServiceRequest is the request of restoreClusterService (contract
// §12.2). The seeds state no inner shapes: the opaque members go on as they
// came. Snapshots that are closures are fetched from Cloudly first.
type RestoreServiceRequest struct {
	NodeID        string // whose Corestore is asked
	BackupID      string
	Service       Raw
	Snapshots     []Snapshot
	Clear         Raw // nil when absent
	ResourceTypes Raw // nil when absent
	Replication   Raw // nil when absent
}

// ReadRestoreServiceRequest reads the request body.
func ReadRestoreServiceRequest(body []byte) (RestoreServiceRequest, error) {
	return readAs[RestoreServiceRequest](MethodRestoreService+" request", body, 0)
}

func (x *RestoreServiceRequest) shape() valueReader {
	return object(
		required("nodeId", text(&x.NodeID)),
		required("backupId", text(&x.BackupID)),
		required("service", raw(&x.Service)),
		required("snapshots", list(&x.Snapshots, maximumSnapshots, readSnapshot)),
		optional("clear", plain(&x.Clear)),
		optional("resourceTypes", plain(&x.ResourceTypes)),
		optional("replication", raw(&x.Replication)),
	)
}

// Validate returns one named reason for each violation.
func (x RestoreServiceRequest) Validate() []string { return reasonsOf(x.judge) }

func (x RestoreServiceRequest) judge(v *verdict) {
	v.nodeID("nodeId", x.NodeID)
	v.corestoreID("backupId", x.BackupID)
	v.present("service", x.Service)
	judgeSnapshots(v, x.Snapshots)
	v.opaque("clear", x.Clear)
	v.opaque("resourceTypes", x.ResourceTypes)
	v.opaque("replication", x.Replication)
}

// AppendJSON appends the request body in contract order, each snapshot as it
// came.
func (x RestoreServiceRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("nodeId", x.NodeID)
	w.text("backupId", x.BackupID)
	w.value("service", x.Service)
	writeList(&w, "snapshots", x.Snapshots)
	w.optional("clear", x.Clear)
	w.optional("resourceTypes", x.ResourceTypes)
	w.optional("replication", x.Replication)
	return w.end()
}

// RestoreServiceAnswer is the answer of restoreClusterService. Corestore's own
// answer is read as the same (O12), with members it says beyond this ignored.
type RestoreServiceAnswer struct {
	Restored Raw
}

// ReadRestoreServiceAnswer reads the answer body.
func ReadRestoreServiceAnswer(body []byte) (RestoreServiceAnswer, error) {
	return readAs[RestoreServiceAnswer](MethodRestoreService+" answer", body, 0)
}

func (x *RestoreServiceAnswer) shape() valueReader {
	return answer(required("restored", raw(&x.Restored)))
}

// Validate returns one named reason for each violation.
func (x RestoreServiceAnswer) Validate() []string { return reasonsOf(x.judge) }

func (x RestoreServiceAnswer) judge(v *verdict) { v.present("restored", x.Restored) }

// AppendJSON appends the answer body.
func (x RestoreServiceAnswer) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("restored", x.Restored)
	return w.end()
}
