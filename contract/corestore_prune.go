package contract

// PruneNodeArchiveRequest is the request of pruneClusterNodeArchive (contract
// §12.2). The seeds state no inner shapes: the opaque members go on as they
// came.
type PruneNodeArchiveRequest struct {
	NodeID    string // whose Corestore is asked
	Retention Raw
	DryRun    Raw // nil when absent
}

// ReadPruneNodeArchiveRequest reads the request body.
func ReadPruneNodeArchiveRequest(body []byte) (PruneNodeArchiveRequest, error) {
	return readAs[PruneNodeArchiveRequest](MethodPruneNodeArchive+" request", body, 0)
}

func (x *PruneNodeArchiveRequest) shape() valueReader {
	return object(
		required("nodeId", text(&x.NodeID)),
		required("retention", raw(&x.Retention)),
		optional("dryRun", plain(&x.DryRun)),
	)
}

// Validate returns one named reason for each violation.
func (x PruneNodeArchiveRequest) Validate() []string { return reasonsOf(x.judge) }

func (x PruneNodeArchiveRequest) judge(v *verdict) {
	v.nodeID("nodeId", x.NodeID)
	v.present("retention", x.Retention)
	v.opaque("dryRun", x.DryRun)
}

// AppendJSON appends the request body in contract order.
func (x PruneNodeArchiveRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("nodeId", x.NodeID)
	w.value("retention", x.Retention)
	w.optional("dryRun", x.DryRun)
	return w.end()
}

// PruneNodeArchiveAnswer is the answer of pruneClusterNodeArchive. Corestore's
// own answer is read as the same (O12), with members it says beyond these
// ignored. That a node was not reached is an error and never an answer.
type PruneNodeArchiveAnswer struct {
	Found  Raw
	Result Raw // nil when absent
}

// ReadPruneNodeArchiveAnswer reads the answer body.
func ReadPruneNodeArchiveAnswer(body []byte) (PruneNodeArchiveAnswer, error) {
	return readAs[PruneNodeArchiveAnswer](MethodPruneNodeArchive+" answer", body, 0)
}

func (x *PruneNodeArchiveAnswer) shape() valueReader {
	return answer(
		required("found", raw(&x.Found)),
		optional("result", raw(&x.Result)),
	)
}

// Validate returns one named reason for each violation.
func (x PruneNodeArchiveAnswer) Validate() []string { return reasonsOf(x.judge) }

func (x PruneNodeArchiveAnswer) judge(v *verdict) {
	v.present("found", x.Found)
	v.opaque("result", x.Result)
}

// AppendJSON appends the answer body in contract order.
func (x PruneNodeArchiveAnswer) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("found", x.Found)
	w.optional("result", x.Result)
	return w.end()
}
