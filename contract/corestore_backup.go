package contract

// BackupServiceRequest is the request of backupClusterService (contract §12.2).
// The seeds state no inner shapes: the opaque members go on as they came.
type BackupServiceRequest struct {
	NodeID      string // whose Corestore is asked
	BackupID    string
	Service     Raw
	Tags        Raw // nil when absent
	Replication Raw // nil when absent
}

// ReadBackupServiceRequest reads the request body.
func ReadBackupServiceRequest(body []byte) (BackupServiceRequest, error) {
	return readAs[BackupServiceRequest](MethodBackupService+" request", body, 0)
}

func (x *BackupServiceRequest) shape() valueReader {
	return object(
		required("nodeId", text(&x.NodeID)),
		required("backupId", text(&x.BackupID)),
		required("service", raw(&x.Service)),
		optional("tags", raw(&x.Tags)),
		optional("replication", raw(&x.Replication)),
	)
}

// Validate returns one named reason for each violation.
func (x BackupServiceRequest) Validate() []string { return reasonsOf(x.judge) }

func (x BackupServiceRequest) judge(v *verdict) {
	v.nodeID("nodeId", x.NodeID)
	v.corestoreID("backupId", x.BackupID)
	v.present("service", x.Service)
	v.opaque("tags", x.Tags)
	v.opaque("replication", x.Replication)
}

// AppendJSON appends the request body in contract order.
func (x BackupServiceRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("nodeId", x.NodeID)
	w.text("backupId", x.BackupID)
	w.value("service", x.Service)
	w.optional("tags", x.Tags)
	w.optional("replication", x.Replication)
	return w.end()
}

// optional appends an opaque member, or leaves it out when it is absent.
func (w *objectWriter) optional(name string, r Raw) {
	if r != nil {
		w.value(name, r)
	}
}

// BackupServiceAnswer is the answer of backupClusterService. Corestore's own
// answer is read as the same (O12), with members it says beyond these ignored;
// what the relay answers holds these alone. It is given only when every closure
// it names has been stored.
type BackupServiceAnswer struct {
	Snapshots   []Snapshot
	Replication Raw // nil when absent
}

// ReadBackupServiceAnswer reads the answer body.
func ReadBackupServiceAnswer(body []byte) (BackupServiceAnswer, error) {
	return readAs[BackupServiceAnswer](MethodBackupService+" answer", body, 0)
}

func (x *BackupServiceAnswer) shape() valueReader {
	return answer(
		required("snapshots", list(&x.Snapshots, maximumSnapshots, readSnapshot)),
		optional("replication", raw(&x.Replication)),
	)
}

// Validate returns one named reason for each violation.
func (x BackupServiceAnswer) Validate() []string { return reasonsOf(x.judge) }

func (x BackupServiceAnswer) judge(v *verdict) {
	judgeSnapshots(v, x.Snapshots)
	v.opaque("replication", x.Replication)
}

// AppendJSON appends the answer body, each snapshot as it came.
func (x BackupServiceAnswer) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	writeList(&w, "snapshots", x.Snapshots)
	w.optional("replication", x.Replication)
	return w.end()
}
