package envelope

// Phase is the value of correlation.phase.
type Phase uint8

// The phases.
const (
	PhaseNone     Phase = iota // absent
	PhaseRequest               // "request"
	PhaseResponse              // "response"
	PhaseOther                 // any other value
)

// Kind is what a frame is to its receiver.
type Kind uint8

// The kinds.
const (
	KindNone     Kind = iota // no envelope: to be dropped without an answer
	KindRequest              // to be answered
	KindResponse             // to be matched with a waiting call
)

// Frame is what [Scan] found in a frame. The zero value is ready for use, and
// a Frame used again reuses its memory. It is not safe for concurrent use; a copy
// may be read, but not scanned into.
//
// Its slices alias the scanned text and are good as long as that, whatever
// becomes of the Frame; a text that was written with escapes has memory of its
// own. None may be written to.
type Frame struct {
	// Method is the text of method; nil when absent or no string.
	Method []byte

	// Phase is correlation.phase.
	Phase Phase

	// ID and Instance are the texts of correlation.id and requestInstanceId;
	// nil when absent or no string.
	ID, Instance []byte

	// IDToken and InstanceToken are the same as they came, quotes and escapes
	// included, to be echoed.
	IDToken, InstanceToken []byte

	// Request, Response, Error and Retry are the bytes of these values as
	// they came, without the whitespace around them; nil when absent.
	Request, Response, Error, Retry []byte

	// RequestAt and ResponseAt are the offsets of Request and Response in the
	// text, so that the next envelope can be composed around these bytes where
	// they lie; 0 when absent.
	RequestAt, ResponseAt int

	// HasLocalData says that the peer sent localData, whatever its value.
	HasLocalData bool

	// Body holds facts about Request when Phase is PhaseRequest, about
	// Response when it is PhaseResponse, and none otherwise.
	Body Body

	instancePresent bool
	names           nameStack // empty between scans
}

// Body is what a forwarding relay decides by (contract §7), read without
// decoding the body.
type Body struct {
	// Object says that the body is an object.
	Object bool

	// NodeID is the text of the top-level member nodeId; nil when absent or no
	// string.
	NodeID []byte

	// Session is the bytes of the top-level member session; nil when absent.
	Session []byte

	// SessionNodeID is the text of session.nodeId; nil when session is no
	// object or the member is absent or no string.
	SessionNodeID []byte

	// NodeIDs counts the members named nodeId at any depth.
	NodeIDs NodeIDs

	// Streams counts the objects, at any depth, with a member
	// _isVirtualStream that is true: the descriptors of streams.
	Streams int
}

// NodeIDs sums up the members named nodeId of a body, at any depth.
type NodeIDs struct {
	// Count is their number.
	Count int

	// First is the text of the first one; nil when there is none or the first
	// is no string.
	First []byte

	// Uniform says that there is at least one, and that each is a string with
	// the text of First. A string longer than MaxNodeIDBytes, or with a lone
	// surrogate, is the text of no node and counts as no string.
	Uniform bool
}

// Kind judges the envelope as TypedRequest does: a method, a correlation id
// and, where the member is present at all, an instance id, none of them empty;
// and for a request a body that is an object or an array. A response need not
// carry the member response: TypedRequest 8 demands it, but older peers leave
// it out when they return nothing, and Response is nil then.
func (f *Frame) Kind() Kind {
	switch {
	case len(f.Method) == 0 || len(f.ID) == 0:
	case f.instancePresent && len(f.Instance) == 0:
	case f.Phase == PhaseResponse:
		return KindResponse
	case f.Phase == PhaseRequest && len(f.Request) > 0 && (f.Request[0] == '{' || f.Request[0] == '['):
		return KindRequest
	}
	return KindNone
}

// Lend gives the memory that is empty between scans to next, for a Frame that
// keeps what it found while the frames after it are scanned into next.
func (f *Frame) Lend(next *Frame) {
	next.names, f.names = f.names, nameStack{}
}

// Reset forgets the frame, so that nothing of its text stays reachable, and
// keeps a bounded amount of memory for the next one.
func (f *Frame) Reset() { *f = Frame{names: f.names.emptied()} }
