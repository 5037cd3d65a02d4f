package contract

// TrafficStatistics is IClusterTrafficStatistics: one UTC day of one hostname's
// traffic on one node (contract §11.4). The member that holds the backend
// failures (connect, handshake, request) is not named by the seeds (O29), so a
// bucket is judged in the members below and handed on as the bytes that came.
type TrafficStatistics struct {
	DayUTC      string // YYYY-MM-DD
	Hostname    string
	NodeID      string
	Requests    int64 // counts
	BytesIn     int64
	BytesOut    int64
	Connections int64
	Encoded     Raw // the whole bucket as it came; nil in one that was made here
}

func readTrafficStatistics(x *TrafficStatistics) valueReader { return x.shape() }

func (x *TrafficStatistics) shape() valueReader {
	return kept(&x.Encoded, openObject(
		required("dayUtc", text(&x.DayUTC)),
		required("hostname", text(&x.Hostname)),
		required("nodeId", text(&x.NodeID)),
		required("requests", integer(&x.Requests)),
		required("bytesIn", integer(&x.BytesIn)),
		required("bytesOut", integer(&x.BytesOut)),
		required("connections", integer(&x.Connections)),
	))
}

// Validate returns one named reason for each violation.
func (x TrafficStatistics) Validate() []string { return reasonsOf(x.judge) }

func (x TrafficStatistics) judge(v *verdict) {
	v.utcDay("dayUtc", x.DayUTC)
	v.require(isPlainText(x.Hostname, maximumHostname), "hostname", "is not a hostname")
	v.nodeID("nodeId", x.NodeID)
	v.count("requests", x.Requests)
	v.count("bytesIn", x.BytesIn)
	v.count("bytesOut", x.BytesOut)
	v.count("connections", x.Connections)
}

// AppendJSON appends the bucket as it came, or from its members when it was
// made here.
func (x TrafficStatistics) AppendJSON(dst []byte) []byte {
	if x.Encoded != nil {
		return x.Encoded.AppendJSON(dst)
	}
	w := beginObject(dst)
	w.text("dayUtc", x.DayUTC)
	w.text("hostname", x.Hostname)
	w.text("nodeId", x.NodeID)
	w.integer("requests", x.Requests)
	w.integer("bytesIn", x.BytesIn)
	w.integer("bytesOut", x.BytesOut)
	w.integer("connections", x.Connections)
	return w.end()
}
