package contract

// LegacyResources is TClusterCorestoreLegacyResourceInventory, the answer of
// getClusterCorestoreLegacyResources: either reachable with the services, or
// not reachable with an error code and no list (contract §12.3). The member of
// the read time is not named by the seeds; it is called as in the inventory.
//
// It carries no digest: computing that one is Cloudly's.
type LegacyResources struct {
	NodeID    string
	CheckedAt int64 // the relay's clock, Unix milliseconds
	Reachable bool
	ErrorCode *CorestoreErrorCode // nil exactly when reachable
	Services  *LegacyServices     // nil exactly when not reachable
}

// NewLegacyResources is the answer about a Corestore that was read whole.
func NewLegacyResources(nodeID string, checkedAt int64, services LegacyServices) LegacyResources {
	return LegacyResources{NodeID: nodeID, CheckedAt: checkedAt, Reachable: true, Services: &services}
}

// NewUnreadLegacyResources is the answer about a Corestore that was not read, or
// not read whole.
func NewUnreadLegacyResources(nodeID string, checkedAt int64, code CorestoreErrorCode) LegacyResources {
	return LegacyResources{NodeID: nodeID, CheckedAt: checkedAt, ErrorCode: &code}
}

// ReadLegacyResources reads the answer body.
func ReadLegacyResources(body []byte) (LegacyResources, error) {
	return readAs[LegacyResources](MethodGetCorestoreLegacyResources+" answer", body, 0)
}

func (x *LegacyResources) shape() valueReader {
	return object(
		required("nodeId", text(&x.NodeID)),
		required("checkedAt", integer(&x.CheckedAt)),
		required("reachable", boolean(&x.Reachable)),
		optional("errorCode", pointer(&x.ErrorCode, readCorestoreErrorCode)),
		optional("services", pointer(&x.Services, readLegacyServices)),
	)
}

// Validate returns one named reason for each violation.
func (x LegacyResources) Validate() []string { return reasonsOf(x.judge) }

func (x LegacyResources) judge(v *verdict) {
	v.nodeID("nodeId", x.NodeID)
	v.unixMilliseconds("checkedAt", x.CheckedAt)
	if x.Reachable {
		v.require(x.ErrorCode == nil, "errorCode", "is given although the node is reachable")
		v.require(x.Services != nil, "services", "is missing although the node is reachable")
	} else {
		v.require(x.ErrorCode != nil, "errorCode", "is missing although the node is not reachable")
		v.require(x.Services == nil, "services", "is given although the node is not reachable")
	}
	if x.ErrorCode != nil {
		v.corestoreErrorCode("errorCode", *x.ErrorCode)
	}
	if x.Services != nil {
		v.enter("services")
		x.Services.judge(v)
		v.leave()
	}
}

// AppendJSON appends the answer body in contract order.
func (x LegacyResources) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("nodeId", x.NodeID)
	w.integer("checkedAt", x.CheckedAt)
	w.boolean("reachable", x.Reachable)
	if x.ErrorCode != nil {
		w.text("errorCode", string(*x.ErrorCode))
	}
	if x.Services != nil {
		w.value("services", *x.Services)
	}
	return w.end()
}

// LegacyInventory is ICorestoreLegacyResourceInventory, what Corestore itself
// answers to GET /control/legacy-resources: exactly { services }.
type LegacyInventory struct {
	Services LegacyServices
}

// ReadLegacyInventory reads Corestore's answer.
func ReadLegacyInventory(body []byte) (LegacyInventory, error) {
	return readAs[LegacyInventory]("corestore legacy inventory", body, 0)
}

func (x *LegacyInventory) shape() valueReader {
	return object(required("services", readLegacyServices(&x.Services)))
}

// Validate returns one named reason for each violation.
func (x LegacyInventory) Validate() []string { return reasonsOf(x.judge) }

func (x LegacyInventory) judge(v *verdict) { v.in("services", x.Services) }

// AppendJSON appends the answer.
func (x LegacyInventory) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("services", x.Services)
	return w.end()
}
