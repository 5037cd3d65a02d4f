package contract

// ReadRestoreSummary reads what Corestore answered to the control of the named
// method and makes it the progress of the node the control was carried to
// (contract §12.5, normalizeIsolatedRestoreProgress). Only the members of the
// progress are taken; others, such as the object receipt of a write, are not
// projected. A stagedObject is taken from the answer to a staged chunk alone.
//
// What is no valid progress is an error and must not be forwarded.
func ReadRestoreSummary(method, nodeID string, body []byte) (IsolatedRestoreProgress, error) {
	x, err := readAs[restoreSummary]("corestore restore summary", body, 0)
	if err != nil {
		return IsolatedRestoreProgress{}, err
	}
	progress := x.progress
	progress.NodeID = nodeID
	if method != MethodStageIsolatedRestoreArchive {
		progress.StagedObject = nil
	}
	if reasons := progress.Validate(); reasons != nil {
		return IsolatedRestoreProgress{}, &InvalidError{What: "corestore restore summary", Reasons: reasons}
	}
	return progress, nil
}

// restoreSummary is Corestore's staging summary: the progress without the node.
// OWN: the seeds do not name its members (O30); they are read as the progress's.
type restoreSummary struct{ progress IsolatedRestoreProgress }

func (x *restoreSummary) shape() valueReader { return openObject(x.progress.summary()...) }

// Validate returns nil: the rules are those of the progress, which is whole only
// with its node.
func (x restoreSummary) Validate() []string { return nil }
