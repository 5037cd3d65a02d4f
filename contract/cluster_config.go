package contract

// ClusterConfiguration is what the relay reads of a cluster configuration, in a
// push as in the answer to a pull (contract §6.3; design §4, O11).
type ClusterConfiguration struct {
	Relay  RelayStatement
	Block  ClusterRelay // the relay block, only with RelayStated
	Nodes  []ConfiguredNode
	Faults []string // one "path: rule" for each part that is there and not valid
}

// ConfiguredNode is what the relay reads of one node of the document.
type ConfiguredNode struct {
	ID string // node id
	// Corestore is nil when the document states no endpoint, null, one that is
	// not valid, or the node twice; the last two are faults.
	Corestore *NodeCorestore
}

// RelayStatement says what a configuration states about the relay block. The
// four that follow from a recognised document differ in what the relay must do.
type RelayStatement int

const (
	// RelayUnrecognised means that the body holds no cluster document. It states
	// nothing at all and changes nothing.
	RelayUnrecognised RelayStatement = iota
	// RelayAbsent means a document without the block: the cluster is not relayed.
	RelayAbsent
	// RelayNull means an explicit null, as after disableClusterRelay. It counts as
	// absent.
	RelayNull
	// RelayInvalid means that the block is there and not valid. It changes nothing
	// that is held.
	RelayInvalid
	// RelayStated means a valid block.
	RelayStated
)

// String names the statement for an event or a check.
func (s RelayStatement) String() string {
	switch s {
	case RelayAbsent:
		return "absent"
	case RelayNull:
		return "null"
	case RelayInvalid:
		return "invalid"
	case RelayStated:
		return "stated"
	}
	return "unrecognised"
}

// Recognised reports whether the body holds a cluster document.
func (x ClusterConfiguration) Recognised() bool { return x.Relay != RelayUnrecognised }

// FindNode returns the configured node of this id.
func (x ClusterConfiguration) FindNode(id string) (ConfiguredNode, bool) {
	for _, n := range x.Nodes {
		if n.ID == id {
			return n, true
		}
	}
	return ConfiguredNode{}, false
}

// AppendJSON appends a configuration that reads as x, under "configData". Faults
// are not written, except that an invalid block stays an invalid one.
func (x ClusterConfiguration) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	if x.Recognised() {
		w.value("configData", clusterDocument{x})
	}
	return w.end()
}

// clusterDocument writes ICluster as far as the relay reads it.
type clusterDocument struct{ ClusterConfiguration }

func (x clusterDocument) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("data", clusterData(x))
	return w.end()
}

type clusterData struct{ ClusterConfiguration }

func (x clusterData) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	switch x.Relay {
	case RelayStated:
		w.value("relay", x.Block)
	case RelayNull:
		w.null("relay")
	case RelayInvalid:
		w.value("relay", Empty{})
	}
	if x.Nodes != nil {
		writeList(&w, "nodes", x.Nodes)
	}
	return w.end()
}

// AppendJSON appends the node as far as the relay reads it.
func (x ConfiguredNode) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("id", x.ID)
	w.value("data", nodeData(x))
	return w.end()
}

type nodeData ConfiguredNode

func (x nodeData) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	if x.Corestore != nil {
		w.value("corestore", *x.Corestore)
	}
	return w.end()
}
