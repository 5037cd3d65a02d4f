package contract

// CorestoreNodeRequest is the request of the calls that only name a node:
// getClusterCorestoreInventory and getClusterCorestoreLegacyResources (contract
// §12.2).
type CorestoreNodeRequest struct {
	NodeID string // whose Corestore is asked
}

// ReadCorestoreNodeRequest reads the request body of the named method.
func ReadCorestoreNodeRequest(method string, body []byte) (CorestoreNodeRequest, error) {
	return readAs[CorestoreNodeRequest](method+" request", body, 0)
}

func (x *CorestoreNodeRequest) shape() valueReader {
	return object(required("nodeId", text(&x.NodeID)))
}

// Validate returns one named reason for each violation.
func (x CorestoreNodeRequest) Validate() []string { return reasonsOf(x.judge) }

func (x CorestoreNodeRequest) judge(v *verdict) { v.nodeID("nodeId", x.NodeID) }

// AppendJSON appends the request body.
func (x CorestoreNodeRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("nodeId", x.NodeID)
	return w.end()
}

// CorestoreErrorCode says why a node's Corestore could not be read.
type CorestoreErrorCode string

// The two codes that the seeds state. Finer ones are not (contract O12b), so
// whatever keeps a whole answer from being read is unreachable.
const (
	// CorestoreEndpointUnknown is a node for which the cluster document states no
	// valid endpoint. No host is ever guessed.
	CorestoreEndpointUnknown CorestoreErrorCode = "CORESTORE_ENDPOINT_UNKNOWN"
	// CorestoreUnreachable is a connection, a handshake, a time or an answer that
	// failed.
	CorestoreUnreachable CorestoreErrorCode = "CORESTORE_UNREACHABLE"
)

// corestoreErrorCode judges why a node was not read.
func (v *verdict) corestoreErrorCode(member string, code CorestoreErrorCode) {
	v.require(code == CorestoreEndpointUnknown || code == CorestoreUnreachable, member,
		"is not a known error code")
}
