package ingress_test

import (
	"fmt"
	"net/netip"
	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
	"strings"
	"time"
)

// odd is a table as no encoder spells it: members in another order, white space wherever
// it may stand, names and texts in escapes, and in what a relay does not look into (design
// §4, row O1) two members of one name, half a surrogate and numbers that are no integers.
// Key and password are secrets of their own.
func (c *cluster) odd(revision int64, hostnames ...string) string {
	c.t.Helper()
	var routes []string
	for _, hostname := range hostnames {
		key := c.Marker(fmt.Sprintf("key of %s in table %d", hostname, revision))
		password := c.Marker(fmt.Sprintf("password of %s in table %d", hostname, revision))
		routes = append(routes, fmt.Sprintf(`{"basicAuth" : {"password":%q,"user":"u","user":"v"}, "destinations":[ {"port":8080,"\u0061ddress":"10.0.4.9"} ],`+"\n\t"+
			`"certificate":{"k":[1.0,-0,1e+21],"half":"\ud800 and \udfff","privateKey":%q},"hostname":"\u0061%s" }`, password, key, strings.TrimPrefix(hostname, "a")))
	}
	return fmt.Sprintf(`{ "portRoutes" : [{"transport":"tcp","port":5432,"x":null}],`+"\r\n"+`"revi\u0073ion":%d, "issuedAt":1767225600000 , "routes":[%s]	}`,
		revision, strings.Join(routes, " ,\n"))
}

// plainTable is a table of no routes.
func plainTable(revision int64) string {
	return fmt.Sprintf(`{"revision":%d,"issuedAt":1767225600000,"routes":[],"portRoutes":[]}`, revision)
}

// authority issues the certificates of routes that a simulated ingress serves.
func (c *cluster) authority() *simulate.TLSAuthority {
	c.t.Helper()
	authority, err := simulate.NewTLSAuthority(time.Now())
	if err != nil {
		c.t.Fatal(err)
	}
	return authority
}

// route is a route of a hostname with a certificate of its own, to this address.
func (c *cluster) route(authority *simulate.TLSAuthority, hostname, address string) simulate.IngressRoute {
	c.t.Helper()
	certificate, err := authority.Issue(hostname)
	if err != nil {
		c.t.Fatal(err)
	}
	to := netip.MustParseAddrPort(address)
	return simulate.IngressRoute{Hostname: hostname, Certificate: certificate,
		Destinations: []contract.Destination{{Address: to.Addr().String(), Port: int64(to.Port())}}}
}

// servable is a table with a route that a simulated ingress could serve, whose key the rig
// knows.
func (c *cluster) servable(revision int64) string {
	c.t.Helper()
	route := c.route(c.authority(), "app.example", "127.0.0.1:9")
	table, err := contract.NewRouteTable(revision, time.Now().UnixMilli(), []contract.Raw{route.AppendJSON(nil)}, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(table.Encoded)
}
