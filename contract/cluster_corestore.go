package contract

// NodeCorestore is IClusterNodeCorestore: where the Corestore control API of
// one node answers (contract §12.1).
type NodeCorestore struct {
	Endpoint string // canonical http or https origin
}

func (x *NodeCorestore) shape() valueReader {
	return object(required("endpoint", text(&x.Endpoint)))
}

// Validate returns one named reason for each violation.
func (x NodeCorestore) Validate() []string { return reasonsOf(x.judge) }

func (x NodeCorestore) judge(v *verdict) { v.httpOrigin("endpoint", x.Endpoint) }

// AppendJSON appends the endpoint's block.
func (x NodeCorestore) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("endpoint", x.Endpoint)
	return w.end()
}
