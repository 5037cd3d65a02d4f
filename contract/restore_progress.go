package contract

// RestoreStatus is how far an isolated restore has come.
type RestoreStatus string

// The statuses (isolatedRestoreProgressStatuses).
const (
	RestorePrepared  RestoreStatus = "prepared"
	RestoreExecuting RestoreStatus = "executing"
	RestoreFailed    RestoreStatus = "failed"
	RestoreExecuted  RestoreStatus = "executed"
	RestoreCleaned   RestoreStatus = "cleaned"
)

// IsolatedRestoreProgress is IIsolatedRestoreProgress: what a node states of a
// restore, with the node that the control was carried to (contract §12.5). Its
// rules are those of normalizeIsolatedRestoreProgress.
type IsolatedRestoreProgress struct {
	NodeID            string
	RestoreID         string
	StagingArchiveID  string
	Status            RestoreStatus
	Revision          int64  // counter: a committed state carries one
	LastFence         int64  // counter
	ExpectedObjects   int64  // counts
	ReceivedObjects   int64  // at most ExpectedObjects
	CompletedMappings int64  // at most TotalMappings
	TotalMappings     int64  //
	PreparedAt        int64  // Unix milliseconds
	UpdatedAt         int64  // Unix milliseconds
	ExecutedAt        *int64 // Unix milliseconds; always of an executed restore
	StagedObject      Raw    // only of a staged chunk: where the next one continues (O30)
}

func readIsolatedRestoreProgress(x *IsolatedRestoreProgress) valueReader { return x.shape() }

func (x *IsolatedRestoreProgress) shape() valueReader {
	return object(append([]member{required("nodeId", text(&x.NodeID))}, x.summary()...)...)
}

// summary is the members that Corestore itself states.
func (x *IsolatedRestoreProgress) summary() []member {
	return []member{
		required("restoreId", text(&x.RestoreID)),
		required("stagingArchiveId", text(&x.StagingArchiveID)),
		required("status", text((*string)(&x.Status))),
		required("revision", integer(&x.Revision)),
		required("lastFence", integer(&x.LastFence)),
		required("expectedObjects", integer(&x.ExpectedObjects)),
		required("receivedObjects", integer(&x.ReceivedObjects)),
		required("completedMappings", integer(&x.CompletedMappings)),
		required("totalMappings", integer(&x.TotalMappings)),
		required("preparedAt", integer(&x.PreparedAt)),
		required("updatedAt", integer(&x.UpdatedAt)),
		optional("executedAt", pointer(&x.ExecutedAt, integer)),
		optional("stagedObject", plainObject(&x.StagedObject)),
	}
}

// Validate returns one named reason for each violation.
func (x IsolatedRestoreProgress) Validate() []string { return reasonsOf(x.judge) }

func (x IsolatedRestoreProgress) judge(v *verdict) {
	v.nodeID("nodeId", x.NodeID)
	v.corestoreID("restoreId", x.RestoreID)
	v.corestoreID("stagingArchiveId", x.StagingArchiveID)
	v.counter("revision", x.Revision)
	v.counter("lastFence", x.LastFence)
	v.count("expectedObjects", x.ExpectedObjects)
	v.count("receivedObjects", x.ReceivedObjects)
	v.count("completedMappings", x.CompletedMappings)
	v.count("totalMappings", x.TotalMappings)
	v.require(x.ReceivedObjects <= x.ExpectedObjects, "receivedObjects", "is more than expectedObjects")
	v.require(x.CompletedMappings <= x.TotalMappings, "completedMappings", "is more than totalMappings")
	v.unixMilliseconds("preparedAt", x.PreparedAt)
	v.unixMilliseconds("updatedAt", x.UpdatedAt)
	if x.ExecutedAt != nil {
		v.unixMilliseconds("executedAt", *x.ExecutedAt)
	}
	v.opaque("stagedObject", x.StagedObject)
	x.judgeStatus(v)
}

// judgeStatus judges what a status promises of the counts.
func (x IsolatedRestoreProgress) judgeStatus(v *verdict) {
	switch x.Status {
	case RestorePrepared, RestoreFailed, RestoreCleaned:
	case RestoreExecuting, RestoreExecuted:
		v.require(x.ReceivedObjects >= x.ExpectedObjects, "receivedObjects", "is not the whole archive")
	default:
		v.addAt("status", "is not a known status")
	}
	if x.Status == RestoreExecuted {
		v.require(x.CompletedMappings >= x.TotalMappings, "completedMappings", "is not every mapping")
		v.require(x.ExecutedAt != nil, "executedAt", "is missing")
	}
}

// AppendJSON appends the progress in contract order.
func (x IsolatedRestoreProgress) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("nodeId", x.NodeID)
	w.text("restoreId", x.RestoreID)
	w.text("stagingArchiveId", x.StagingArchiveID)
	w.text("status", string(x.Status))
	w.integer("revision", x.Revision)
	w.integer("lastFence", x.LastFence)
	w.integer("expectedObjects", x.ExpectedObjects)
	w.integer("receivedObjects", x.ReceivedObjects)
	w.integer("completedMappings", x.CompletedMappings)
	w.integer("totalMappings", x.TotalMappings)
	w.integer("preparedAt", x.PreparedAt)
	w.integer("updatedAt", x.UpdatedAt)
	if x.ExecutedAt != nil {
		w.integer("executedAt", *x.ExecutedAt)
	}
	w.optional("stagedObject", x.StagedObject)
	return w.end()
}

// IsolatedRestoreAnswer is the answer of the five isolated-restore methods.
type IsolatedRestoreAnswer struct {
	Progress IsolatedRestoreProgress
}

// ReadIsolatedRestoreAnswer reads the answer body of the named method.
func ReadIsolatedRestoreAnswer(method string, body []byte) (IsolatedRestoreAnswer, error) {
	return readAs[IsolatedRestoreAnswer](method+" answer", body, 0)
}

func (x *IsolatedRestoreAnswer) shape() valueReader {
	return object(required("progress", readIsolatedRestoreProgress(&x.Progress)))
}

// Validate returns one named reason for each violation.
func (x IsolatedRestoreAnswer) Validate() []string { return reasonsOf(x.judge) }

func (x IsolatedRestoreAnswer) judge(v *verdict) { v.in("progress", x.Progress) }

// AppendJSON appends the answer body.
func (x IsolatedRestoreAnswer) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("progress", x.Progress)
	return w.end()
}
