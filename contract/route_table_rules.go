package contract

import "strings"

// Validate returns one named reason for each violation of what is stated. No
// reason quotes certificate material or a password, because a reason travels
// into logs.
func (x RouteTable) Validate() []string { return reasonsOf(x.judge) }

func (x RouteTable) judge(v *verdict) {
	v.require(len(x.Encoded) <= RouteTableLimit, "", "is larger than 15 MiB encoded")
	v.counter("revision", x.Revision)
	v.unixMilliseconds("issuedAt", x.IssuedAt)
	inEach(v, "routes", x.Routes)
	x.judgeHostnames(v)
	inEach(v, "portRoutes", x.PortRoutes)
	x.judgePorts(v)
}

// judgeHostnames refuses two routes for one hostname. A hostname is the same
// name in any case (RFC 4343), and which of two routes serves it would be
// chance.
func (x RouteTable) judgeHostnames(v *verdict) {
	seen := make(map[string]bool, len(x.Routes))
	v.enter("routes")
	for i, route := range x.Routes {
		name := strings.ToLower(route.Hostname)
		if seen[name] {
			v.enterIndex(i)
			v.addAt("hostname", "repeats the hostname of an earlier route")
			v.leave()
		}
		seen[name] = true
	}
	v.leave()
}

// judgePorts refuses two port routes for one transport and port, where both
// members are present.
func (x RouteTable) judgePorts(v *verdict) {
	type listener struct {
		transport string
		port      int64
	}
	seen := make(map[listener]bool, len(x.PortRoutes))
	v.enter("portRoutes")
	for i, route := range x.PortRoutes {
		if route.Transport == nil || route.Port == nil {
			continue
		}
		at := listener{*route.Transport, *route.Port}
		if seen[at] {
			v.enterIndex(i)
			v.addAt("port", "repeats the transport and port of an earlier route")
			v.leave()
		}
		seen[at] = true
	}
	v.leave()
}

func (x HTTPRoute) judge(v *verdict) {
	v.require(isPlainText(x.Hostname, maximumHostname), "hostname", "is not a hostname")
	inEach(v, "destinations", x.Destinations)
}

func (x PortRoute) judge(v *verdict) {
	if x.Transport != nil {
		v.require(*x.Transport == "tcp" || *x.Transport == "udp", "transport", "is neither tcp nor udp")
	}
	if x.Port != nil {
		v.port("port", *x.Port)
	}
	inEach(v, "destinations", x.Destinations)
}

func (x Destination) judge(v *verdict) {
	v.require(IsUnicastIPv4(x.Address), "address", "is not a unicast ipv4 literal")
	v.port("port", x.Port)
}
