package contract

// IsolatedRestoreRequest is the request of the five isolated-restore methods
// (contract §12.5). The control is the body that Corestore reads, with the grant
// inside: its one authority. It is carried as the bytes that came; the relay
// adds nothing and verifies nothing in it. Its size is bounded by the frame: a
// chunk of 512 KiB is the largest thing the contract puts into one.
//
// The whole request is secret-bearing.
type IsolatedRestoreRequest struct {
	NodeID  string // whose Corestore is asked
	Control Raw    // an object
}

// ReadIsolatedRestoreRequest reads the request body of the named method. No
// reason quotes a value or an unknown member's name.
func ReadIsolatedRestoreRequest(method string, body []byte) (IsolatedRestoreRequest, error) {
	return readAs[IsolatedRestoreRequest](method+" request", body, secretBearing)
}

func (x *IsolatedRestoreRequest) shape() valueReader {
	return object(
		required("nodeId", text(&x.NodeID)),
		required("control", rawObject(&x.Control)),
	)
}

// Zero overwrites the control.
func (x IsolatedRestoreRequest) Zero() { clear(x.Control) }

// Validate returns one named reason for each violation.
func (x IsolatedRestoreRequest) Validate() []string { return reasonsOf(x.judge) }

func (x IsolatedRestoreRequest) judge(v *verdict) {
	v.nodeID("nodeId", x.NodeID)
	v.require(x.Control.IsObject(), "control", "is not an object")
}

// AppendJSON appends the request body, the control as it came.
func (x IsolatedRestoreRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("nodeId", x.NodeID)
	w.value("control", x.Control)
	return w.end()
}

// IsIsolatedRestore reports whether a method is one of the five.
func IsIsolatedRestore(method string) bool {
	switch method {
	case MethodPrepareIsolatedRestore, MethodStageIsolatedRestoreArchive, MethodGetIsolatedRestoreProgress,
		MethodExecuteIsolatedRestore, MethodCleanupIsolatedRestore:
		return true
	}
	return false
}
