package contract

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// maximumConfiguredNodes bounds the nodes that are read of one document, far
// above what one relay can carry (ListenerSockets). A fault names a longer list.
const maximumConfiguredNodes = 4 * ListenerSockets

// ReadClusterConfiguration reads the body of a configuration push, or the answer
// to a pull.
//
// The cluster document is the first of "configData", "cluster" and the body
// itself that is an object with an object "data". Nodes are read from the first
// of its data.nodes, its nodes and the body's nodes that is an array. Members
// that are not named here are ignored; the blocks "relay" and "corestore" are
// exact. A part that is not valid is a fault and leaves the other parts as they
// are (design §4, O11).
//
// The error, an *InvalidError, means that the body is not one object of strict
// JSON. Like a body without a document it changes nothing.
func ReadClusterConfiguration(body []byte) (ClusterConfiguration, error) {
	var b configurationBody
	if reasons := readShape(body, 0, b.shape()); len(reasons) > 0 {
		return ClusterConfiguration{}, &InvalidError{What: "cluster configuration", Reasons: reasons}
	}
	document, path, found := b.document()
	if !found {
		return ClusterConfiguration{}, nil
	}
	return readClusterDocument(document, path, b.nodes), nil
}

// configurationBody holds the members of a body among which the document and
// its nodes are looked for.
type configurationBody struct {
	configData, cluster, data, nodes Raw
}

// shape judges the whole body once, so that the walks through its parts need
// not judge again.
func (b *configurationBody) shape() valueReader {
	return openObject(
		optional("configData", strictRaw(&b.configData)),
		optional("cluster", strictRaw(&b.cluster)),
		optional("data", strictRaw(&b.data)),
		optional("nodes", strictRaw(&b.nodes)),
	)
}

// document returns the data and the nodes of the document, and the path of the
// member that holds it.
func (b *configurationBody) document() (document clusterMembers, path []string, found bool) {
	for _, candidate := range []struct {
		name  string
		value Raw
	}{{"configData", b.configData}, {"cluster", b.cluster}} {
		members := splitClusterMembers(candidate.value)
		if members.data.IsObject() {
			return members, []string{candidate.name}, true
		}
	}
	return clusterMembers{data: b.data}, nil, b.data.IsObject()
}

// clusterMembers are the two members of a document that are read.
type clusterMembers struct{ data, nodes Raw }

func splitClusterMembers(document Raw) (m clusterMembers) {
	if document.IsObject() {
		readShape(document, 0, onlyMembers(
			optional("data", raw(&m.data)),
			optional("nodes", raw(&m.nodes)),
		))
	}
	return m
}

func readClusterDocument(document clusterMembers, path []string, bodyNodes Raw) ClusterConfiguration {
	x := ClusterConfiguration{Relay: RelayAbsent}
	var nodes Raw
	x.read(document.data, append(path, "data"), onlyMembers(
		optional("relay", x.relayMember),
		optional("nodes", raw(&nodes)),
	))
	for _, candidate := range []struct {
		value Raw
		path  []string
	}{
		{nodes, append(path, "data", "nodes")},
		{document.nodes, append(path, "nodes")},
		{bodyNodes, []string{"nodes"}},
	} {
		if len(candidate.value) == 0 || candidate.value.IsNull() {
			continue
		}
		x.read(candidate.value, candidate.path, x.nodeList)
		if x.Nodes != nil {
			break
		}
	}
	return x
}

// read walks a part of the body whose place is path and keeps what is wrong
// with it as faults.
func (x *ClusterConfiguration) read(part Raw, path []string, read valueReader) {
	x.Faults = append(x.Faults, readShape(part, 0, func(r *reader) {
		for _, name := range path {
			r.enter(name)
		}
		read(r)
		for range path {
			r.leave()
		}
	})...)
}

func (x *ClusterConfiguration) relayMember(r *reader) {
	if r.dec.PeekKind() == jsontext.KindNull {
		r.skip()
		x.Relay = RelayNull
		return
	}
	x.Relay = RelayInvalid
	if examine(r, &x.Block) {
		x.Relay = RelayStated
	} else {
		x.Block = ClusterRelay{}
	}
}

func (x *ClusterConfiguration) nodeList(r *reader) {
	if r.dec.PeekKind() == jsontext.KindBeginArray {
		x.Nodes = []ConfiguredNode{}
	}
	place := make(map[string]int)
	r.array(maximumConfiguredNodes, func(int) {
		var n ConfiguredNode
		r.object([]member{
			required("id", nodeIDText(&n.ID)),
			optional("data", n.dataMember),
		}, passOthers)
		first, repeated := place[n.ID]
		switch {
		case n.ID == "":
		case repeated:
			// Two entries cannot say where one Corestore is.
			r.addAt("id", "repeats the id of another node")
			x.Nodes[first].Corestore = nil
		default:
			place[n.ID] = len(x.Nodes)
			x.Nodes = append(x.Nodes, n)
		}
	})
}

// dataMember reads the data of one node. A null endpoint states the same as
// none (contract §12.1).
func (n *ConfiguredNode) dataMember(r *reader) {
	r.object([]member{optional("corestore", func(r *reader) {
		if r.dec.PeekKind() == jsontext.KindNull {
			r.skip()
			return
		}
		var c NodeCorestore
		if examine(r, &c) {
			n.Corestore = &c
		}
	})}, passOthers)
}

// nodeIDText reads a node id and leaves anything else unread.
func nodeIDText(dst *string) valueReader {
	return func(r *reader) {
		var id string
		if !examined(r, func() { text(&id)(r) }) {
			return
		}
		if !IsNodeID(id) {
			r.add("is not a node id")
			return
		}
		*dst = id
	}
}

// examine reads one block by its exact shape, judges it and reports whether
// nothing was wrong with it, while the walk around it goes on either way.
func examine[T any, P interface {
	*T
	shape() valueReader
	judge(v *verdict)
}](r *reader, x P) bool {
	return examined(r, func() { x.shape()(r) }) && examined(r, func() {
		v := verdict{r.findings}
		x.judge(&v)
		r.findings = v.findings
	})
}

// examined reports whether a step of the walk found nothing wrong.
func examined(r *reader, step func()) bool {
	before := len(r.reasons) + r.more
	step()
	return len(r.reasons)+r.more == before
}

// strictRaw keeps a value as the bytes that came and holds it to design O1: it
// is not one of the members that pass opaque, so names are unique and surrogates
// paired at every depth.
func strictRaw(dst *Raw) valueReader {
	return func(r *reader) {
		value, ok := r.next()
		if !ok {
			return
		}
		if !value.IsValid() {
			r.add("repeats a name or holds a lone surrogate")
		}
		*dst = Raw(bytes.Clone(value))
	}
}
