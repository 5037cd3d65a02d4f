package contract

// maximumPlatformBindings bounds the placements that are read of one answer. It
// is a bound on memory; the seeds state none.
const maximumPlatformBindings = 1 << 16

// PlatformDesiredState is the accepted answer of getClusterPlatformDesiredState,
// whose request is Empty (contract §12.6). The relay counts bindings by node and
// looks into none.
type PlatformDesiredState struct {
	Capabilities    Raw // opaque
	ProviderConfigs Raw // opaque
	Bindings        []PlatformBindingPlacement
}

// PlatformBindingPlacement is IClusterPlatformBindingPlacement. The placement is
// Cloudly's; the relay never guesses one.
type PlatformBindingPlacement struct {
	NodeID  string // node id
	Binding Raw    // an object, opaque
}

// ReadPlatformDesiredState reads an accepted answer.
func ReadPlatformDesiredState(body []byte) (PlatformDesiredState, error) {
	return readAs[PlatformDesiredState](MethodGetPlatformDesiredState+" answer", body, 0)
}

func (x *PlatformDesiredState) shape() valueReader {
	return answer(
		required("capabilities", strictRaw(&x.Capabilities)),
		required("providerConfigs", strictRaw(&x.ProviderConfigs)),
		required("bindings", list(&x.Bindings, maximumPlatformBindings, readPlatformBindingPlacement)),
	)
}

func readPlatformBindingPlacement(x *PlatformBindingPlacement) valueReader {
	return answer(
		required("nodeId", text(&x.NodeID)),
		required("binding", rawObject(&x.Binding)),
	)
}

// Validate returns one named reason for each violation.
func (x PlatformDesiredState) Validate() []string { return reasonsOf(x.judge) }

func (x PlatformDesiredState) judge(v *verdict) { inEach(v, "bindings", x.Bindings) }

func (x PlatformBindingPlacement) judge(v *verdict) { v.nodeID("nodeId", x.NodeID) }

// CountByNode returns how many bindings are placed on each node.
func (x PlatformDesiredState) CountByNode() map[string]int {
	counts := make(map[string]int)
	for _, b := range x.Bindings {
		counts[b.NodeID]++
	}
	return counts
}

// AppendJSON appends the answer body.
func (x PlatformDesiredState) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("capabilities", x.Capabilities)
	w.value("providerConfigs", x.ProviderConfigs)
	writeList(&w, "bindings", x.Bindings)
	return w.end()
}

// AppendJSON appends the placement.
func (x PlatformBindingPlacement) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("nodeId", x.NodeID)
	w.value("binding", x.Binding)
	return w.end()
}
