package contract

import "bytes"

// CorestoreInventory is IClusterCorestoreInventory: what one node's Corestore
// holds (contract §12.3). A reachable inventory without services is the proof
// that the namespace is blank; an unreachable one proves nothing. The two can
// never be read as each other, so a value is made by NewCorestoreInventory or
// NewUnreadInventory and not by hand.
type CorestoreInventory struct {
	NodeID    string
	CheckedAt int64 // the relay's clock, Unix milliseconds
	Reachable bool
	ErrorCode *CorestoreErrorCode // nil exactly when reachable
	Services  Raw                 // an array, as Corestore wrote it; its elements are opaque
}

// NewCorestoreInventory is the inventory of a Corestore that was read whole. The
// services are the array that it answered.
func NewCorestoreInventory(nodeID string, checkedAt int64, services Raw) CorestoreInventory {
	return CorestoreInventory{NodeID: nodeID, CheckedAt: checkedAt, Reachable: true, Services: services}
}

// NewUnreadInventory is the inventory of a Corestore that was not read, or not
// read whole.
func NewUnreadInventory(nodeID string, checkedAt int64, code CorestoreErrorCode) CorestoreInventory {
	return CorestoreInventory{NodeID: nodeID, CheckedAt: checkedAt, ErrorCode: &code, Services: Raw("[]")}
}

func readCorestoreInventory(x *CorestoreInventory) valueReader { return x.shape() }

func (x *CorestoreInventory) shape() valueReader {
	return object(
		required("nodeId", text(&x.NodeID)),
		required("checkedAt", integer(&x.CheckedAt)),
		required("reachable", boolean(&x.Reachable)),
		optional("errorCode", pointer(&x.ErrorCode, readCorestoreErrorCode)),
		required("services", rawArray(&x.Services)),
	)
}

func readCorestoreErrorCode(x *CorestoreErrorCode) valueReader { return text((*string)(x)) }

// Validate returns one named reason for each violation.
func (x CorestoreInventory) Validate() []string { return reasonsOf(x.judge) }

func (x CorestoreInventory) judge(v *verdict) {
	v.nodeID("nodeId", x.NodeID)
	v.unixMilliseconds("checkedAt", x.CheckedAt)
	v.opaque("services", x.Services)
	switch {
	case x.Reachable:
		v.require(x.ErrorCode == nil, "errorCode", "is given although the node is reachable")
		v.require(x.Services.IsArray(), "services", "is not an array")
	case x.ErrorCode == nil:
		v.addAt("errorCode", "is missing although the node is not reachable")
	default:
		v.corestoreErrorCode("errorCode", *x.ErrorCode)
	}
	v.require(x.Reachable || isEmptyArray(x.Services), "services", "is not empty although the node is not reachable")
}

// isEmptyArray reports whether a JSON array has no elements.
func isEmptyArray(array Raw) bool {
	return len(array) >= 2 && len(bytes.TrimSpace(array[1:len(array)-1])) == 0
}

// AppendJSON appends the inventory in contract order.
func (x CorestoreInventory) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("nodeId", x.NodeID)
	w.integer("checkedAt", x.CheckedAt)
	w.boolean("reachable", x.Reachable)
	if x.ErrorCode != nil {
		w.text("errorCode", string(*x.ErrorCode))
	}
	w.value("services", x.Services)
	return w.end()
}

// CorestoreInventoryAnswer is the answer of getClusterCorestoreInventory.
type CorestoreInventoryAnswer struct {
	Inventory CorestoreInventory
}

// ReadCorestoreInventoryAnswer reads the answer body.
func ReadCorestoreInventoryAnswer(body []byte) (CorestoreInventoryAnswer, error) {
	return readAs[CorestoreInventoryAnswer](MethodGetCorestoreInventory+" answer", body, 0)
}

func (x *CorestoreInventoryAnswer) shape() valueReader {
	return object(required("inventory", readCorestoreInventory(&x.Inventory)))
}

// Validate returns one named reason for each violation.
func (x CorestoreInventoryAnswer) Validate() []string { return reasonsOf(x.judge) }

func (x CorestoreInventoryAnswer) judge(v *verdict) { v.in("inventory", x.Inventory) }

// AppendJSON appends the answer body.
func (x CorestoreInventoryAnswer) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("inventory", x.Inventory)
	return w.end()
}

// CorestoreServices is what Corestore itself answers when it is asked for its
// services. OWN: its path and body are not in the seeds (contract O12); only
// the member services is read, and others are ignored.
type CorestoreServices struct {
	Services Raw // an array
}

// ReadCorestoreServices reads Corestore's answer. A body that is not whole is an
// error, so that it can never pass for a blank namespace.
func ReadCorestoreServices(body []byte) (CorestoreServices, error) {
	return readAs[CorestoreServices]("corestore inventory", body, 0)
}

func (x *CorestoreServices) shape() valueReader {
	return openObject(required("services", rawArray(&x.Services)))
}

// Validate returns one named reason for each violation.
func (x CorestoreServices) Validate() []string { return reasonsOf(x.judge) }

func (x CorestoreServices) judge(v *verdict) {
	v.require(x.Services.IsArray(), "services", "is not an array")
	v.opaque("services", x.Services)
}

// AppendJSON appends the answer.
func (x CorestoreServices) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("services", x.Services)
	return w.end()
}
