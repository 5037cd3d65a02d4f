package contract

// Bounds of a traffic cursor in bytes. OWN: the seeds call it opaque and state
// none. The relay's own cursor wraps an ingress's (O17), so it is longer by the
// node id, the line end and the growth of base64.
const (
	MaximumIngressCursorBytes = 4096
	MaximumTrafficCursorBytes = (4*(maximumNodeIDLength+1+MaximumIngressCursorBytes) + 2) / 3
)

// TrafficRequest is the request of getClusterTrafficStatistics on both hops
// (contract §11.4). The days are inclusive.
type TrafficRequest struct {
	FromDayUTC string  // YYYY-MM-DD
	ToDayUTC   string  // YYYY-MM-DD, not before FromDayUTC
	Cursor     *string // opaque; nil for the first page
	Limit      int64   // 1 to MaximumTrafficLimit (O17)
}

// ReadTrafficRequest reads the request body.
func ReadTrafficRequest(body []byte) (TrafficRequest, error) {
	return readAs[TrafficRequest](MethodGetTrafficStatistics+" request", body, 0)
}

func (x *TrafficRequest) shape() valueReader {
	return object(
		required("fromDayUtc", text(&x.FromDayUTC)),
		required("toDayUtc", text(&x.ToDayUTC)),
		optional("cursor", pointer(&x.Cursor, text)),
		required("limit", integer(&x.Limit)),
	)
}

// Validate returns one named reason for each violation.
func (x TrafficRequest) Validate() []string { return reasonsOf(x.judge) }

func (x TrafficRequest) judge(v *verdict) {
	v.utcDay("fromDayUtc", x.FromDayUTC)
	v.utcDay("toDayUtc", x.ToDayUTC)
	if IsUTCDay(x.FromDayUTC) && IsUTCDay(x.ToDayUTC) {
		// Days of this form are ordered as their texts are.
		v.require(x.FromDayUTC <= x.ToDayUTC, "toDayUtc", "is before fromDayUtc")
	}
	v.cursor("cursor", x.Cursor)
	v.require(x.Limit >= 1 && x.Limit <= MaximumTrafficLimit, "limit", "is not within 1 to 256")
}

// cursor judges an opaque cursor that may be absent.
func (v *verdict) cursor(member string, cursor *string) {
	if cursor != nil {
		v.require(len(*cursor) >= 1 && len(*cursor) <= MaximumTrafficCursorBytes, member,
			"is not 1 to 5634 bytes long")
	}
}

// AppendJSON appends the request body in contract order.
func (x TrafficRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("fromDayUtc", x.FromDayUTC)
	w.text("toDayUtc", x.ToDayUTC)
	if x.Cursor != nil {
		w.text("cursor", *x.Cursor)
	}
	w.integer("limit", x.Limit)
	return w.end()
}
