package contract

// TrafficPage is the answer of getClusterTrafficStatistics (contract §11.4).
type TrafficPage struct {
	Statistics []TrafficStatistics
	NextCursor *string // opaque; nil on the last page
}

// ReadTrafficPage reads the answer body by itself. What a request asked for is
// judged by ValidateFor.
func ReadTrafficPage(body []byte) (TrafficPage, error) {
	return readAs[TrafficPage](MethodGetTrafficStatistics+" answer", body, 0)
}

func (x *TrafficPage) shape() valueReader {
	return answer(
		required("statistics", list(&x.Statistics, MaximumTrafficLimit+1, readTrafficStatistics)),
		optional("nextCursor", pointer(&x.NextCursor, text)),
	)
}

// Validate returns one named reason for each violation.
func (x TrafficPage) Validate() []string { return reasonsOf(x.judge) }

func (x TrafficPage) judge(v *verdict) {
	v.require(len(x.Statistics) <= MaximumTrafficLimit, "statistics", "has more than 256 elements")
	inEach(v, "statistics", x.Statistics)
	v.cursor("nextCursor", x.NextCursor)
}

// ValidateFor judges a page that an ingress answered against what it was asked:
// one named reason for each day outside the range, each bucket of another node,
// more buckets than the limit, and a cursor that the relay could not wrap.
func (x TrafficPage) ValidateFor(request TrafficRequest, nodeID string) []string {
	return reasonsOf(func(v *verdict) {
		v.require(int64(len(x.Statistics)) <= request.Limit, "statistics", "has more elements than were asked for")
		v.enter("statistics")
		for i, bucket := range x.Statistics {
			v.enterIndex(i)
			v.require(bucket.DayUTC >= request.FromDayUTC && bucket.DayUTC <= request.ToDayUTC, "dayUtc",
				"is outside the days that were asked for")
			v.require(bucket.NodeID == nodeID, "nodeId", "is not the node that was asked")
			v.leave()
		}
		v.leave()
		v.require(x.NextCursor == nil || len(*x.NextCursor) <= MaximumIngressCursorBytes, "nextCursor",
			"is longer than 4096 bytes")
	})
}

// AppendJSON appends the answer body, each bucket as it came.
func (x TrafficPage) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	writeList(&w, "statistics", x.Statistics)
	if x.NextCursor != nil {
		w.text("nextCursor", *x.NextCursor)
	}
	return w.end()
}
