package contract

// Bounds of what is read of a route table. OWN: the seeds state none (contract
// O28). They bound memory, far above what RouteTableLimit lets a table with
// certificates hold.
const (
	maximumRoutes           = 1 << 16
	maximumPortRoutes       = 2 * 65535 // each transport and port once
	maximumRouteDestination = 1 << 10
	maximumHostname         = 253
)

// RouteTable is IClusterRouteTable: the whole table of a cluster's ingress,
// never a delta (contract §11.1). It is secret-bearing: its bytes hold the
// private keys and passwords of every hostname. They are kept as they came and
// answered to an ingress unchanged; the members below are what the relay read
// in them and hold nothing secret.
//
// The seeds spell the members of a table and of a destination, but not those of
// a certificate, of Basic authentication and of a port route (contract O28). A
// route is therefore judged in what is stated, and all else in it is opaque.
type RouteTable struct {
	Revision   int64 // counter; the only idempotency of a table
	IssuedAt   int64 // Unix milliseconds
	Routes     []HTTPRoute
	PortRoutes []PortRoute
	Encoded    Raw // the whole table as it came, at most RouteTableLimit
}

// Zero overwrites the table, which holds private keys.
func (x RouteTable) Zero() { clear(x.Encoded) }

// HTTPRoute is what the relay reads of IClusterHttpRoute.
type HTTPRoute struct {
	Hostname     string
	Destinations []Destination
}

// PortRoute is what the relay reads of IClusterPortRoute, whose member names
// are not in the seeds: each is judged where it is present.
type PortRoute struct {
	Transport    *string // "tcp" or "udp"
	Port         *int64
	Destinations []Destination // nil when absent
}

// Destination is where a route forwards to.
type Destination struct {
	Address string // unicast IPv4 literal
	Port    int64
}

// NewRouteTable composes a table from routes that are JSON objects already. The
// error is an *InvalidError.
func NewRouteTable(revision, issuedAt int64, routes, portRoutes []Raw) (RouteTable, error) {
	w := beginObject(nil)
	w.integer("revision", revision)
	w.integer("issuedAt", issuedAt)
	writeList(&w, "routes", routes)
	writeList(&w, "portRoutes", portRoutes)
	return ReadRouteTable(w.end())
}

// ReadRouteTable reads a table that stands alone. No reason quotes a value or
// an unknown member's name.
func ReadRouteTable(body []byte) (RouteTable, error) {
	return readAs[RouteTable]("cluster route table", body, secretBearing)
}

func readRouteTable(x *RouteTable) valueReader { return x.shape() }

func (x *RouteTable) shape() valueReader {
	return kept(&x.Encoded, object(
		required("revision", integer(&x.Revision)),
		required("issuedAt", integer(&x.IssuedAt)),
		required("routes", list(&x.Routes, maximumRoutes, readHTTPRoute)),
		required("portRoutes", list(&x.PortRoutes, maximumPortRoutes, readPortRoute)),
	))
}

func readHTTPRoute(x *HTTPRoute) valueReader {
	return onlyMembers(
		required("hostname", text(&x.Hostname)),
		required("destinations", list(&x.Destinations, maximumRouteDestination, readDestination)),
	)
}

func readPortRoute(x *PortRoute) valueReader {
	return onlyMembers(
		optional("transport", pointer(&x.Transport, text)),
		optional("port", pointer(&x.Port, integer)),
		optional("destinations", list(&x.Destinations, maximumRouteDestination, readDestination)),
	)
}

func readDestination(x *Destination) valueReader {
	return object(
		required("address", text(&x.Address)),
		required("port", integer(&x.Port)),
	)
}

// AppendJSON appends the table as it came.
func (x RouteTable) AppendJSON(dst []byte) []byte { return x.Encoded.AppendJSON(dst) }
