package contract

import "github.com/go-json-experiment/json/jsontext"

// maximumSnapshots bounds the snapshots of one service. OWN: it bounds memory; a
// service has a handful of resources.
const maximumSnapshots = 1024

// Snapshot is one entry of a backup. It is opaque and goes on as the bytes that
// came, but for one member: where databaseClosure is an object, the snapshot's
// bytes are a closure that is streamed (design §4, row §12). A databaseClosure
// of any other kind says nothing and stays opaque.
type Snapshot struct {
	Closure *SnapshotClosure // nil when nothing is streamed for it
	Encoded Raw              // the snapshot as it came
}

// SnapshotClosure is the member databaseClosure of a snapshot: exactly
// { serviceId, descriptor, path }. OWN: member name and path are this product's
// reading, which docs/corestore.md states.
type SnapshotClosure struct {
	ServiceID  string // canonical identifier
	Descriptor DatabaseClosureDescriptor
	Path       string // where Corestore serves or takes the bytes
}

// NewSnapshot is a snapshot whose whole content is a closure.
func NewSnapshot(closure SnapshotClosure) Snapshot {
	w := beginObject(nil)
	w.value("databaseClosure", closure)
	return Snapshot{Closure: &closure, Encoded: w.end()}
}

func readSnapshot(x *Snapshot) valueReader {
	return func(r *reader) {
		if !r.broken && r.dec.PeekKind() != jsontext.KindBeginObject {
			raw(&x.Encoded)(r)
			return
		}
		kept(&x.Encoded, onlyMembers(optional("databaseClosure", readSnapshotClosure(&x.Closure))))(r)
	}
}

func readSnapshotClosure(x **SnapshotClosure) valueReader {
	return func(r *reader) {
		if !r.broken && r.dec.PeekKind() != jsontext.KindBeginObject {
			r.skip()
			return
		}
		pointer(x, func(c *SnapshotClosure) valueReader {
			return object(
				required("serviceId", text(&c.ServiceID)),
				required("descriptor", readDatabaseClosureDescriptor(&c.Descriptor)),
				required("path", text(&c.Path)),
			)
		})(r)
	}
}

func (x Snapshot) judge(v *verdict) {
	if x.Closure != nil {
		v.in("databaseClosure", *x.Closure)
	}
}

func (x SnapshotClosure) judge(v *verdict) {
	v.identifier("serviceId", x.ServiceID)
	v.in("descriptor", x.Descriptor)
	v.require(IsCorestorePath(x.Path), "path", "is not a plain absolute path")
}

// AppendJSON appends the snapshot as it came.
func (x Snapshot) AppendJSON(dst []byte) []byte { return x.Encoded.AppendJSON(dst) }

// AppendJSON appends the member databaseClosure.
func (x SnapshotClosure) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("serviceId", x.ServiceID)
	w.value("descriptor", x.Descriptor)
	w.text("path", x.Path)
	return w.end()
}

// judgeSnapshots judges the snapshots of a backup, which together are no larger
// than what Corestore answered. Cloudly knows a closure by backup, service and
// node, so one backup holds at most one of each service.
func judgeSnapshots(v *verdict, snapshots []Snapshot) {
	total := 0
	closures := make(map[string]bool)
	v.enter("snapshots")
	for i, s := range snapshots {
		total += len(s.Encoded)
		v.enterIndex(i)
		s.judge(v)
		if s.Closure != nil {
			v.require(!closures[s.Closure.ServiceID], "databaseClosure.serviceId", "repeats the service of an earlier closure")
			closures[s.Closure.ServiceID] = true
		}
		v.leave()
	}
	v.leave()
	v.require(total <= CorestoreAnswerLimit, "snapshots", "is larger than 4 MiB")
}
