package simulate

import (
	"fmt"

	"serve.zone/relay/contract"
)

// servedTable is a table that was judged as its ingress judges it.
type servedTable struct {
	contract.RouteTable
	routes   map[string]*servedRoute // by hostname, lower case
	ports    map[int64][]string      // destinations by TCP port
	unserved []string
}

// revision returns the table's revision, 0 for none.
func (t *servedTable) revision() int64 {
	if t == nil {
		return 0
	}
	return t.Revision
}

// readServedTable reads an answer to a pull, nil for null: as the contract does
// first, then everything in it. An error beside a table says that the table cannot
// be served; it is refused whole, since it is never a delta (contract §11.1).
func readServedTable(body []byte) (*servedTable, error) {
	const what = contract.MethodGetIngressRouteTable + " answer"
	answer, err := contract.ReadRouteTableAnswer(contract.MethodGetIngressRouteTable, body)
	if err != nil {
		return nil, err
	}
	var t *servedTable
	if answer.Table != nil {
		t = &servedTable{RouteTable: *answer.Table, routes: map[string]*servedRoute{}, ports: map[int64][]string{}}
		o := readObject(what, t.Encoded, []string{"revision", "issuedAt", "routes", "portRoutes"})
		t.readRoutes(o)
		t.readPorts(o)
		if err := o.err(); err != nil {
			return t, err
		}
	}
	// The contract's reader passes over members of a later minor, but a relay
	// writes this answer itself.
	if err := readObject(what, body, []string{"table"}).err(); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *servedTable) readRoutes(o *object) {
	for n, raw := range o.elements("routes") {
		route, reasons := readRoute(raw)
		o.within(fmt.Sprintf("routes[%d]", n), &object{reasons: reasons})
		t.routes[route.hostname] = &route
	}
}

// readPorts reads the port routes. UDP is not forwarded here, and that is said.
func (t *servedTable) readPorts(o *object) {
	for n, raw := range o.elements("portRoutes") {
		at := fmt.Sprintf("portRoutes[%d]", n)
		inner := readObject("port route", raw, []string{"transport", "port", "destinations"})
		transport := inner.text("transport", func(s string) bool { return s == "tcp" || s == "udp" }, "is neither tcp nor udp")
		port, to := inner.counter("port"), inner.destinations("destinations")
		o.within(at, inner)
		if transport == "udp" {
			t.unserved = append(t.unserved, at+": udp is not forwarded by a simulated ingress")
			continue
		}
		t.ports[port] = to
	}
}
